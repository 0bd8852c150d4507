"""The order of candidates by a judge."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from palimpsest.core.recall.selection import KEPT, OFFERED, offered, reordered
from palimpsest.domain import Candidate, Memory

from tests.talking import NOW


def candidates(count: int, wishes: int = 0) -> list[Candidate]:
    return [
        Candidate(
            Memory(at, at, "c-1", at, "user", f"text {at}", NOW),
            1.0 - at / 1000,
            {"wish": (1, 0.5)} if at < wishes else {},
            1.0 if at < wishes else 0.9 - at / 1000,
        )
        for at in range(count)
    ]


def ids(found: Sequence[Candidate]) -> list[int]:
    return [candidate.memory.id for candidate in found]


def test_the_best_are_offered_without_wishes() -> None:
    assert offered(candidates(200, wishes=3)) == list(range(3, OFFERED + 3))
    assert offered(candidates(5)) == [0, 1, 2, 3, 4]


def test_what_is_chosen_comes_first_and_the_rest_behind_it() -> None:
    before = candidates(5)
    after = reordered(before, offered(before), [3, 1])
    assert ids(after) == [3, 1, 0, 2, 4]
    assert [one.probability for one in after] == [one.probability for one in before]


def test_what_was_not_offered_and_wishes_stay_where_they_are() -> None:
    before = candidates(100, wishes=2)
    after = reordered(before, offered(before), [10])
    assert ids(after)[:4] == [0, 1, 12, 2] and ids(after)[OFFERED + 2 :] == list(range(OFFERED + 2, 100))


@pytest.mark.parametrize("chosen", [[], [99], [-1], [10**9, -7]])
def test_a_choice_of_nothing_that_was_offered_changes_nothing(chosen: list[int]) -> None:
    before = candidates(5)
    assert reordered(before, offered(before), chosen) == tuple(before)


def test_half_of_what_was_offered_is_kept_at_most() -> None:
    before = candidates(OFFERED)
    after = reordered(before, offered(before), [*reversed(range(OFFERED))])
    assert ids(after)[:KEPT] == [*reversed(range(KEPT, OFFERED))] and ids(after)[KEPT:] == list(range(KEPT))


@given(st.integers(0, 120), st.integers(0, 4), st.lists(st.integers(-5, 130)))
def test_whatever_is_chosen_the_same_candidates_come_each_once(count: int, wishes: int, chosen: list[int]) -> None:
    before = candidates(count, min(wishes, count))
    after = reordered(before, offered(before), chosen)
    assert sorted(ids(after)) == ids(before)
    assert sorted(one.probability for one in after) == sorted(one.probability for one in before)
