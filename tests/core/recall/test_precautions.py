"""Precautions: what people tell in passing that may harm them, told from what they ask and plan."""

from __future__ import annotations

import pytest
from palimpsest.core.archive.chunking import WARNS, judged
from palimpsest.core.recall.precautions import concerns_food, concerns_health, is_precaution


@pytest.mark.parametrize(
    "text",
    [
        "My daughter turns 7 in October and is allergic to hazelnuts. Ideas for the party?",
        "I don't eat meat any more, by the way.",
        "we keep kosher at home, how wide should the second sink be?",
        "I've been on warfarin since the valve was replaced. How do I prune a fig tree?",
        "My mother-in-law gets migraines from aged cheese.",
        "I take mesalazine 800mg three times a day. The pharmacy has none until Thursday.",
        "My tablets: ramipril 5 mg in the morning.",
        "Dad is on low dose lamotrigine 100 mg since May.",
    ],
)
def test_an_illness_a_medicine_or_a_diet_that_a_user_tells_in_passing_is_kept_as_a_precaution(text: str) -> None:
    assert WARNS in judged(text, "user")


@pytest.mark.parametrize(
    "text",
    [
        "What are the symptoms of diabetes?",
        "Explain how a vegan diet changes the gut.",
        "I love hiking in the Alps.",
        "My pod takes on average 20 Mi and 3 ms.",
        "Fix the failing test in orders.py, I think the fixture is wrong.",
        "My knee hurts. " + "And here is the whole report that I wrote for the insurance. " * 8,
    ],
)
def test_questions_about_illness_plans_and_long_texts_are_no_precaution(text: str) -> None:
    assert WARNS not in judged(text, "user")


def test_only_what_a_user_says_is_a_precaution() -> None:
    assert is_precaution("I am allergic to nuts.") and WARNS not in judged("I am allergic to nuts.", "assistant")


def test_an_injury_forbids_exercise_and_no_food_and_an_aversion_forbids_food_alone() -> None:
    assert concerns_health("I tore my Achilles.") and not concerns_food("I tore my Achilles.")
    assert concerns_food("He hates mushrooms.") and not concerns_health("He hates mushrooms.")
    assert concerns_food("I am allergic to nuts.") and concerns_health("I am allergic to penicillin.")
    assert concerns_health("I have six stitches in my thumb.") and not concerns_health("The blanket has 120 stitches.")
    assert concerns_health("I'm intolerant to codeine.") and concerns_health("No gluten, not even in tablets.")
    assert concerns_health("I am allergic to latex.") and not concerns_food("I am allergic to penicillin and dust.")
    assert concerns_food("I am allergic to dust and nuts.") and concerns_food("I am allergic to pollen, nuts and soy.")


def test_an_aversion_may_be_one_of_anything_and_a_diet_is_one_of_food() -> None:
    for aversion in ("She hates balloons.", "I can't stand bullet lists."):
        assert concerns_food(aversion) and not concerns_food(aversion, dislikes=False)
    for diet in ("She hates meat, she is vegan.", "He doesn't eat nuts."):
        assert concerns_food(diet, dislikes=False)


def test_what_a_doctor_or_a_physio_forbids_is_a_precaution_without_my() -> None:
    for text in ("physio says no running for 4 weeks", "dentist said only soft food today"):
        assert is_precaution(text) and concerns_health(text)
    assert concerns_food("dentist said only soft food today")
    for text in ("The doctor says hello.", "the doc says no spaces in names", "The doctor said no problem."):
        assert not is_precaution(text)
