"""JSON values of any depth are written and changed, and nothing calls itself for each level."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from palimpsest.wire.values import DEEPEST, changed, chars_of, dumps, loads, memory_bytes

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


def nested(depth: int, bottom: Any = "bottom") -> Any:
    value = bottom
    for level in range(depth):
        value = [value] if level % 2 else {"a": value, "b": 1}
    return value


@given(VALUES)
def test_what_is_written_reads_back_equal(value: Any) -> None:
    assert orjson.loads(dumps(value)) == value


@pytest.mark.repeats
@pytest.mark.parametrize("depth", [253, 300, 1000, 20_000])
def test_any_depth_is_written(depth: int) -> None:
    written = dumps(nested(depth))
    assert written.count("[") + written.count("{") == depth
    if depth <= 300:  # Python compares no deeper
        assert orjson.loads(written) == nested(depth)


def test_half_a_surrogate_pair_is_written() -> None:
    assert json.loads(dumps({"a": ["\ud800", {}, []]})) == {"a": ["\ud800", {}, []]}


def test_half_a_surrogate_pair_is_replaced_where_json_is_read_and_nothing_else_is_lost() -> None:
    assert loads(rb'{"a": ["\ud83d cut", "\ud83d\ude00", "\\ud83d", 1.5, null]}') == {
        "a": ["\ufffd cut", "\U0001f600", "\\ud83d", 1.5, None]
    }


@pytest.mark.parametrize("data", [b'{"a": "\\ud83d"', b'{"a": "\\ud83d", "b": NaN}', b'["\\ud83d", ' + b"[" * 20_000])
def test_what_is_no_json_is_refused_with_half_a_surrogate_pair_too(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - in the words of either parser
        loads(data)


@given(VALUES)
def test_a_copy_in_which_nothing_changes_is_equal(value: Any) -> None:
    assert changed(value, lambda text, name, owner: text) == value


def test_texts_and_names_are_changed_and_know_where_they_stand() -> None:
    seen = []

    def louder(text: str, name: str, owner: dict[str, Any]) -> str:
        seen.append((text, name, owner.get("type")))
        return text.upper()

    value = {"type": "t", "a": ["b", {"c": "d"}], "n": 1, "e": ("f",)}
    assert changed(value, louder, str.upper) == {"TYPE": "T", "A": ["B", {"C": "D"}], "N": 1, "E": ["F"]}
    assert sorted(seen) == [("b", "", None), ("d", "c", None), ("f", "", None), ("t", "type", "t")]


def test_names_that_become_equal_lose_no_value() -> None:
    copy = changed({"a": 1, "b": 2, "c": 3}, lambda text, name, owner: text, lambda name: "x")
    assert sorted(copy.values()) == [1, 2, 3]


@pytest.mark.parametrize("depth", [DEEPEST - 1, DEEPEST, DEEPEST + 1, 1000, 5000])
def test_what_is_nested_too_deep_becomes_its_json(depth: int) -> None:
    copy = changed(nested(depth), lambda text, name, owner: text.replace("bottom", "found"))
    assert orjson.loads(dumps(copy))
    if depth <= DEEPEST:
        assert copy == nested(depth, "found")
    else:
        assert "found" in dumps(copy) and "bottom" not in dumps(copy)


def test_all_texts_of_a_value_are_measured_however_deep() -> None:
    assert chars_of({"role": "user", "content": [{"data": "x" * 100, "n": 1}], "none": None}) == 104
    assert chars_of(nested(5000, "found")) >= len("found")


def test_a_value_takes_the_memory_of_all_that_is_in_it() -> None:
    text = "a" * 1_000
    assert 1_000 < memory_bytes(text) < 1_100
    assert 2 * memory_bytes(text) < memory_bytes({"a": text, "b": [text]}) < 2 * memory_bytes(text) + 1_000
    assert memory_bytes("\U0001f600" + text) > 3 * memory_bytes(text)
