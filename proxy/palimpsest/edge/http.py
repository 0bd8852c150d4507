"""
uvicorn's HTTP protocol with what it lacks: the raw request target, the connection behind an upgrade, and timeouts for
clients that stop in the middle of a request.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import structlog
from httptools import HttpRequestParser
from starlette.types import Message, Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from palimpsest.edge.request_id import new_id
from palimpsest.edge.room import BOUNDLESS, ROOM, Room
from palimpsest.wire.refusal import openai

HEAD_SECONDS = 60.0  # from a connection, or a request's first byte, to the end of its headers; nginx waits as long
SILENCE_SECONDS = 60.0  # between two pieces of a body, however long all of it takes; nginx again
CHECKS = 2  # in either timeout, which may thus last half as long again
LAST_SECONDS = 0.3  # between a stop and the end of a connection without a request: one may be on its way
HEAD_BYTES = 256 * 1024  # request line and headers; nginx takes 32 kB, Node 16, and what is larger no provider reads

SWITCH = "palimpsest.switch"
"""
Name in a scope's `extensions`, where a request asks for a WebSocket: a function that takes its connection out of HTTP.

Nothing may have been sent before. It returns the transport; the caller says everything from the status line on.
"""


CUT = "palimpsest.cut"
"""
Name in every scope's `extensions`: a function that closes the connection in the middle of an answer.

The client sees that the answer is not whole. An application that merely returned would do the same, and be reported.
"""

LEAVING = "palimpsest.leaving"
"""
Name in every scope's `extensions`: a function that takes what is to be called when the client's connection ends.

None: nothing any more. It returns False, and calls nothing, where the connection has ended already.
"""

log = structlog.get_logger()


def can_switch(scope: Scope) -> bool:
    """Whether the request asks for a WebSocket, and the server can give the connection away."""
    return SWITCH in scope.get("extensions", ())


class Connection(HttpToolsProtocol):
    """uvicorn's protocol (`http=` of its configuration), for which `GET http://elsewhere/path` is not `GET /path`."""

    head_seconds = HEAD_SECONDS
    silence_seconds = SILENCE_SECONDS
    last_seconds = LAST_SECONDS
    _is_declined = False  # this request asks for an upgrade that it does not get
    _declined_at: int | None = None  # what follows its headers, in the bytes that were parsed last
    _is_last = False  # the request that comes next is the last one
    _is_switched = False
    _is_lost = False
    _is_in_head = True  # headers are awaited, though perhaps not one byte of them is here
    _is_in_body = False
    _head_bytes = 0
    _began_at = _heard_at = 0.0
    _watch: asyncio.TimerHandle | None = None
    _left: Callable[[], object] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.room: Room = getattr(self.loop, "room", None) or BOUNDLESS
        self.room.enter(self)
        self._began_at = self._heard_at = self.loop.time()
        self._schedule_check()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._watch is not None:
            self._watch.cancel()
        super().connection_lost(exc)
        self._is_lost = True
        self.room.leave(self)
        if self._left is not None:
            self._left()

    def data_received(self, data: bytes) -> None:
        self._heard_at = self.loop.time()
        if not (self._is_in_head or self._is_in_body):
            self._await_head()  # also for bytes that begin no request
        super().data_received(data)
        while self._declined_at is not None:  # the parser skips the body of such a request: Java asks for h2c with one
            data, self._declined_at, self._is_declined = self._plain_head() + data[self._declined_at :], None, False
            self.parser = HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
            super().data_received(data)
        if self._is_in_head:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES and not self.transport.is_closing():
                self._refuse_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._await_head()

    def on_message_complete(self) -> None:
        if not self._is_declined:
            super().on_message_complete()
            self._is_in_body = False

    def on_headers_complete(self) -> None:
        wanted = {value.lower() for name, value in self.headers if name == b"upgrade"}
        is_switch = self.parser.should_upgrade() and self.parser.get_method() == b"GET" and wanted == {b"websocket"}
        self._is_declined = self.parser.should_upgrade() and bool(wanted) and not is_switch
        if self._is_declined:
            return
        super().on_headers_complete()
        self._is_in_head, self._is_in_body, self._head_bytes = False, True, 0
        extensions: dict[str, Any] = {CUT: self._cut, LEAVING: self._when_left, ROOM: self.room}
        self.scope["extensions"] = extensions
        if not self.url.startswith(b"/"):
            self.scope["raw_path"] = self.url  # the application has not run yet, and refuses it
        if self._is_last or self.room.is_busy or self.parser.should_upgrade():
            self.cycle.keep_alive = False  # the parser reads no second request behind an upgrade that is refused
        if is_switch:
            extensions[SWITCH] = self._switch
        if self.scope["http_version"] == "1.0":
            self.cycle.send = partial(_send_unframed, self.cycle, self.cycle.send)  # type: ignore[method-assign]

    def waits_since(self) -> float | None:
        """When this connection began to wait for a request, by the event loop's clock; None: it has one."""
        is_answered = self.cycle is None or self.cycle.response_complete
        is_idle = is_answered and not (self._is_in_body or self._is_switched)
        return (self._began_at if self._is_in_head else self._heard_at) if is_idle else None

    def close_idle(self) -> None:
        """Close this connection, which waits for a request, to make room for another."""
        self.transport.close()

    def shutdown(self) -> None:
        self._is_last = True
        if self._is_switched:
            self.transport.close()  # it has no end of its own that could be waited for
        elif self.cycle is None or self.cycle.response_complete:
            self.loop.call_later(self.last_seconds, self._end_if_idle)
        else:
            super().shutdown()

    def _end_if_idle(self) -> None:
        is_answered = self.cycle is None or self.cycle.response_complete
        if is_answered and not self._head_bytes and not self.transport.is_closing():
            self.transport.close()

    def _await_head(self) -> None:
        self._is_in_head, self._head_bytes, self._began_at = True, 0, self._heard_at

    def _schedule_check(self) -> None:
        self._watch = self.loop.call_later(min(self.head_seconds, self.silence_seconds) / CHECKS, self._close_stalled)

    def _close_stalled(self) -> None:
        """Close the connection if its client has stopped in the middle of a request, or check again later."""
        if self._is_switched or self.transport.is_closing():
            return
        now = self.loop.time()
        is_answered = self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete
        if is_answered or self.flow.read_paused:  # we are the ones who do not read on
            self._began_at = self._heard_at = now
        is_late_head = self._is_in_head and now - self._began_at > self.head_seconds
        if is_late_head or (self._is_in_body and now - self._heard_at > self.silence_seconds):
            log.info("a client stopped in the middle of a request; its connection is closed")
            self.transport.close()
        else:
            self._schedule_check()

    def _refuse_head(self) -> None:
        body = openai(431, "headers_too_large", f"the headers are larger than {HEAD_BYTES} bytes; send less")
        head = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/json\r\n"
        fields = b"connection: close\r\nx-request-id: %b\r\ncontent-length: %d\r\n\r\n" % (new_id().encode(), len(body))
        self.transport.write(head + fields + body)
        self.transport.close()

    def _unsupported_upgrade_warning(self) -> None:
        """Silenced: it recommends packages that would not be used here. The parser has said where it stopped."""
        stop = sys.exception()
        if self._is_declined and stop is not None:
            self._declined_at = stop.args[0]

    def _plain_head(self) -> bytes:
        """The line and headers of the request at hand, as if it asked for no upgrade."""
        line = b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())
        kept = (b"%b: %b" % header for header in self.headers if header[0] != b"upgrade")
        return b"\r\n".join((line, *kept, b"", b""))

    def _cut(self) -> None:
        self.cycle.disconnected = True  # nothing more of the answer is waited for
        self.transport.close()

    def _when_left(self, call: Callable[[], object] | None) -> bool:
        self._left = call
        self.flow.resume_reading()  # uvicorn pauses it behind a large body, and the end would go unnoticed
        return not self._is_lost

    def _switch(self) -> asyncio.Transport:
        self._is_switched = True
        self.cycle.disconnected = True  # whatever the application returns with, it is not waited for as an answer
        return self.transport


async def _send_unframed(cycle: RequestResponseCycle, send: Callable[[Any], Awaitable[None]], message: Message) -> None:
    """Send a part of an answer as it is: HTTP/1.0 has no chunks, and the end of the connection is that of a body."""
    cycle.chunked_encoding, cycle.expected_content_length = False, len(message.get("body", b""))
    await send(message)
