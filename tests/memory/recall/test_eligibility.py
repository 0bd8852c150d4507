"""Which passages may come: each message once, and those among wanted ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from palimpsest.memory.recall.eligibility import among, first_of_equals

from tests.core.shelves import shelf


def test_of_what_is_said_again_and_again_the_first_is_chosen_and_then_what_else_there_is() -> None:
    table = shelf(["again"] * 50 + ["something else", "yet another thing"])
    same = replace(table, fulls=np.array([7] * 50 + [8, 9]))
    assert first_of_equals(same, np.arange(52), 3).tolist() == [0, 50, 51]
    assert first_of_equals(same, np.arange(52)[::-1], 2).tolist() == [0, 1]


def test_wanted_values_are_found_among_many_whatever_bits_they_end_in() -> None:
    values = np.random.default_rng(0).integers(-(2**62), 2**62, 5000)
    wanted = [*values[::50].tolist(), int(values[1]) ^ (1 << 40), 7]
    assert among(values, wanted).tolist() == np.isin(values, wanted).tolist()
