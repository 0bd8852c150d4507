"""Elements of a large list, one at a time."""

from __future__ import annotations

import io
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from palimpsest.features.transfer import json_elements
from palimpsest.features.transfer.json_elements import elements

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(st.sampled_from('a"\\[]{},:é ')),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.sampled_from('k"\\]}')), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.lists(st.dictionaries(st.text(max_size=3), VALUES, max_size=3), max_size=4)


class Slowly(io.BytesIO):
    """A stream that gives a few bytes at a time."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(3)


@given(OBJECTS, st.booleans(), st.booleans())
def test_elements_are_those_of_the_list(values: list[Any], is_list: bool, is_indented: bool) -> None:
    option = orjson.OPT_INDENT_2 if is_indented else None
    data = (
        orjson.dumps(values, option=option) if is_list else b"\n".join(orjson.dumps(v, option=option) for v in values)
    )
    for stream in (io.BytesIO(data), Slowly(data)):
        assert [orjson.loads(element) for element in elements(stream)] == values


def test_what_is_cut_off_comes_last() -> None:
    assert [*elements(io.BytesIO(b'\xef\xbb\xbf [{"a": 1}, {"b": "[{'))] == [b'{"a": 1}', b'{"b": "[{']


@pytest.mark.parametrize("data", [b"", b"  ", b"[]", b"]]]}", b'"text', b"[1, 2, 3]"])
def test_where_there_are_no_objects_none_come(data: bytes) -> None:
    assert [*elements(io.BytesIO(data))] == []


def test_no_more_is_kept_than_one_element_and_a_chunk() -> None:
    kept = []

    class Watched(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            kept.append(size)
            return super().read(size)

    element = b'{"text": "' + b"x" * 1000 + b'"}'
    count = sum(1 for _ in elements(Watched(b"[" + b",".join([element] * 5000) + b"]")))
    assert count == 5000 and set(kept) == {json_elements.CHUNK_BYTES}
