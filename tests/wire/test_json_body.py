"""A body is one JSON object; whatever else it is says nothing, and says so where the request depends on it."""

from __future__ import annotations

from typing import Any

import pytest
from palimpsest.domain.errors import WireError
from palimpsest.wire.json_body import object_in, positive, read_object, token_count

NONE = [b"", b"{", b"[]", b'"text"', b"7", b"null", b"\xff", b'{"a": 1} {"b": 2}']


@pytest.mark.parametrize("body", NONE)
def test_what_is_no_object_is_refused_as_a_request_and_empty_as_a_piece_of_an_answer(body: bytes) -> None:
    with pytest.raises(WireError, match="reading the request body"):
        read_object(body)
    assert object_in(body) == {}


def test_an_object_is_read_as_it_stands() -> None:
    assert read_object(b' {"a": [1.5, null]} ') == object_in(b'{"a": [1.5, null]}') == {"a": [1.5, None]}


@pytest.mark.parametrize("value", [-1, 2**40 + 1, 2**63, True, 1.0, "1", None])
def test_a_number_of_tokens_that_no_model_reads_is_none(value: Any) -> None:
    assert (token_count(0), token_count(2**40), token_count(value)) == (0, 2**40, None)


@pytest.mark.parametrize(("value", "limit"), [(1, 1), (0, None), (-1, None), (True, None), (1.0, None), ("1", None)])
def test_a_limit_is_a_whole_number_above_zero(value: Any, limit: int | None) -> None:
    assert positive(value) == limit
