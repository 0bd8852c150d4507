"""
A WebSocket with memory: requests of the Responses API (`response.create`) are prepared as over HTTP, and answers heard.

Everything else is passed on unchanged, in both directions; only the end of an answer waits for the archive, as with any
stream. Extensions are not negotiated, so that both directions can be read; pings, sizes and closing are the ends' own.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import orjson
import structlog
from starlette.types import Scope

from palimpsest.core.caller.received import ReceivedRequest
from palimpsest.domain import Ending, Json, RawHeaders
from palimpsest.domain.errors import CompactionRefused
from palimpsest.domain.ports import Preparer
from palimpsest.edge.key_limits import Limits, RequestRefused
from palimpsest.edge.relay import GuardedListener
from palimpsest.edge.tunnel import open_tunnel
from palimpsest.upstream.upgraded import UpgradedAnswer
from palimpsest.wire import responses
from palimpsest.wire.json_body import object_in
from palimpsest.wire.own_compaction import EVENTS, events_in
from palimpsest.wire.refusal import openai
from palimpsest.wire.websocket import MASK_BYTES, MessageReader, Piece, text_frame

if TYPE_CHECKING:
    from palimpsest.edge.provider_state import ProviderState

EXTENSIONS = b"sec-websocket-extensions"
QUEUE_BYTES = 1 << 20  # of pieces that wait for memory; more is not read from the socket
_CREATE, _ERROR = b'"response.create"', b'"error"'
_STREAM: RawHeaders = ((b"content-type", EVENTS.encode()),)

log = structlog.get_logger()


@dataclass(slots=True)
class SocketMemory:
    """What memory makes of the messages of one socket."""

    preparer: Preparer
    handshake: ReceivedRequest
    limits: Limits | None = None  # of what the requests of a key may name; None: nothing is refused
    state: ProviderState | None = None  # the rules for callers that share the provider's account; None: no rules needed
    _answers: deque[GuardedListener] = field(default_factory=deque, init=False)  # to requests that were sent, in order

    async def from_client(self, piece: Piece) -> tuple[bytes, bytes]:
        """What goes on to the provider for a message of the client's, and what is said back to it."""
        text = piece.text
        if text is None or _CREATE not in text or object_in(text).get("type") != "response.create":
            return piece.raw, b""
        request = self.handshake.with_body(text)
        try:
            if self.limits is not None:
                await self.limits(request)
            if self.state is not None:
                await self.state.check_body(request)
            prepared = await self.preparer.prepare(request, responses)
        except (RequestRefused, CompactionRefused) as refused:
            return b"", _error_frame(refused.http_status, refused.code, str(refused))
        log.info("a request over a WebSocket", **prepared.log_fields)
        if prepared.listen is not None:
            listener = GuardedListener(partial(prepared.listen, 200, _STREAM))
            if prepared.answer is not None:
                events = [*events_in(*prepared.answer)]
                for event in events:
                    listener.feed(_event(event))
                listener.finish(Ending.COMPLETE)
                await listener.committed()
                return b"", b"".join(map(text_frame, events))
            self._answers.append(listener)
        if prepared.body == text:
            return piece.raw, b""
        return text_frame(prepared.body, secrets.token_bytes(MASK_BYTES)), b""

    async def from_upstream(self, piece: Piece) -> tuple[bytes, bytes]:
        """A message of the provider's, unchanged, once it may be passed on."""
        if piece.text is not None and self._answers:
            event = _event(piece.text)
            is_error = _ERROR in piece.text and object_in(piece.text).get("type") == "error"
            if is_error or self._answers[0].feed(event) < len(event):
                listener = self._answers.popleft()
                listener.finish(Ending.UNANSWERED if is_error else Ending.COMPLETE)
                await listener.committed()
        return piece.raw, b""

    def end(self, ending: Ending) -> None:
        """The socket has ended, and with it all answers that were not whole."""
        while self._answers:
            self._answers.popleft().finish(ending)


async def converse(scope: Scope, answer: UpgradedAnswer, memory: SocketMemory, limit_bytes: int) -> None:
    """
    Send the client the upstream's 101, and pass on what both say until one of them ends. `limit_bytes`: of a message
    that memory looks at. Raises `UpstreamUnreachable`: as of `tunnel`.
    """
    client = open_tunnel(scope, answer, b"")
    if client.is_closing() or answer.transport.is_closing():
        client.close()
        return
    client_side = _Side(client, memory.from_client, limit_bytes)
    upstream_side = _Side(answer.transport, memory.from_upstream, limit_bytes)
    client_side.join(upstream_side)
    upstream_side.join(client_side)
    if answer.early:
        upstream_side.data_received(answer.early)
    passing = [asyncio.create_task(side.pass_on()) for side in (client_side, upstream_side)]
    try:
        await asyncio.gather(*passing)
    finally:
        for task in passing:
            task.cancel()
        memory.end(Ending.CLIENT_GONE if client_side.ended_first else Ending.UPSTREAM_BROKE)


class _Side(asyncio.Protocol):
    """One of the two connections: its messages are read, wait for memory, and go on to the other."""

    def __init__(
        self, own: asyncio.Transport, handle: Callable[[Piece], Awaitable[tuple[bytes, bytes]]], limit_bytes: int
    ) -> None:
        self.ended_first = False
        self._own = own
        self._handle = handle
        self._reader = MessageReader(limit_bytes)
        self._pieces: deque[Piece] = deque()
        self._waiting_bytes = 0
        self._has_news = asyncio.Event()
        self._pauses: set[str] = set()  # why its connection is not read
        self._failure: Exception | None = None
        self._is_over = False
        self._former = own.get_protocol()  # counts connections: it must hear that this one ended
        own.set_protocol(self)

    def join(self, other: _Side) -> None:
        self._other = other

    def data_received(self, data: bytes) -> None:
        for piece in self._reader.feed(data):
            self._pieces.append(piece)
            self._waiting_bytes += len(piece.raw)
        self._has_news.set()
        if self._waiting_bytes > QUEUE_BYTES:
            self.pause("memory")

    def pause_writing(self) -> None:
        self._other.pause("congestion")

    def resume_writing(self) -> None:
        self._other.resume("congestion")

    def connection_lost(self, exc: Exception | None) -> None:
        self._failure, self._is_over = exc, True
        self.ended_first = not self._other._is_over
        self._has_news.set()
        self._former.connection_lost(exc)

    def pause(self, why: str) -> None:
        """Read no more of this connection; a closed one has nothing to pause."""
        self._pauses.add(why)
        with suppress(RuntimeError):
            self._own.pause_reading()

    def resume(self, why: str) -> None:
        self._pauses.discard(why)
        if not self._pauses:
            with suppress(RuntimeError):
                self._own.resume_reading()

    def write(self, data: bytes) -> None:
        if data and not self._own.is_closing():
            self._own.write(data)

    async def pass_on(self) -> None:
        """Pass on what this side says, until it has ended and all of that is said."""
        async for piece in self._received():
            to_other, back = await self._guarded(piece)
            self._other.write(to_other)
            self.write(back)
        self._other.write(self._reader.rest())
        if self._failure is None:
            self._other._own.close()  # when it has sent what is left
        else:
            self._other._own.abort()  # as this one broke, so does that one

    async def _received(self) -> AsyncIterator[Piece]:
        while True:
            while self._pieces and self._failure is None:
                piece = self._pieces.popleft()
                self._waiting_bytes -= len(piece.raw)
                yield piece
                if self._waiting_bytes <= QUEUE_BYTES:
                    self.resume("memory")
            if self._is_over:
                return
            self._has_news.clear()
            await self._has_news.wait()

    async def _guarded(self, piece: Piece) -> tuple[bytes, bytes]:
        try:
            return await self._handle(piece)
        except Exception:  # a guard: memory may fail, what is said may not
            log.exception("memory failed, the message goes on", where="socket")
            return piece.raw, b""


def _event(payload: bytes) -> bytes:
    """A message as the event that it would be over HTTP."""
    kind = object_in(payload).get("type")
    return b"event: " + str(kind).encode("utf-8", "replace") + b"\ndata: " + payload.replace(b"\n", b" ") + b"\n\n"


def _error_frame(status: int, code: str, text: str) -> bytes:
    """A text frame with an error, in the form that OpenAI sends over WebSockets."""
    error: Json = {"type": "error", "status": status, **orjson.loads(openai(status, code, text))}
    return text_frame(orjson.dumps(error))
