"""Places of values in a JSON text."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st
from palimpsest.wire.json_scan import skip_space, walk

from tests.examples import examples

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), VALUES) | st.lists(VALUES), st.sampled_from([None, 1, "\t"]))
@settings(max_examples=examples(200))
def test_every_value_is_found_with_its_key_where_it_stands(value: object, indent: int | str | None) -> None:
    text = f" \n{json.dumps(value, indent=indent)}"
    found = [(key, json.loads(text[start:stop])) for key, (start, stop) in walk(text, skip_space(text, 0))]
    assert found == (list(value.items()) if isinstance(value, dict) else [("", each) for each in value])


def test_numbers_that_no_float_holds_and_repeated_keys_keep_their_places() -> None:
    text = '{"a": 1e999, "a":0.10000000000000000001}'
    assert [text[start:stop] for _, (start, stop) in walk(text, 0)] == ["1e999", "0.10000000000000000001"]
