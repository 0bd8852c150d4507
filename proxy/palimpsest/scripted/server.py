"""
The server of the scripted provider: a real socket, with every request kept as it came.

What it says, and on which wire, is decided in its neighbours.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from itertools import count
from types import TracebackType
from typing import Protocol, Self

import orjson
from aiohttp import web

from palimpsest.domain import Json
from palimpsest.scripted import chat, messages, responses
from palimpsest.scripted.provider import Provider
from palimpsest.scripted.reply import Received, Reply, Script, in_turn

JSON, EVENT_STREAM = "application/json", "text/event-stream; charset=utf-8"
BODY_BYTES = 1 << 30  # the upstream under test refuses nothing for its size


class ReplyFormat(Protocol):
    """The format of an API's replies: one of the modules beside this one."""

    def refused(self, reply: Reply) -> bytes:
        """As an error."""

    def whole(self, got: Received, reply: Reply, number: int) -> Json:
        """As one object."""

    def events(self, said: Json, got: Received) -> Iterator[bytes]:
        """That object as a stream."""


WIRES: Mapping[str, ReplyFormat] = {"/chat/completions": chat, "/responses": responses, "/messages": messages}


class ScriptedUpstream:
    """
    A provider that answers by script and keeps every request that reached it.

    Use as an async context manager; `url` is then its base. `play` may change the script between requests, from any
    thread. `abandoned` counts requests whose caller left before the end.
    """

    def __init__(self, script: Script | None = None) -> None:
        self.script: Script = script or in_turn()
        self.received: list[Received] = []
        self.abandoned = 0
        self.port = 0
        self._permits = asyncio.Semaphore(0)
        self._provider = Provider()
        self._numbers = count(1)  # of ids: never twice the same, whatever a test clears

    def __repr__(self) -> str:
        return f"<ScriptedUpstream [{len(self.received)} received, {self.abandoned} abandoned] {self.url}>"

    @property
    def windows(self) -> dict[str, int]:
        """Windows in tokens that `/v1/models` names; empty at first."""
        return self._provider.windows

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def play(self, *replies: Reply | str) -> None:
        """Answer the next requests with these, in order; unused permits are void."""
        self.script = in_turn(*replies)
        self._permits = asyncio.Semaphore(0)

    def permit(self, pieces: int = 1) -> None:
        """Release that many pieces of lock-step replies; callable from any thread."""
        for _ in range(pieces):
            self._loop.call_soon_threadsafe(self._permits.release)

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        app = web.Application(client_max_size=BODY_BYTES)
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        got = Received(request.method, request.raw_path, dict(request.headers), await request.read())
        self.received.append(got)
        try:
            return await self._play(request, got)
        except (asyncio.CancelledError, ConnectionError):
            self.abandoned += 1
            raise

    async def _play(self, request: web.Request, got: Received) -> web.StreamResponse:
        reply, kind, pieces = self._say(got)
        await asyncio.sleep(reply.wait_seconds)
        response = web.StreamResponse(status=reply.status, headers={"content-type": kind, **reply.headers})
        if not kind.startswith("text/event-stream"):
            response.content_length = sum(map(len, pieces))
        await response.prepare(request)
        for number, piece in enumerate(pieces):
            if number == reply.cut_after:
                await asyncio.sleep(0)  # let what was written leave
                assert request.transport is not None
                request.transport.close()
                return response
            if reply.lockstep:
                await self._permits.acquire()
            await asyncio.sleep(reply.pace_seconds)
            await response.write(piece)
        await response.write_eof()
        return response

    def _say(self, got: Received) -> tuple[Reply, str, list[bytes]]:
        """The reply, its content type, and the pieces of its body, each written on its own."""
        number = next(self._numbers)
        if known := self._provider.answer(got, number):
            status, body = known
            return Reply(status=status), JSON, _halves(body)
        reply = self.script(got.json)
        if isinstance(reply, str):
            reply = Reply(reply)
        wire = next((wire for ending, wire in WIRES.items() if got.endpoint.endswith(ending)), None)
        if reply.body is not None:
            return reply, dict(reply.headers).get("content-type", JSON), _halves(reply.body)
        if reply.status >= 400:
            return reply, JSON, _halves((wire or chat).refused(reply))
        if wire is None:
            return reply, JSON, _halves({})
        said = wire.whole(got, reply, number)
        if wire is responses:
            self._provider.keep(got, said)
        if got.json.get("stream"):
            return reply, EVENT_STREAM, list(wire.events(said, got))
        return reply, JSON, _halves(said)


def _halves(body: Json | bytes) -> list[bytes]:
    written = body if isinstance(body, bytes) else orjson.dumps(body)
    return [written[: len(written) // 2], written[len(written) // 2 :]]
