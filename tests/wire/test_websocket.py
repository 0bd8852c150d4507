"""Frames are cut alike wherever their bytes are cut, and every byte is handed on in its order."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from palimpsest.wire.websocket import MessageReader, Piece, text_frame

from tests.examples import examples

LIMIT_BYTES = 1_000
MASK = b"\x01\xfe\x37\x00"


def frame(opcode: int, payload: bytes, fin: bool = True, mask: bytes = b"", reserved: int = 0) -> bytes:
    first, *rest = text_frame(payload, mask)
    assert first == 0x81
    return bytes([(0x80 if fin else 0) | reserved | opcode, *rest])


def read(data: bytes, cuts: list[int], limit_bytes: int = LIMIT_BYTES) -> tuple[list[Piece], bytes]:
    reader, pieces, at = MessageReader(limit_bytes), [], 0
    for cut in [*sorted({cut % (len(data) + 1) for cut in cuts}), len(data)]:
        pieces += reader.feed(data[at:cut])
        at = cut
    return pieces, reader.rest()


@settings(max_examples=examples(100))
@given(
    st.lists(st.tuples(st.sampled_from([1, 2, 8, 9, 10]), st.binary(max_size=300), st.booleans()), max_size=6),
    st.lists(st.integers(0, 10_000), max_size=8),
)
def test_texts_are_read_and_all_bytes_go_on(said: list[tuple[int, bytes, bool]], cuts: list[int]) -> None:
    data = b"".join(frame(opcode, payload, mask=MASK if masked else b"") for opcode, payload, masked in said)
    pieces, rest = read(data, cuts)
    assert b"".join(piece.raw for piece in pieces) + rest == data
    assert [piece.text for piece in pieces if piece.text is not None] == [
        said for opcode, said, _ in said if opcode == 1
    ]


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536])
def test_what_is_written_is_read_at_every_length(size: int) -> None:
    payload = os.urandom(size)
    for mask in (b"", MASK):
        ((piece,), rest) = read(text_frame(payload, mask), [], 1 << 20)
        assert (piece.text, rest) == (payload, b"")


def test_a_message_in_several_frames_is_one_also_around_a_ping() -> None:
    ping = frame(9, b"there?")
    parts = [frame(1, b"one ", fin=False), frame(0, b"two ", fin=False), ping, frame(0, b"three")]
    pieces, _ = read(b"".join(parts), [])
    assert pieces == [Piece(ping), Piece(parts[0] + parts[1] + parts[3], b"one two three")]


@pytest.mark.parametrize(
    "strange",
    [
        frame(1, b"compressed", reserved=0x40),
        frame(0, b"nothing begun"),
        frame(1, b"one", fin=False) + frame(1, b"another begun inside"),
        frame(2, b"bytes", fin=False) + frame(0, b"and more"),
    ],
)
def test_what_is_no_whole_text_is_handed_on_unread(strange: bytes) -> None:
    pieces, rest = read(strange, [])
    texts = [piece.text for piece in pieces if piece.text is not None]
    assert b"".join(piece.raw for piece in pieces) + rest == strange
    assert texts in ([], [b"another begun inside"])


@pytest.mark.parametrize("cut", [1, 4, 700, 3_000])
def test_a_message_above_the_limit_goes_on_as_it_comes_and_the_next_one_is_read(cut: int) -> None:
    large = frame(1, b"x" * 5 * LIMIT_BYTES)
    pieces, rest = read(large + frame(1, b"small"), [cut])
    assert b"".join(piece.raw for piece in pieces) == large + frame(1, b"small") and rest == b""
    assert [piece.text for piece in pieces if piece.text is not None] == [b"small"]
