from __future__ import annotations

import copy
import pickle
from dataclasses import field, replace

import pytest
from palimpsest.domain import Fact, FactCategory, FactOrigin, FactSource
from palimpsest.domain.facts import by_tool
from palimpsest.domain.frozen import described_fields, frozen, json_value


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


HOME = Fact(subject="user", slot="home", value="Oslo", category=FactCategory.IDENTITY, source=by_tool("api"))


def test_what_is_shown_has_every_described_field_under_its_name_and_no_other() -> None:
    names = [name for name, _ in described_fields(Fact)]
    assert [*json_value(HOME)] == names and {"id", "pinned", "source"} <= {*names}
    assert names.count("number") == names.count("place") == names.count("is_pinned") == 0


def test_a_value_within_another_shows_only_what_applies() -> None:
    assert json_value(HOME)["source"] == {"origin": "tool", "tool": "api"}
    source = FactSource(FactOrigin.MESSAGE, "c-1", "t-1", 7, 0, 4, "user", "Oslo")
    assert json_value(source, has_defaults=False) == {
        **{"origin": "message", "conversation": "c-1", "turn": "t-1", "occurrence": 7, "stop": 4},
        **{"role": "user", "quote": "Oslo"},
    }
