"""Lasting wishes: told from tasks, habits and facts by their form."""

from __future__ import annotations

from pathlib import Path

import pytest
from palimpsest.core.archive.chunking import WISHES, judged
from palimpsest.core.recall.wishes import WEIGHTS, form, is_lasting_wish, is_sure_wish

HELD_OUT = Path(__file__).parents[2] / "everyday" / "wishes-held-out.txt"  # by an author whom no weight has seen


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Never use emojis when you write for me, please.", True),
        ("Whenever you quote a price for me, convert it to Swiss francs.", True),
        ("Bitte antworte mir immer auf Deutsch.", True),
        ('We always sign "Bea & Frank, Holloway & Daughter" and never "kind regards". Use "All the best".', True),
        ("What time is it?", False),
        ("Thanks, that's great!", False),
        ('Please shorten this: "Never mind, we will always have Paris."', False),
        ("Always " + "x " * 200, False),
    ],
)
def test_a_lasting_wish_is_no_task_and_no_material_for_one(text: str, expected: bool) -> None:
    assert is_lasting_wish(text) is expected


def test_most_wishes_of_an_author_whom_no_weight_has_seen_are_found_and_few_other_texts_taken_for_one() -> None:
    lines = HELD_OUT.read_text("utf-8").splitlines()
    wishes, others = ([line[2:] for line in lines if line.startswith(sign)] for sign in "+-")
    assert len(wishes) == 122
    assert len(others) == 176
    assert sum(map(is_lasting_wish, wishes)) >= 0.65 * len(wishes)
    assert sum(map(is_lasting_wish, others)) <= 0.15 * len(others)


@pytest.mark.parametrize(
    "text",
    [
        "Make sure to always use uv instead of pip.",
        "when you list medications, put the generic name first",
        "i'm coeliac so nothing with wheat when you suggest food",
        'Please stop beginning your replies with "Great question".',
        "never push to main",
        "I am new here. Always explain the abbreviations.",
        "Always use pnpm, never npm.",
        "From now on answer in at most three sentences.",
        "sign it Tina Brandt, Brandt & Sons, Unit 4, Kirk Mills. always",
        "No visitors in the cold store, no exceptions since the audit.",
        "The gate must under no circumstances stay open.",
        "Write a test for every new function.",
        "Suggest two options whenever I ask for a name.",
        'From now on sign my letters "Tina and her team", not best regards, please.',
        "terms for all offers from now: 20% in advance, no travel. remember that",
    ],
)
def test_an_order_for_the_future_is_a_wish_however_it_is_put(text: str) -> None:
    assert is_lasting_wish(text)


@pytest.mark.parametrize(
    "text",
    [
        "I've never borrowed any e-books from the library.",
        "I sold my racing bike, I'm getting around on a folder now.",
        "Use the attached file to make a chart of sales by month.",
        "Zawsze soli, zanim spróbuje.",
        "Never heard of it.",
        "Always a pleasure.",
        "never mind",
        "They closed the plant. Never saw this coming.",
        "Always sunny here in Porto.",
        "Never works on Windows.",
        "From now on my office is in Porto.",
        "I take the train, always.",
        "Use the attached file, as always",
        "No test failed, no exceptions raised",
        "Fixed, and no exceptions any more.",
        "No errors in the log, no exceptions so far",
        "Don't worry, no exceptions.",
        "Send the report to Ann. Prices rise, always.",
        "Under no circumstances would I have guessed that!",
        "Please give me eight names for a bakery, none with puns.",
        "Write me a usability test for a user of our trainer.",
        "perfect, write me a short notice for the door",
        "the shop reopens two weeks from now",
    ],
)
def test_habits_facts_and_tasks_are_no_wish_though_they_share_its_words(text: str) -> None:
    assert not is_lasting_wish(text)


def test_every_feature_has_a_weight() -> None:
    assert [*form("Answer briefly."), "bias"] == [*WEIGHTS]


def test_a_wish_beside_a_question_of_something_else_is_a_wish() -> None:
    assert WISHES in judged("Whenever you write for me, no exclamation marks please. What is Latin for rest?", "user")


def test_what_is_put_without_exception_or_always_at_its_end_is_surely_a_wish() -> None:
    assert is_sure_wish("No visitors in the cold store, no exceptions.")
    assert is_sure_wish("Sign it Tina Brandt. Always!")
    assert not is_sure_wish("No visitors in the cold store.")


def test_who_wants_to_know_why_something_is_never_done_forbids_nothing() -> None:
    assert not is_lasting_wish("a user on GitHub asks why we don't use sled. answer in one sentence")
    assert is_lasting_wish("We don't use sled, please never suggest it.")
    assert is_lasting_wish("Guests complained, that's why we never mention prices in emails.")
