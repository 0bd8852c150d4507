from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from palimpsest.core.recall.ranking import PassageTable, QueryMatches
from palimpsest.core.recall.small_loss import LEAST_NEARNESS, LONG_TALK_MARGIN, small_loss, without_general

from tests.core.passage_tables import passage_table

TOLD = (
    "My daughter Ines is nine and allergic to peanuts.",
    "I will keep that in mind.",
    "We arrive on 14 March at 18:40 with flight TP1927.",
    "Five nights then.",
)
NEAR, FAR = 0.4, 0.04  # cosines


def table() -> PassageTable:
    return passage_table(TOLD, users=[0, 2])


def asked(text: str, cosine: float | None) -> QueryMatches:
    return QueryMatches(cosines=None if cosine is None else np.full(len(TOLD), cosine), found={}, text=text)


def rows(text: str, cosine: float | None, *, told: tuple[int, ...] = (), most_chars: int = 1500) -> list[int]:
    everything = np.ones(len(TOLD), np.bool_)
    untold = everything & ~np.isin(np.arange(len(TOLD)), told)
    return small_loss(table(), everything, untold, asked(text, cosine), most_chars).tolist()


def test_a_small_loss_comes_back_whole_though_nothing_asks_for_it() -> None:
    assert rows("Is this place fine? They serve satay.", NEAR) == [0, 1, 2, 3]


def test_a_loss_of_more_characters_than_allowed_is_no_small_one() -> None:
    chars = sum(map(len, TOLD))
    assert rows("Is this place fine?", NEAR, most_chars=chars) == [0, 1, 2, 3]
    assert rows("Is this place fine?", NEAR, most_chars=chars - 1) == []
    assert rows("Is this place fine?", NEAR, most_chars=0) == []


def test_what_blocks_tell_already_counts_as_lost_and_does_not_come_again() -> None:
    assert rows("Is this place fine?", NEAR, told=(0, 1)) == [2, 3]
    assert rows("Is this place fine?", NEAR, told=(0, 1), most_chars=sum(map(len, TOLD[2:]))) == []
    assert rows("Is this place fine?", NEAR, told=(0, 1, 2, 3)) == []


def test_no_block_is_made_for_what_only_the_assistant_said_since_the_last_one() -> None:
    assert rows("Is this place fine?", NEAR, told=(0, 1, 2)) == []


@pytest.mark.parametrize(
    ("text", "cosine", "comes"),
    [
        ("Write a limerick about a sailor.", FAR, False),
        ("Can I take ibuprofen?", 0.1, True),
        ("Is ibuprofen dangerous?", 0.1, False),
        ("Can I take ibuprofen?", FAR, False),
        ("Kann ich auf dem Balkon auch Tomaten ziehen?", 0.41, True),
        ("Kann ich auf dem Balkon auch Tomaten ziehen?", 0.3, False),
        ("Danke, super!", 0.6, False),
        ("My flight back leaves on 19 March at 7:10.", NEAR, False),
        ("Can I take ibuprofen?", None, True),
        ("Is ibuprofen dangerous?", None, False),
    ],
)
def test_a_request_about_something_else_gets_nothing(text: str, cosine: float | None, comes: bool) -> None:
    assert bool(rows(text, cosine)) is comes


def test_without_vectors_a_shared_word_makes_it_a_request_about_the_conversation() -> None:
    word = replace(asked("Is the flight late?", None), found={"flight": np.array([2])})
    everything = np.ones(len(TOLD), np.bool_)
    assert len(small_loss(table(), everything, everything, word, 1500)) == len(TOLD)


def test_a_lost_question_makes_no_request_one_about_the_conversation() -> None:
    far = asked("What is 14 times 19?", FAR)
    assert far.cosines is not None
    for near, comes in ((0, True), (1, False)):
        cosines = far.cosines.copy()
        cosines[near] = NEAR
        shown = replace(table(), asks=np.array([False, True, False, False]), users=np.array([True, True, True, False]))
        everything = np.ones(len(TOLD), np.bool_)
        assert bool(len(small_loss(shown, everything, everything, replace(far, cosines=cosines), 1500))) is comes


def test_where_more_was_lost_what_the_user_told_comes_while_that_is_little() -> None:
    long = ("Some other talk. " * 60).strip()
    shown = passage_table((*TOLD, long), users=[0, 2])
    shown = replace(shown, tells=np.array([0.9, 0.0, 0.9, 0.0, 0.0]), asks=np.zeros(5, np.bool_))
    everything = np.ones(5, np.bool_)

    def given(cosine: float, most_chars: int) -> list[int]:
        request = QueryMatches(cosines=np.full(5, cosine), found={}, text="Is this place fine? They serve satay.")
        return small_loss(shown, everything, everything, request, most_chars).tolist()

    said = sum(len(TOLD[at]) for at in (0, 2))
    assert given(NEAR, said * 5) == [0, 2]
    assert given(NEAR, (said - 1) * 5) == []
    assert given(NEAR, said * 5 + len(long)) == [0, 1, 2, 3, 4]
    assert given(LEAST_NEARNESS + LONG_TALK_MARGIN / 2, said * 5) == [], "talk about other things, too"


def test_questions_that_anybody_could_ask_do_not_come_back_with_what_was_told() -> None:
    talk = (
        *("Our cat Momo is 14.", "A fine age.", "How long do cats sleep?", "Between 12 and 16 hours."),
        *("How much may my cat eat?", "50 grams.", "Write a plan for the week.", "Monday: fish ..."),
        *("What did Dr. Okafor prescribe?", "Drops."),
    )
    shown = replace(passage_table(talk, users=[0, 2, 4, 6, 8]), asks=np.isin(np.arange(len(talk)), [2, 4, 8]))
    said = dict(enumerate(talk))
    assert without_general(shown, np.arange(len(talk)), said).tolist() == [0, 1, 4, 5, 6, 7, 8, 9]
    assert without_general(shown, np.array([2, 3]), said).tolist() == []


@pytest.mark.parametrize(
    ("text", "comes"),
    [
        ('translate "my flight leaves on 14 March"', False),
        ('and how do I say "my luggage is lost"', False),
        ("What's the capital of Slovenia?", False),
        ("Translate the letter into French.", True),
        ("What is the difference between the two flights?", True),
        ("javascript: sort flights by date", False),
        ("Translate my flight details.", True),
        ("How do I say that to my daughter?", True),
        ("What's the best seat on the flight?", True),
    ],
)
def test_who_asks_for_a_word_a_fact_of_a_country_or_a_line_of_code_gets_no_loss_back(text: str, comes: bool) -> None:
    assert bool(rows(text, NEAR)) is comes
