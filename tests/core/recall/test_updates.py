"""Which later statement is about the same thing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from palimpsest.core.archive.chunking import MIXED_LEVEL, TELLING_EDGES, query_terms, terms
from palimpsest.core.recall.ranking import PassageTable, QueryMatches, RankedRows
from palimpsest.core.recall.updates import (
    BRIEF_CHARS,
    FOLLOWING_CHARS,
    LEAST_NAMESAKE_NEARNESS,
    LEAST_REPORTING,
    LOOKED_AT,
    MOST_NAMED,
    MOST_STEPS,
    STATEMENTS,
    SUBJECT_WEIGHT,
    all_names,
    answered,
    clauses,
    gives_other_number,
    has_name,
    later_statements,
    likeness,
    namesakes,
    next_statement,
    opening_words,
    outcome,
    statements,
    states,
    tells_of_change,
)

from tests.core.passage_tables import axis, passage_table

SAID = (
    "Our dev database is Postgres on port 5432, and it is called shop.",
    "We moved the dev database to port 5433 on Monday.",
    "What port does our dev database use?",
    "My sister Clara plays the violin in the town orchestra.",
    "The dev database takes some time to start.",
)


def told(*users: int) -> PassageTable:
    return passage_table(SAID, users=users, asks=[2])


def found_later(table: PassageTable, row: int = 0, eligible: np.ndarray | None = None) -> list[int]:
    wanted = query_terms(SAID[row])
    held = {term: np.flatnonzero([term in terms(text) for text in SAID]) for term in wanted}
    everywhere = np.ones(len(table), np.bool_) if eligible is None else eligible
    return later_statements(table, row, held, dict.fromkeys(held, 1.0), everywhere)[0].tolist()


def test_what_the_user_said_later_with_words_of_it_is_found_likest_first() -> None:
    assert found_later(told(0, 1, 2, 3))[0] == 1


def test_questions_what_others_say_and_what_was_said_before_are_no_update() -> None:
    assert found_later(told(0, 1, 2, 3)) == [1, 2] and states(told(0, 1, 2, 3), np.array([1, 2])).tolist() == [
        True,
        False,
    ]
    assert 4 not in found_later(told(0, 1, 2, 3))
    assert found_later(told(0, 1, 2, 3), row=1) == [2]


def test_what_may_not_come_is_no_update() -> None:
    assert found_later(told(0, 1), eligible=np.array([True, False, True, True, True])) == []


def test_the_same_text_said_again_is_no_update() -> None:
    table = told(0, 1)
    assert found_later(replace(table, fulls=np.full(len(table), 7))) == []


def test_of_texts_with_the_same_words_the_nearer_in_meaning_comes_first() -> None:
    table = passage_table(
        ("My shop is in Lisbon.", "My shop moved away to Porto.", "I moved my shop to Braga."), users=range(3)
    )
    table.vectors[0] = table.vectors[2] = axis(1)
    held = {"shop": np.array([0, 1, 2])}
    rows, cosines = later_statements(table, 0, held, {"shop": 1.0}, np.ones(3, np.bool_))
    assert rows.tolist() == [2, 1] and cosines.tolist() == [1.0, 0.0]


def test_only_the_first_statements_are_looked_up_again() -> None:
    table = passage_table([f"My locker number {at} has the code {at}172." for at in range(9)], users=range(0, 9, 2))
    rows = np.arange(9)
    assert statements(table, RankedRows(rows, np.zeros(9), {})).tolist() == [0, 2, 4][:STATEMENTS]
    asks = replace(table, asks=np.arange(9) == 2, tells=np.zeros(9, np.float32))
    assert statements(asks, RankedRows(rows, np.zeros(9), {})).tolist() == [0, 4, 6], "orders are, and questions not"


def test_an_answer_that_comes_first_of_all_is_looked_up_too_as_it_may_be_out_of_date() -> None:
    table = passage_table([f"My locker number {at} has the code {at}172." for at in range(9)], users=range(0, 9, 2))
    assert statements(table, RankedRows(np.array([1, 0, 3]), np.zeros(3), {})).tolist() == [1, 0]
    assert statements(table, RankedRows(np.array([0, 1, 3]), np.zeros(3), {})).tolist() == [0]
    assert statements(table, RankedRows(np.empty(0, np.int64), np.zeros(0), {})).tolist() == []


def test_no_more_than_a_few_are_compared() -> None:
    table = passage_table([f"The shop number {at} opened." for at in range(40)], users=range(40))
    rows, _ = later_statements(table, 0, {"shop": np.arange(40)}, {"shop": 1.0}, np.ones(40, np.bool_))
    assert len(rows) == LOOKED_AT


@pytest.mark.parametrize(
    ("later", "gives"),
    [
        ("Hartwell now say 16 chairs not 14. New total?", True),
        ("Is the foam 12 a chair still, for 14 chairs?", False),
        ("Which 20 screws fit?", False),
        ("Put 20 a chair into the offer, for 12 we lose.", True),
        ("Order 16 chairs for the garden.", False),
        ("Is a price of 15 a chair too much?", False),
    ],
)
def test_an_order_or_a_question_gives_another_number_where_it_says_in_place_of_which(later: str, gives: bool) -> None:
    assert gives_other_number("Offer for Hartwell: 14 chairs, foam 12 a chair.", later) is gives


@pytest.mark.parametrize(
    ("said", "changes"),
    [
        ("Nicola called, the operation was postponed, write her again.", True),
        ("Right, forgot. Ines is on leave until the 20th, Tomasz applies now, same day. Write him.", True),
        ("Swimming moved to Fridays.", True),
        ("The AGM is now Saturday 21 November.", True),
        ("They are 31 now, not 28.", True),
        ("Der Termin ist verschoben.", True),
        ("La reunión ahora es el jueves.", True),
        ("From May the hourly rate is 78.", True),
        ("Now write the tests.", False),
        ("Our database is on port 5432.", False),
        ("Run it right now please", False),
        ("Now, write the docs.", False),
        ("Fix it now!", False),
        ("Add a new name field to the form.", False),
        ("Use a list instead of a set.", False),
        ("Der Port ist jetzt 5433.", True),
        ("rates gone up. 52/hr now", True),
        ("J'ai vendu la troisième ruche, il m'en reste deux maintenant.", True),
        ("Go up to the second floor.", False),
        ("We sold 40 loaves today.", False),
    ],
)
def test_what_says_that_something_is_no_longer_as_it_was_tells_of_a_change(said: str, changes: bool) -> None:
    assert tells_of_change(said) is changes


def test_clauses_are_told_apart_and_a_text_without_one_is_one() -> None:
    text = "Our port is 5441, hourly rate 72 and saturday open. Ann reviews; v1.2 stays"
    assert [part[-1] for part in clauses(text)] == ["5441", "72", "open", "review", "stay"]
    assert clauses("Ok. Fine.") == [query_terms("Ok. Fine.")]


def test_texts_share_more_where_their_rare_words_are_the_same() -> None:
    weights = {"shop": 1.0, "5432": 5.0}
    assert likeness(["shop", "5432"], ["shop", "5432"], weights, 3.0) == 1.0 + SUBJECT_WEIGHT
    assert likeness(["shop", "5432"], ["5432", "x"], weights, 3.0) == 5 / 9 + SUBJECT_WEIGHT * 5 / 6
    assert likeness(["shop", "5432"], ["shop", "x"], weights, 3.0) == 1 / 9 + SUBJECT_WEIGHT * 1 / 6
    assert likeness([], [], weights, 3.0) == 0.0


def test_texts_share_more_where_the_first_words_of_the_earlier_one_are_the_same() -> None:
    meeting = ["committee", "meeting", "november", "seminar", "room"]
    assert likeness(meeting, ["committee", "zoom"], {}, 1.0) > likeness(meeting, ["room", "zoom"], {}, 1.0)


PETS = (
    "Our dog is called Bruno, a lazy beagle.",
    "Bruno must not get any grain, the vet says.",
    "Did Bruno eat today?",
    "Bruno is a fine name for a beagle.",
    "Bruno sleeps on the sofa.",
)


def of_one_name(named_rows: np.ndarray, eligible: np.ndarray | None = None, nearness: float = 0.4) -> list[int]:
    table = passage_table(PETS, users=(0, 1, 2, 4), asks=[2])
    asked = QueryMatches(cosines=np.array([0.9, nearness, 0.8, 0.7, 0.6]), found={}, text="Which treats for the dog?")
    everywhere = np.ones(len(PETS), np.bool_) if eligible is None else eligible
    found = {"bruno": named_rows, "dog": np.array([0])}
    return namesakes(table, 0, found, {"Bruno": {"bruno"}}, everywhere, asked).tolist()


def test_a_rare_name_leads_to_the_users_other_statements_the_nearest_to_the_question_first() -> None:
    assert of_one_name(np.arange(5)) == [4, 1]


def test_what_may_not_come_shares_no_name() -> None:
    assert of_one_name(np.arange(5), np.array([True, True, True, True, False])) == [1]


def test_what_is_far_from_the_question_shares_a_name_only() -> None:
    assert of_one_name(np.arange(5), nearness=LEAST_NAMESAKE_NEARNESS) == [4, 1]
    assert of_one_name(np.arange(5), nearness=LEAST_NAMESAKE_NEARNESS - 0.01) == [4]


def test_what_was_said_later_of_a_name_needs_to_be_near_the_statement_only() -> None:
    table = passage_table(PETS, users=(0, 1, 4))
    table.vectors[1] = table.vectors[4] = axis(1)
    far = QueryMatches(cosines=np.zeros(len(PETS)), found={}, text="What do I buy?")
    found = {"bruno": np.arange(5)}
    for row, later in ((1, [4]), (4, []), (0, [])):
        assert namesakes(table, row, found, {"Bruno": {"bruno"}}, np.ones(5, np.bool_), far).tolist() == later


def test_a_name_that_many_passages_hold_leads_nowhere() -> None:
    assert of_one_name(np.resize(np.arange(5), MOST_NAMED)) == [4, 1]
    assert of_one_name(np.resize(np.arange(5), MOST_NAMED + 1)) == []


def said_next(*after: str, users: tuple[int, ...] = (0, 2), nearness: float = 0.4) -> list[int]:
    table = passage_table(("Our dog is called Bruno.", "A fine name.", *after), users=users, asks=[4])
    asked = QueryMatches(cosines=np.full(len(table), nearness), found={}, text="What does our dog take?")
    return next_statement(table, 0, np.ones(len(table), np.bool_), asked)


def test_behind_a_statement_stands_what_the_user_told_next() -> None:
    tablets = "The vet put him on tablets, 5 mg a day."
    assert said_next(tablets) == said_next(tablets, "Poor dog.", "How old is he?") == [2]
    assert said_next("A second passage of the answer.", tablets, users=(0, 3)) == [3]
    assert said_next(tablets, users=(0,)) == said_next("Poor dog.", "So?", "How old is he?", users=(0, 4)) == []
    assert said_next(tablets * 6) == said_next(tablets, nearness=LEAST_NAMESAKE_NEARNESS - 0.01) == []


def test_a_name_is_the_same_word_with_its_capital() -> None:
    assert has_name("I asked Will's brother.", ["Will"])
    assert not has_name("I will ask.", ["Will"]) and not has_name("Willow trees", ["Will"])


def test_a_word_that_opens_a_sentence_is_a_name_where_another_text_has_it_inside_of_one() -> None:
    assert opening_words("Henk moved it. The keys are here!") == ["Henk", "The"]
    assert has_name("Ask Henk for the keys.", [], ["Henk", "The"])
    assert not has_name("The keys are with him.", [], ["Henk", "The"])


def test_what_a_thing_is_called_is_a_name_without_a_capital_too() -> None:
    assert [*all_names("The staging server of Karen is called heron.")] == ["Karen", "heron"]
    assert [*all_names("Le serveur s'appelle heron-2.")] == ["heron-2"]
    assert [*all_names("My boss called yesterday.")] == []


def test_what_came_of_a_task_is_what_was_said_last_before_its_user_spoke_again() -> None:
    talk = ("Deploy to staging.", "I look.", "error: no route", "The VPN is down.", "Try again.", "It is up now.")
    table = passage_table(talk, users=[0, 4])
    assert (outcome(table, 0), outcome(table, 4), outcome(table, 5)) == (3, 5, -1)
    asking = replace(table, asks=table.users)
    assert (outcome(asking, 0), outcome(asking, 4)) == (3, -1), "tools were used for the first alone"
    back = replace(table, asks=~table.users)
    assert outcome(replace(back, tells=np.full(len(talk), LEAST_REPORTING)), 0) == 3
    assert outcome(replace(back, tells=np.zeros(len(talk))), 0) == -1, "a question back is no outcome"
    answer_in_two_parts = replace(table, occurrences=np.array([101, 102, 103, 103, 105, 106]))
    assert outcome(answer_in_two_parts, 0) == 2
    poem = passage_table(("Write a poem.", "The sea. " * FOLLOWING_CHARS, "Thanks.", "You are welcome."), users=[0, 2])
    assert (outcome(poem, 0), outcome(poem, 2)) == (-1, 3)
    at_length = passage_table(("Deploy.", *("I try.",) * MOST_STEPS, "Thanks."), users=[0, MOST_STEPS + 1])
    assert outcome(at_length, 0) == -1


def test_a_brief_answer_belongs_to_what_it_answers_and_a_longer_one_speaks_for_itself() -> None:
    talk = ("How often?", "5 attempts.", "And then?", "Then it stops, " * BRIEF_CHARS, "error", "Go on.")
    table = passage_table(talk, users=[0, 2, 5])
    assert [answered(table, row) for row in range(len(talk))] == [-1, 0, -1, -1, -1, -1]


def test_who_tells_something_and_asks_in_the_same_breath_has_told_it() -> None:
    tells = np.array([MIXED_LEVEL / len(TELLING_EDGES), 0.6, 0.3, 0.5, 0.5])
    both = replace(told(0, 1, 2), asks=np.array([True, True, True, False, False]), tells=tells)
    assert both.only_asks(np.arange(5)).tolist() == [False, False, True, False, False]
    assert states(both, np.array(found_later(both))).tolist() == [True, False]
