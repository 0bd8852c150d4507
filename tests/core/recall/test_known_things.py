"""What a request speaks of as known, and which statements are about it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from palimpsest.core.recall.known_things import (
    FEW_NAMED,
    LEAST_NEARNESS,
    LEAST_NEARNESS_OF_FEW,
    is_about,
    known_things,
    possible_names,
    told_of,
)
from palimpsest.core.recall.ranking import QueryMatches
from palimpsest.core.recall.updates import MOST_NAMED
from palimpsest.core.recall.utterance import LONG_CHARS

from tests.core.passage_tables import passage_table

TOLD = (
    "My daughter is called Mila, she just started school.",
    "Your daughter will like it there.",
    "Is my daughter too young for that?",
    "My daughter has had two swimming lessons.",
)


def rows(text: str, holding: list[int], hidden: list[int] | None = None, nearest: float = 0.5) -> list[int]:
    table = passage_table(TOLD, users=(0, 2, 3), asks=[2])
    asked = QueryMatches(cosines=np.array([nearest, 0.9, 0.8, 0.1]), found={}, text=text)
    eligible = np.ones(len(TOLD), np.bool_)
    eligible[hidden or []] = False
    (thing,) = known_things(text)
    return told_of(table, thing, {"daughter": np.array(holding)}, eligible, asked).tolist()


def about(request: str, statement: str, *, rare: bool = False, near: bool = False) -> bool:
    """Whether a statement is about anything that a request speaks of, where "second" tells little."""
    things = known_things(request)
    weights = {term: 1.0 for thing in things for terms in thing.terms.values() for term in terms} | {"second": 0.5}
    return any(is_about(statement, thing, weights, weights if rare else (), LEAST_NEARNESS * near) for thing in things)


def test_what_the_user_told_of_a_thing_comes_the_nearest_to_the_request_first() -> None:
    assert rows("Which dish could I cook for my daughter?", [0, 1, 2, 3]) == [0, 3]
    assert rows("Which dish could I cook for my daughter?", [0, 1, 2, 3], hidden=[0]) == [3]


def test_what_was_told_of_a_thing_together_with_a_question_comes() -> None:
    statement = "My daughter Lena turns 7 on 3 October and is allergic to hazelnuts. Ideas for the party?"
    table = passage_table((statement, "Is my daughter too young for that?"), users=(0, 1), asks=(0, 1))
    (thing,) = known_things("Draft an invitation for my daughter.")
    asked = QueryMatches(cosines=np.array([0.5, 0.5]), found={}, text="")
    assert told_of(table, thing, {"daughter": np.array([0, 1])}, np.ones(2, np.bool_), asked).tolist() == [0]


def test_of_what_is_not_called_the_users_own_only_what_is_near_comes() -> None:
    assert rows("Which dish is good for the daughter?", [0, 1, 2, 3]) == [0]
    assert rows("Which dish is good for the daughter?", [0, 1, 2, 3], nearest=LEAST_NEARNESS - 0.01) == []


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("Thanks, Ann! That was a good meal.", []),
        ("That sounds great, Ann. What else did you do?", []),
        ("Hey Ann, did the parcel arrive?", []),
        ("Danke, Anna!", []),
        ("Please mail Ann.", ["Ann"]),
        ("What can I cook for my sister, Ann?", ["Ann"]),
        ("Dinner with my daughter, Ann!", ["Ann"]),
        ("About Ann, what does she eat?", ["Ann"]),
        ("In Berlin, where did I stay?", ["Berlin"]),
        ("Ask Ann.", ["Ann"]),
        ("Is this place OK for Ann?", ["Ann"]),
        ("Hey Ann, what does Bob eat?", ["Bob"]),
        ("Book for me with Ann, Bob, and Eve.", ["Ann", "Bob", "Eve"]),
    ],
)
def test_whom_a_request_speaks_to_is_not_what_it_speaks_of(text: str, named: list[str]) -> None:
    assert [word for thing in known_things(text) if thing.is_name for word in thing.terms] == named


def test_a_statement_to_somebody_does_not_tell_of_them() -> None:
    assert about("What can I cook for Ann?", "Well, Ann eats no nuts.")
    assert not about("What can I cook for Ann?", "Thanks, Ann! Your kind words mean a lot.")


def test_a_word_that_many_statements_of_the_user_hold_leads_nowhere_whatever_others_say() -> None:
    (thing,) = known_things("And for my daughter?")
    for mine, leads in ((MOST_NAMED, True), (MOST_NAMED + 1, False)):
        table = passage_table([TOLD[0]] * (mine + 50), users=range(mine))
        asked, everywhere = QueryMatches(cosines=None, found={}, text=""), np.ones(len(table), np.bool_)
        assert bool(told_of(table, thing, {"daughter": np.arange(len(table))}, everywhere, asked).size) == leads


def test_a_name_that_many_speak_of_leads_nowhere() -> None:
    (thing,) = known_things("Draft a letter to Moreau.")
    for others, leads in ((MOST_NAMED - 1, True), (MOST_NAMED, False)):
        table = passage_table(["Moreau accepts nothing longer than ten pages."] * (1 + others), users=[0])
        asked, everywhere = QueryMatches(cosines=None, found={}, text=""), np.ones(len(table), np.bool_)
        assert bool(told_of(table, thing, {"moreau": np.arange(len(table))}, everywhere, asked).size) == leads


@pytest.mark.parametrize(
    ("request_text", "statement"),
    [
        ("Can you restart the staging server for me?", "The staging server must only be restarted with blue.sh."),
        ("Draft a countdown post for the rebranding.", "The client for the rebranding is Hollis & Sons."),
        ("Outline a brief for Judge Moreau.", "Judge Moreau accepts nothing longer than ten pages."),
        ("Which chain fits my bike?", "The new bike has a 2x11 groupset."),
        ("Could my father go through the detector?", "Dad's pacemaker was fitted in 2019."),
        ("What do I cook for my husband?", "My partner cannot eat anything with sesame."),
        ("Wie setze ich meinen Vater an den Tisch?", "Papa hört auf dem linken Ohr nichts mehr."),
        ("Quelle sortie proposer à ma mère ?", "Maman a le vertige."),
        ("Was muss ich an der Kreissäge beachten?", "Die Kreissäge darf nur mit Absaugung laufen."),
    ],
)
def test_a_statement_is_about_what_it_begins_with(request_text: str, statement: str) -> None:
    assert about(request_text, statement)


@pytest.mark.parametrize(
    ("request_text", "statement"),
    [
        ("Can you restart a staging server for me?", "The staging server must only be restarted with blue.sh."),
        ("Which film suits the second camera?", "The second floor is closed on Wednesday."),
        ("Where is the door?", "I measured the living room wall, it is 4.37 metres from the door to the window."),
        ("Could my father go through the detector?", "Mum's pacemaker was fitted in 2019."),
        ("Could a father go through a detector?", "Dad's pacemaker was fitted in 2019."),
        ("How do I parse dates in Python?", "Our Python projects use pytest."),
    ],
)
def test_a_statement_is_about_nothing_that_it_only_mentions(request_text: str, statement: str) -> None:
    assert not about(request_text, statement)


def test_what_is_the_users_own_is_told_by_a_rare_word_wherever_it_stands() -> None:
    statement = "On Sundays we ride out, and then the chain of the bike needs wax."
    assert about("Which chain fits my bike?", statement, rare=True) and not about(
        "Which chain fits my bike?", statement
    )
    assert not about("Which chain fits the bike?", statement, rare=True)


def test_a_long_request_brings_along_what_it_speaks_of() -> None:
    text = "Shorten this: the kitchen is lovely, says Moreau, and my bike stands in it."
    assert [(tuple(thing.terms), thing.is_own) for thing in known_things(text)] == [
        (("bike", "stands"), True),
        (("kitchen",), False),
        (("Moreau",), False),
    ]
    assert [tuple(thing.terms) for thing in known_things(text + " so" * LONG_CHARS)] == [("bike", "stands")]


def test_who_tells_something_speaks_of_nothing_as_known() -> None:
    assert known_things("What shall my son Tobias play at his violin recital?")
    assert not known_things("My son Tobias has his violin recital on 21 June.")


def test_a_near_statement_is_about_whom_it_names_wherever_the_name_stands() -> None:
    statement = "Good, then the pathologist is Dr Hargreave, a pompous man."
    assert about("Give Dr Hargreave two lines.", statement, near=True)
    assert not about("Give Dr Hargreave two lines.", statement)


def test_a_title_names_nobody() -> None:
    assert [word for thing in known_things("Write a quote for Mr Pell.") for word in thing.terms] == ["Pell"]


def test_a_request_for_a_translation_speaks_of_nothing_as_known() -> None:
    assert not known_things('Translate into Polish for Mirek: "bring the rope".')
    assert not possible_names('translate into Polish for mirek: "bring the rope".')


def test_the_first_word_of_a_request_may_be_a_name() -> None:
    found = [word for thing in possible_names("Arbtek still silent, write a reminder") for word in thing.terms]
    assert "Arbtek" in found


def test_a_word_in_lower_case_may_be_a_name_where_it_is_english_and_tells_something() -> None:
    found = [word for thing in possible_names("write callum a reference for the hotel job") for word in thing.terms]
    assert found == ["Callum", "Job", "Reference", "Write"], "what has a definite article is no name"
    assert not possible_names("Wann kommt callum mit dem Wagen zu uns?")
    assert not possible_names("My son tobias has his violin recital on 21 June.")


def test_of_a_name_that_few_messages_hold_more_is_near_and_orders_come_too() -> None:
    (thing,) = known_things("Draft a letter to Moreau.")
    for holding, least in ((FEW_NAMED, LEAST_NEARNESS_OF_FEW), (FEW_NAMED + 1, LEAST_NEARNESS)):
        table = replace(
            passage_table(["Invoice Moreau for 12 pages."] * holding, users=range(holding)), tells=np.zeros(holding)
        )
        for cosine, comes in ((least, True), (least - 0.01, False)):
            asked = QueryMatches(cosines=np.full(holding, cosine), found={}, text="")
            found = told_of(table, thing, {"moreau": np.arange(holding)}, np.ones(holding, np.bool_), asked)
            assert bool(len(found)) is comes
