"""The tap of an answer: its bytes decoded, cut into payloads within a limit, and the position of the last ones."""

from __future__ import annotations

from palimpsest.domain import RawHeaders
from palimpsest.domain.errors import WireError
from palimpsest.wire.encoding import decoder
from palimpsest.wire.sse import SSETap


class ResponseTap:
    """
    Overhear one answer, a stream of events or a plain body.

    Call `feed` with each chunk as the upstream sent it and forward as many of its leading bytes as it returns: the rest
    is the end of the answer. `heard` tells what was said, whenever it is asked.
    """

    def __init__(self, headers: RawHeaders, limit_bytes: int) -> None:
        by_name = {name.lower(): value for name, value in headers}
        self.streamed = by_name.get(b"content-type", b"").lstrip().lower().startswith(b"text/event-stream")
        self.overflowed = False
        self.deaf_because = ""  # why nothing (more) could be heard
        self._encoding = by_name.get(b"content-encoding", b"").decode("latin-1")
        self._decode = decoder(self._encoding, limit_bytes)
        if self._decode is None:
            self.deaf_because = f"content-encoding {self._encoding!r} is not decoded"
        length = by_name.get(b"content-length", b"")
        self._left_bytes = int(length) if length.isdigit() else None  # as sent, until the body is complete
        self._tap = SSETap(limit_bytes)
        self._room_bytes = limit_bytes
        self._payloads: list[bytes] = []

    def __repr__(self) -> str:
        deaf = self.deaf_because or "no"
        return f"<ResponseTap [{len(self._payloads)} payloads, overflowed: {self.overflowed}, deaf: {deaf}]>"

    def feed(self, data: bytes) -> int:
        """How many leading bytes of `data` stand before the end of the answer."""
        if self._left_bytes is not None:
            self._left_bytes -= len(data)
        said = self._decoded(data)
        if self.streamed:
            self._payloads += self._tap.feed(said)
            self.overflowed |= self._tap.overflowed
            if self._tap.terminal_at is not None:
                return self._tap.terminal_at if self._decode is bytes else 0  # its place in a compressed chunk: unknown
        else:
            self._keep(said)
        return 0 if self._left_bytes == 0 else len(data)

    def stop(self) -> None:
        """Keep nothing, as of an answer that is longer than the limit."""
        self.overflowed = True
        self._payloads.clear()
        self._tap.stop()
        self._room_bytes = -1

    def payloads(self) -> tuple[list[bytes], bool]:
        """What `reply` takes: the payloads so far, and whether they are events."""
        return self._payloads + self._tap.close(), self.streamed

    def _keep(self, said: bytes) -> None:
        """Keep a payload; where there is no more room, drop all of them."""
        self._room_bytes -= len(said)
        if self._room_bytes < 0:
            self.overflowed = True
            self._payloads.clear()  # half a JSON body says nothing
        elif said:
            self._payloads.append(said)

    def _decoded(self, data: bytes) -> bytes:
        """Undo the content encoding of a piece; b"" from the first that cannot be decoded."""
        if self._decode is None or self.deaf_because:
            return b""
        try:
            return self._decode(data)
        except WireError as cause:
            self.deaf_because = str(cause)
            return b""
