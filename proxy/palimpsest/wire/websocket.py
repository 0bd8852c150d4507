"""
Frames of a WebSocket (RFC 6455) as they pass: the bytes as they came, and the texts that they carry.

Only whole messages of text are read; all other frames (control, binary, compressed) are handed on as they are.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from palimpsest.domain.frozen import frozen

TEXT, CONTINUATION, FIRST_CONTROL = 0x1, 0x0, 0x8  # opcodes
_FIN, _RESERVED, _OPCODE = 0x80, 0x70, 0x0F  # of a frame's first byte; reserved bits mean an extension
_MASKED, _LENGTH = 0x80, 0x7F  # of its second
_SHORT, _LONG = 126, 127  # lengths that stand for two and for eight bytes of length behind them
MASK_BYTES = 4


@frozen
class Piece:
    """One or more whole frames: the bytes to hand on, and the message that they are; None: none that is read."""

    raw: bytes
    text: bytes | None = None


class MessageReader:
    """Cuts what one side says into pieces. A message larger than the limit is handed on frame by frame, unread."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._buffer = bytearray()
        self._through = 0  # bytes of a large frame that are still to come, and are handed on as they do
        self._frames: list[bytes] = []  # of an unfinished message of text
        self._texts: list[bytes] = []
        self._held_bytes = 0

    def feed(self, data: bytes) -> Iterator[Piece]:
        """The pieces that these bytes complete; what they leave unfinished is kept."""
        self._buffer += data
        while self._buffer:
            if self._through:
                part = bytes(self._buffer[: self._through])
                self._through -= len(part)
                del self._buffer[: len(part)]
                yield Piece(part)
                continue
            head = _head(self._buffer)
            if head is None:
                return
            start, stop, mask = head
            if self._held_bytes + stop - start > self._limit_bytes:
                yield from self._given_up()
                self._through = stop
            elif len(self._buffer) < stop:
                return
            else:
                raw = bytes(self._buffer[:stop])
                del self._buffer[:stop]
                yield from self._take_frame(raw, start, mask)

    def rest(self) -> bytes:
        """What is still held, at the end of a connection."""
        return b"".join((*self._frames, self._buffer))

    def _take_frame(self, raw: bytes, start: int, mask: bytes) -> Iterator[Piece]:
        first, opcode = raw[0], raw[0] & _OPCODE
        is_next = bool(self._frames) and opcode == CONTINUATION
        if first & _RESERVED or not (is_next or opcode == TEXT) or (self._frames and not is_next):
            if opcode < FIRST_CONTROL:
                yield from self._given_up()
            yield Piece(raw)
            return
        self._frames.append(raw)
        self._texts.append(_masked(raw[start:], mask))
        self._held_bytes += len(raw)
        if first & _FIN:
            whole = Piece(b"".join(self._frames), b"".join(self._texts))
            self._clear()
            yield whole

    def _given_up(self) -> Iterator[Piece]:
        if self._frames:
            yield Piece(b"".join(self._frames))
        self._clear()

    def _clear(self) -> None:
        self._frames, self._texts, self._held_bytes = [], [], 0


def text_frame(text: bytes, mask: bytes = b"") -> bytes:
    """A message of text in one frame; a client's is masked by four random bytes."""
    flag, size = _MASKED if mask else 0, len(text)
    if size < _SHORT:
        length = bytes([flag | size])
    elif size < 1 << 16:
        length = struct.pack("!BH", flag | _SHORT, size)
    else:
        length = struct.pack("!BQ", flag | _LONG, size)
    return bytes([_FIN | TEXT]) + length + mask + _masked(text, mask)


def _head(buffer: bytearray) -> tuple[int, int, bytes] | None:
    """Where the payload of the first frame starts and stops, and its mask; None: its head is not whole."""
    if len(buffer) < 2:
        return None
    size, at = buffer[1] & _LENGTH, 2
    wide = {_SHORT: "!H", _LONG: "!Q"}.get(size)
    if wide is not None:
        at += struct.calcsize(wide)
        if len(buffer) < at:
            return None
        (size,) = struct.unpack_from(wide, buffer, 2)
    mask = b""
    if buffer[1] & _MASKED:
        mask = bytes(buffer[at : at + MASK_BYTES])
        at += MASK_BYTES
        if len(buffer) < at:
            return None
    return at, at + size, mask


def _masked(data: bytes, mask: bytes) -> bytes:
    """The data with the mask put on, or taken off again; as one large number, which takes no loop."""
    if not mask or not data:
        return data
    repeated = (mask * (len(data) // MASK_BYTES + 1))[: len(data)]
    return (int.from_bytes(data) ^ int.from_bytes(repeated)).to_bytes(len(data))
