from __future__ import annotations

import copy
import pickle
from dataclasses import field, replace

import pytest
from palimpsest.domain.frozen import frozen


@frozen
class Point:
    x: int
    y: int = 0
    names: tuple[str, ...] = field(default_factory=tuple)


def test_values_with_the_same_fields_are_one_value() -> None:
    assert Point(1, 2) == Point(1, y=2) != Point(2, 1)
    assert {Point(1, 2), Point(1, 2), Point(2, 1)} == {Point(2, 1), Point(1, 2)}


def test_a_value_has_the_fields_that_it_declares_and_no_others() -> None:
    with pytest.raises(AttributeError):
        Point(1).z = 3  # type: ignore[attr-defined]


def test_a_changed_value_is_another_one() -> None:
    before = Point(1)
    assert (replace(before, y=2), before) == (Point(1, 2), Point(1))


def test_a_value_survives_being_copied_and_sent_to_another_process() -> None:
    point = Point(1, 2, ("here",))
    assert copy.copy(point) == pickle.loads(pickle.dumps(point)) == point
