"""Cuts as ranges of occurrences."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from palimpsest.domain import Cut, NewCut
from palimpsest.domain.overflow import numbers_in, ranges


@given(st.sets(st.integers(0, 200)))
def test_ranges_hold_the_numbers_and_no_others(numbers: set[int]) -> None:
    runs = ranges(numbers)
    assert list(numbers_in(runs)) == sorted(numbers)
    assert all(after[0] > before[1] + 1 for before, after in pairwise(runs))


def test_new_messages_of_a_cut_are_kept_by_their_occurrences() -> None:
    made = NewCut(Cut(((3, 5),), ((7, 7),)), drops=((2, 3), (6, 6)), stubs=((9, 9),), clips=((4, 500),))
    kept = made.stored({2: 20, 3: 21, 4: 22, 6: 24})
    assert kept == Cut(((3, 5), (20, 21), (24, 24)), ((7, 7),), ((22, 500),)), "9 was not written"
