"""
The drain before a stop: after SIGTERM the proxy goes on taking requests for a while, and says that it is not ready.

A server that stops listening at once refuses what a load balancer still sends it until its next look at `/readyz`. And
one that closes a connection which a client keeps for its next request loses that request, if it is on its way. So an
answer to what comes during the drain says that it is the last one of its connection.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import copy_context
from types import FrameType

import structlog
from starlette.types import ASGIApp, Receive, Scope, Send

from palimpsest.edge.headers import answering_with

log = structlog.get_logger()


class Draining:
    """Whether this process has been told to stop, and the wait before its server hears of it."""

    def __init__(self, seconds: float) -> None:
        self.has_begun = False
        self._seconds = seconds

    @contextmanager
    def before_stop(self) -> Iterator[None]:
        """
        Hand SIGTERM to the server only when the drain is over; needs the running event loop.

        Nothing changes where no server handles SIGTERM, or outside the main thread, which alone may handle signals.
        Further SIGTERMs shorten nothing, as a supervisor may signal a worker beside its parent. SIGINT stops at once.
        """
        is_main = threading.current_thread() is threading.main_thread()
        stop = signal.getsignal(signal.SIGTERM) if is_main else None
        if not callable(stop):
            yield
            return
        loop, server_stops = asyncio.get_running_loop(), stop

        def begin(frame: FrameType | None) -> None:
            if not self.has_begun:
                self.has_begun = True
                log.info("stopping: requests are still accepted for a moment", seconds=self._seconds)
                loop.call_later(self._seconds, server_stops, signal.SIGTERM, frame)

        own = copy_context()  # the signal may meet a request, whose id its log lines would bear
        signal.signal(signal.SIGTERM, lambda _, frame: loop.call_soon_threadsafe(begin, frame, context=own))
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, stop)


class ClosingAnswers:
    """An ASGI application that adds `connection: close` to answers once the drain has begun."""

    def __init__(self, app: ASGIApp, draining: Draining) -> None:
        self._app = app
        self._draining = draining

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        closing = answering_with(send, b"connection", b"close") if self._draining.has_begun else send
        await self._app(scope, receive, closing)
