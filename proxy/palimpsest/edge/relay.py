"""
The relay of an answer to the client: chunk by chunk as it comes; only its end waits for the archive. Whoever
listens is guarded: a failure there does not reach the client.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from time import perf_counter

import structlog
from starlette.types import Send

from palimpsest.domain import REQUEST_HEADER, Ending, Note, RawHeaders
from palimpsest.domain.ports import Listener, Prepared, UpstreamAnswer
from palimpsest.wire.refusal import Refusal

FIRST_ERROR_STATUS = 400
ID_HEADERS = (b"x-request-id", b"request-id", REQUEST_HEADER)  # where SDKs of OpenAI and Anthropic look, and our own

log = structlog.get_logger()


class Relay:
    """One answer on its way to the client, and to its listener; the upstream's or our own."""

    def __init__(self, send: Send, refusal: Refusal, request: str = "") -> None:
        self.has_begun = False
        self.status = 0  # that the client got; 0: none yet
        self.begun_at = 0.0  # by `perf_counter`
        self.code = ""  # of our own refusal
        self.ending: Ending | None = None
        self.log_fields: Mapping[str, str | int | float] = {}
        self._send = send
        self._refusal = refusal
        self._request = request.encode()
        self._added: RawHeaders = ()
        self._listen: Callable[[int, RawHeaders], Listener] | None = None
        self._listener: Listener | None = None

    def take(self, prepared: Prepared) -> None:
        """Attach the headers and the listener of a prepared request. Call `end` from here on, whatever happens."""
        self._added, self._listen, self.log_fields = prepared.headers, prepared.listen, prepared.log_fields
        if self._added and self.log_fields.get("note") != Note.OFF:
            self._added = (*self._added, (REQUEST_HEADER, self._request))

    async def forward(self, answer: UpstreamAnswer) -> None:
        """Send the whole answer to the client; raises `UpstreamUnreachable`: the upstream broke off."""
        ending = Ending.COMPLETE if answer.status < FIRST_ERROR_STATUS else Ending.REFUSED
        self._begin(answer.status, answer.headers)
        await self._start(answer.status, [*answer.headers, *self._added])
        async for data in answer:
            free_bytes = len(data) if self._listener is None else self._listener.feed(data)
            if free_bytes < len(data):
                if free_bytes:
                    await self._pass(data[:free_bytes])
                await self._ended(ending)
                data = data[free_bytes:]
            await self._pass(data)
        await self._ended(ending)
        await self._pass(b"", more=False)

    async def refuse(self, status: int, code: str, text: str) -> None:
        """Answer in the upstream's place, in the shape that the client's wire gives its errors."""
        self.code = code
        body = self._refusal(status, code, text)
        described = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        label = [(name, self._request) for name in ID_HEADERS if self._request]
        await self._start(status, [*described, *label, *(h for h in self._added if h[0] != REQUEST_HEADER)])
        await self._pass(body, more=False)

    def end(self, ending: Ending) -> Listener | None:
        """Tell the listener how the answer ended, and return it. Only the first call counts."""
        self._begin(0, ())
        self.ending = self.ending or ending
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.finish(ending)
        return listener

    async def _ended(self, ending: Ending) -> None:
        if (listener := self.end(ending)) is not None:
            self.log_fields = {**self.log_fields, **await listener.committed()}

    def _begin(self, status: int, headers: RawHeaders) -> None:
        if self._listen is not None:
            self._listener, self._listen = GuardedListener(partial(self._listen, status, headers)), None

    async def _start(self, status: int, headers: RawHeaders) -> None:
        self.has_begun, self.status, self.begun_at = True, status, perf_counter()
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def _pass(self, data: bytes, more: bool = True) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": more})


class GuardedListener:
    """Implements `ports.Listener` by another one, and never raises. One that fails hears nothing more."""

    def __init__(self, listen: Callable[[], Listener]) -> None:
        self._listener: Listener | None = None
        self._is_deaf = False
        try:
            self._listener = listen()
        except Exception:  # a guard, as are all in here: whatever fails, the bytes go on
            self._failed()

    def feed(self, data: bytes) -> int:
        if self._listener is not None and not self._is_deaf:
            try:
                return self._listener.feed(data)
            except Exception:
                self._failed()
        return len(data)

    def finish(self, ending: Ending) -> None:
        if self._listener is not None:
            try:
                self._listener.finish(ending)
            except Exception:
                self._failed()
                self._listener = None

    async def committed(self) -> Mapping[str, str | int]:
        """Wait until the recorded answer is committed, as long as the listener does; its fields for the log."""
        if self._listener is not None:
            try:
                return await self._listener.committed()
            except Exception:
                self._failed()
        return {}

    def _failed(self) -> None:
        self._is_deaf = True
        log.exception("memory failed, the answer goes on", where="overhear")
