"""A long text is read piece by piece, and nothing of it is lost or read twice."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from palimpsest.wire.pieces import PIECE_CHARS, pieces, squeezed

LONG = {
    "lines": "a line of words\n" * 10_000,
    "words": "words and spaces  only " * 10_000,
    "one word": "w" * 200_000,
    "spaces": " " * 200_000,
    "a word between spaces": " " * 70_000 + "w" * 70_000 + " " * 70_000 + "v",
}


@pytest.mark.parametrize("text", ["", "short", *LONG.values()], ids=["nothing", "short", *LONG])
def test_pieces_are_the_text_and_none_is_long(text: str) -> None:
    found = list(pieces(text))
    assert "".join(text[start:stop] for start, stop in found) == text
    assert all(0 < stop - start <= PIECE_CHARS for start, stop in found)


def test_pieces_end_where_a_line_or_a_word_does() -> None:
    for name, end in (("lines", "\n"), ("words", " ")):
        text = LONG[name]
        assert all(text[stop - 1] == end for _, stop in list(pieces(text))[:-1])


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_a_long_text_is_squeezed_as_a_short_one(text: str) -> None:
    assert squeezed(text) == " ".join(text.split())


@settings(deadline=None)
@given(st.lists(st.sampled_from(["w" * 40_000, " ", "\n" * 30_000, "a b", "\t", " x" * 20_000]), max_size=6))
def test_wherever_a_piece_ends_words_stay_whole(parts: list[str]) -> None:
    text = "".join(parts)
    assert squeezed(text) == " ".join(text.split())
