"""Forms of times, numbers and texts on the page."""

from __future__ import annotations

from palimpsest.domain import Event, Rebuild
from palimpsest.features.page.presentation import EVENTS, REBUILDS, combined, count, inert, moment, size, tokens


def test_every_event_and_cause_has_words() -> None:
    assert set(EVENTS) == set(Event)
    assert set(REBUILDS) == set(Rebuild)


def test_what_is_not_known_is_no_zero() -> None:
    assert (count(None), count(0), count(12345.6), moment(None)) == ("-", "0", "12,346", "")
    assert moment(0.0) == "1970-01-01 00:00:00"


def test_signs_that_would_be_obeyed_are_shown_as_boxes() -> None:
    assert inert("a\x1b[31m\u202eb\n\tc") == "a\u25a1[31m\u25a1b\n\tc"
    assert inert(None) == "(erased)"


def test_a_query_keeps_its_other_values() -> None:
    assert combined({"user": "a&b", "cursor": "1"}, cursor="2") == "user=a%26b&cursor=2"


def test_tokens_are_the_providers_count_or_else_ours() -> None:
    turn = {"prompt_tokens": 100, "own_tokens": 70, "added_tokens": 20, "trimmed_tokens": 5}
    assert (tokens(turn), size(turn)) == (100, 105)
    assert (tokens(turn | {"prompt_tokens": None}), size(turn | {"prompt_tokens": None})) == (90, 95)
    assert tokens(turn | {"prompt_tokens": None, "own_tokens": None}) == 0
