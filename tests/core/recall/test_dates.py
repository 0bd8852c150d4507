from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from palimpsest.core.recall.dates import MONTHS, QUESTION_CHARS, TOLD_WITHIN, periods


def at(year: int, month: int, day: int) -> float:
    return datetime(year, month, day, tzinfo=UTC).timestamp()


NOW = at(2023, 11, 15)


@pytest.mark.parametrize(
    ("text", "first", "end"),
    [
        ("Where was Tim on 16 July, 2022?", (2022, 7, 16), (2022, 7, 17)),
        ("Where was Tim on July 16th, 2022?", (2022, 7, 16), (2022, 7, 17)),
        ("What did Ann buy in October 2023?", (2023, 10, 1), (2023, 11, 1)),
        ("What did Ann buy in December of 2022?", (2022, 12, 1), (2023, 1, 1)),
        ("What happened in 2022?", (2022, 1, 1), (2023, 1, 1)),
        ("What happened in October?", (2023, 10, 1), (2023, 11, 1)),
        ("What happened on December 24?", (2022, 12, 24), (2022, 12, 25)),
    ],
)
def test_a_date_is_told_of_when_it_was_and_soon_after(
    text: str, first: tuple[int, int, int], end: tuple[int, int, int]
) -> None:
    assert periods(text, NOW) == ((at(*first), at(*end) + TOLD_WITHIN.total_seconds()),)


def test_each_date_of_a_text_is_a_period_of_its_own() -> None:
    assert len(periods("Was it May 3, 2022, June 2022, or 2021?", NOW)) == 3


@pytest.mark.parametrize("text", ["What may I do?", "On 31 June 2022?", "Version 12020", "It will march on."])
def test_what_is_no_date_or_never_was_is_no_period(text: str) -> None:
    assert periods(text, NOW) == ()


def test_a_pasted_text_asks_about_no_day() -> None:
    pasted = "2023-11-16 started\n" * 30
    assert len(pasted) > QUESTION_CHARS and periods(pasted, NOW) == ()


@given(st.text(st.sampled_from("May 2023,th1 March0"), max_size=40), st.floats(0, 4e9))
def test_every_period_ends_after_it_begins(text: str, now: float) -> None:
    for month in ("", *MONTHS[:2]):
        assert all(first < last for first, last in periods(f"{text} {month.capitalize()} {text}", now))
