"""
Generations of the proxy: a request ends with the policy, the keys and the switches that it began with.

What they say is built anew whenever one of them changes, and the next request goes there. What the last request of an
earlier generation has left is closed behind it, so no stream is dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog
from starlette.types import ASGIApp, Receive, Scope, Send

log = structlog.get_logger()


@dataclass(eq=False)
class Generation:
    """
    An ASGI application that may be replaced.

    `give_up` cancels background work, and is called when the proxy stops; `close` waits for that work to end, and
    closes what only this generation uses: it is called after its last request.
    """

    app: ASGIApp
    give_up: Callable[[], Awaitable[None]]
    close: Callable[[], Awaitable[None]]
    running: int = 0  # requests


class Generations:
    """An ASGI application: the newest generation."""

    def __init__(self, first: Generation) -> None:
        self._newest = first
        self._earlier: set[Generation] = set()  # that are not closed yet
        self._closing: set[asyncio.Task[None]] = set()

    def __repr__(self) -> str:
        return f"<Generations [{self._newest.running} requests, {len(self._earlier)} earlier]>"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        mine = self._newest
        mine.running += 1
        try:
            await mine.app(scope, receive, send)
        finally:
            mine.running -= 1
            if mine is not self._newest and not mine.running:
                self._end(mine)

    def replace(self, newest: Generation) -> None:
        """Make this the generation that new requests use."""
        earlier, self._newest = self._newest, newest
        self._earlier.add(earlier)
        if not earlier.running:
            self._end(earlier)

    async def close(self) -> None:
        """Close all generations, even if requests are still running."""
        for generation in (*self._earlier, self._newest):
            await generation.give_up()
        for generation in (*self._earlier, self._newest):
            if generation.running or generation is self._newest:
                self._end(generation)
        await asyncio.gather(*self._closing)

    def _end(self, generation: Generation) -> None:
        closing = asyncio.create_task(self._close(generation))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def _close(self, generation: Generation) -> None:
        try:
            await generation.close()
        except Exception as failure:  # a guard: nobody waits for it
            log.error("what a policy used could not be closed", exc_info=failure)
        finally:
            self._earlier.discard(generation)
