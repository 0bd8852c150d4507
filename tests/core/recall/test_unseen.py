"""What the model sees of a text in another message is not told again; the rest is."""

from __future__ import annotations

import pytest
from palimpsest.core.recall.unseen import LEAST_REST_CHARS, unseen_from

TYPED = "Please move the invoicing worker out of the monolith and name it ledger; it must listen on port 7431."


def rest(text: str, *seen: str) -> str:
    return text[unseen_from(text, seen) :]


def test_a_text_that_nothing_quotes_is_unseen_whole() -> None:
    assert rest(TYPED) == TYPED
    assert rest(TYPED, "Something else.", TYPED[1:]) == TYPED


def test_a_text_that_a_summary_quotes_is_seen_whole() -> None:
    assert rest(TYPED, f"The user's first request was: {TYPED} Go on.") == ""
    assert rest("Use port 7431 for the worker.", "He said: Use port 7431 for the worker.") == ""


@pytest.mark.parametrize("stop", [70, 75, len(TYPED) - LEAST_REST_CHARS])
def test_of_a_text_that_is_quoted_up_to_a_word_the_rest_is_unseen_from_that_word_on(stop: int) -> None:
    left = rest(TYPED, "Nothing.", f"The user's first request was: {TYPED[:stop]}...")
    assert TYPED.endswith(left) and len(left) >= len(TYPED) - stop
    assert TYPED[: len(TYPED) - len(left)].endswith(" ") and len(left) - (len(TYPED) - stop) < len("monolith")


def test_the_longest_quotation_counts() -> None:
    assert rest(TYPED, TYPED[:70], TYPED) == ""


def test_what_is_too_short_to_be_a_quotation_is_unseen() -> None:
    assert rest("Go on.", "Go on. And on.") == "Go on."
    assert rest(" " * 80, " " * 90) == " " * 80
