"""
The beginning of an answer, read before any of it is passed on, to learn whether the prompt was too long, or whether the
upstream does not know the compaction that was asked for.

Only requests to which something was added are looked at, and those for compactions. An error is read up to
`TEXT_BYTES`; of a stream only what comes before the model says anything, as some providers refuse inside it; of any
other answer its first bytes. What should be a compaction is read until that is told.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

from palimpsest.domain import RawHeaders, TooLong
from palimpsest.domain.errors import UpstreamUnreachable, WireError
from palimpsest.domain.ports import UpstreamAnswer
from palimpsest.wire.encoding import decoder
from palimpsest.wire.json_body import object_in
from palimpsest.wire.provider_compaction import REFUSALS, holds_compaction
from palimpsest.wire.sse import SSETap
from palimpsest.wire.too_long import STATUSES, TEXT_BYTES, too_long, too_long_event

OK = 200
HELD_BYTES = 1024 * 1024  # of a stream: the event that opens a response quotes its instructions and tools
BEFORE_THE_MODEL = frozenset({"response.created", "response.queued", "response.in_progress"})
ERROR_OPENS = (b'{"error"', b'{"type":"error"')


class BufferedAnswer:
    """An `UpstreamAnswer` whose first bytes have been read; iterating starts with them again."""

    def __init__(self, answer: UpstreamAnswer) -> None:
        self.status = answer.status
        self.headers: RawHeaders = answer.headers
        self._answer = answer
        self._rest = aiter(answer)
        self._read: list[bytes] = []
        self._failure: UpstreamUnreachable | None = None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for data in self._read:
            yield data
        if self._failure is not None:
            raise self._failure
        async for data in self._rest:
            yield data

    async def aclose(self) -> None:
        await self._answer.aclose()

    async def look(self) -> TooLong | None:
        """What the beginning says about the length of the prompt; None: nothing."""
        view = _View(self.status, self.headers)
        await self._show(view)
        return view.length_error()

    async def lacks_compaction(self) -> bool:
        """Whether it shows, as the answer to a request for a compaction, that the upstream has none."""
        if self.status != OK:
            return self.status in REFUSALS
        view = _CompactionView(self.status, self.headers)
        await self._show(view)
        return view.told() is False

    async def _show(self, view: _View) -> None:
        """Read until a view is decided."""
        while not view.is_decided:
            try:
                data = await anext(self._rest)
            except StopAsyncIteration:
                break
            except UpstreamUnreachable as failure:
                self._failure = failure
                break
            self._read.append(data)
            view.feed(data)


class _View:
    """The beginning of an answer, as far as it is needed."""

    def __init__(self, status: int, headers: RawHeaders) -> None:
        by_name = {name.lower(): value for name, value in headers}
        kind = by_name.get(b"content-type", b"").lstrip().lower()
        self._decode = decoder(by_name.get(b"content-encoding", b"").decode("latin-1"), HELD_BYTES)
        self._status = status
        self._tap = SSETap(HELD_BYTES) if status == OK and kind.startswith(b"text/event-stream") else None
        self._text = bytearray()
        self._event = b""
        self.is_decided = self._decode is None or not (status in STATUSES or status == OK)

    def feed(self, data: bytes) -> None:
        assert self._decode is not None
        try:
            said = self._decode(data)
        except WireError:
            self.is_decided = True
            return
        if self._tap is None:
            self._text += said
            self._read_text()
            return
        self._read_events(self._tap.feed(said))
        self.is_decided = self.is_decided or self._tap.terminal_at is not None or self._tap.overflowed

    def _read_text(self) -> None:
        self.is_decided = len(self._text) >= TEXT_BYTES or (self._status == OK and not self._opens_an_error())

    def _read_events(self, events: Iterable[bytes]) -> None:
        self._event = next((event for event in events if object_in(event).get("type") not in BEFORE_THE_MODEL), b"")
        self.is_decided = bool(self._event)

    def length_error(self) -> TooLong | None:
        if self._tap is not None:
            return too_long_event(self._event or next(iter(self._tap.close()), b""))
        if self._status == OK:
            return too_long_event(bytes(self._text)) if self._opens_an_error() else None
        return too_long(self._status, bytes(self._text))

    def _opens_an_error(self) -> bool:
        """Whether the body is an error despite its status, or too short so far to tell."""
        begun = bytes(self._text[:TEXT_BYTES]).lstrip().replace(b" ", b"")
        return any(begun.startswith(error) or error.startswith(begun) for error in ERROR_OPENS)


class _CompactionView(_View):
    """As much of an answer as tells whether it is a compaction."""

    def __init__(self, status: int, headers: RawHeaders) -> None:
        super().__init__(status, headers)
        self._told: bool | None = None

    def told(self) -> bool | None:
        """Whether it is one; None: nothing tells."""
        return self._told if self._tap is not None else holds_compaction(bytes(self._text))

    def _read_text(self) -> None:
        self.is_decided = len(self._text) >= HELD_BYTES

    def _read_events(self, events: Iterable[bytes]) -> None:
        self._told = next((told for told in map(holds_compaction, events) if told is not None), None)
        self.is_decided = self._told is not None
