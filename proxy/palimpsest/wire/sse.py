"""The tap of a stream of server-sent events: its payloads, and where its last event begins."""

from __future__ import annotations

import re
from codecs import BOM_UTF8

TERMINAL = b"[DONE]"  # payload of the event that ends a chat stream: clients stop reading there
TERMINAL_EVENTS = frozenset(  # names of those that end a stream of the other wires, and have something to say
    {b"message_stop", b"response.completed", b"response.incomplete", b"response.failed"}
)
DATA, EVENT = b"data:", b"event:"
SHORT_LINE_BYTES = 64  # what is kept of a line that cannot be kept: enough to know the terminal event
_LINE_END = re.compile(rb"\r\n?|\n")


class SSETap:
    """
    Overhear a stream of events in chunks of any size.

    After each `feed` forward the same bytes unchanged, up to `terminal_at` where that is set. The tap keeps only an
    unfinished event; call `close` at the end of the stream for what it still holds.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.overflowed = False
        # Where in the last chunk the end begins, 0 once it is behind: the terminal event, or, where that has something
        # to say, the line end without which nobody can read it.
        self.terminal_at: int | None = None
        # of payload. A longer stream is `overflowed`: no more payloads come, its end is still found
        self._room_bytes = limit_bytes
        self._line = bytearray()  # unfinished
        self._is_first = True  # of all lines
        self._data: list[bytes] = []  # lines of the unfinished event
        self._is_last = False  # the unfinished event is a terminal one by its name
        self._after_return = False  # a line feed that comes next belongs to the line end before

    def __repr__(self) -> str:
        return f"<SSETap [{self._room_bytes} bytes left, overflowed: {self.overflowed}]>"

    def feed(self, data: bytes) -> list[bytes]:
        """The payloads that this chunk completed, in order, without the terminal one."""
        payloads: list[bytes] = []
        is_behind = self.terminal_at is not None
        start = int(self._after_return and data.startswith(b"\n"))
        for end in _LINE_END.finditer(data, start):
            self._grow(data[start : end.start()])
            self._find_terminal(start)
            if self._is_last and self.terminal_at is None and self._line.startswith(DATA):
                self.terminal_at = end.start()
            self._end_line(payloads)
            start = end.end()
        self._grow(data[start:])
        self._find_terminal(start)
        if data:
            self._after_return = data.endswith(b"\r")
        if is_behind:
            self.terminal_at = 0
        return payloads

    def stop(self) -> None:
        """Keep no more payloads; the end of the stream is still found."""
        self.overflowed = True
        self._data.clear()
        del self._line[SHORT_LINE_BYTES:]

    def close(self) -> list[bytes]:
        """The payload of an event that the stream broke off before its blank line."""
        payloads: list[bytes] = []
        self._end_line(payloads)
        self._end_line(payloads)
        return payloads

    def _grow(self, piece: bytes) -> None:
        if not self.overflowed and len(self._line) + len(piece) > self._room_bytes:
            self.stop()
        self._line += piece[: SHORT_LINE_BYTES - len(self._line)] if self.overflowed else piece

    def _find_terminal(self, start: int) -> None:
        """Find the terminal payload also before its line has ended: whoever reads on could stop there."""
        if self.terminal_at is None and len(self._line) <= SHORT_LINE_BYTES and _payload(self._line) == TERMINAL:
            self.terminal_at = start

    def _end_line(self, payloads: list[bytes]) -> None:
        """Take in a finished line; an empty one ends an event, whose data becomes a payload."""
        if self._is_first:
            self._is_first = False
            if self._line.startswith(BOM_UTF8):  # may stand before a stream, by its standard
                del self._line[: len(BOM_UTF8)]
        if not self._line:
            self._is_last = False
            if self._data:
                payloads.append(b"\n".join(self._data))
                self._data.clear()
            return
        if self._line.startswith(EVENT):
            self._is_last = bytes(self._line[len(EVENT) :].strip(b" \t")) in TERMINAL_EVENTS
        payload = _payload(self._line)
        if payload is not None and payload != TERMINAL and not self.overflowed:
            self._data.append(payload)
            self._room_bytes -= len(payload)
        self._line.clear()


def _payload(line: bytearray) -> bytes | None:
    """What a `data` line says; None for comments and other fields."""
    return bytes(line[len(DATA) :].strip(b" \t")) if line.startswith(DATA) else None
