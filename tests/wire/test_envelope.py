"""An envelope carries bytes as they are, and says where two texts differ."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from palimpsest.domain.errors import WireError
from palimpsest.wire.envelope import difference, seal, unseal


@given(st.binary(), st.binary())
def test_what_stands_behind_the_head_comes_out_as_it_went_in(one: bytes, other: bytes) -> None:
    assert unseal(seal({"turn": "t"}, one, other)) == ({"turn": "t"}, one + other)


@pytest.mark.parametrize("sealed", [b"", b"no json\nrest", b"[1]\nrest"])
def test_what_is_no_envelope_is_refused(sealed: bytes) -> None:
    with pytest.raises(WireError):
        unseal(sealed)


@given(st.text("ab"), st.text("ab"))
def test_the_difference_makes_one_text_the_other(before: str, after: str) -> None:
    one, other = before.encode(), after.encode()
    start, stop, added = difference(one, other)
    assert one[:start] + added + one[stop:] == other


def test_only_what_was_inserted_is_told() -> None:
    assert difference(b"what was said", b"what NOBODY was said") == (5, 5, b"NOBODY ")
