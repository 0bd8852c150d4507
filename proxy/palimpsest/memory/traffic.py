"""Traffic: whether requests are being prepared, for background work that gives way to them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from time import monotonic
from typing import Any, TypeVar

QUIET_SECONDS = 0.1  # since the last request was prepared: ten look-ups follow one another, then there is a pause

T = TypeVar("T")


class Traffic:
    """Call `begin` and `end` around each request, on the event loop."""

    def __init__(self) -> None:
        self._under_way = 0
        self._ended_at = 0.0
        self._giving_way: set[asyncio.Task[Any]] = set()

    @property
    def is_quiet(self) -> bool:
        """Whether no request is being prepared, and none was a moment ago."""
        return not self._under_way and monotonic() - self._ended_at >= QUIET_SECONDS

    async def pause(self, seconds: float) -> None:
        """Wait until no request has been prepared for so long, counted from now on."""
        left_seconds = seconds
        while left_seconds > 0:
            await asyncio.sleep(left_seconds)
            left_seconds = seconds if self._under_way else self._ended_at + seconds - monotonic()

    def begin(self) -> None:
        """Note that a request has begun, which stops background work."""
        self._under_way += 1
        for task in self._giving_way:
            task.cancel()

    def end(self, _done: object = None) -> None:
        self._under_way -= 1
        self._ended_at = monotonic()

    async def run_beside(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Do background work, and return its result; None: a request stopped it, within milliseconds."""
        task = asyncio.create_task(work)
        self._giving_way.add(task)
        try:
            await asyncio.wait((task,))
            with suppress(asyncio.CancelledError):
                return task.result()
            return None
        finally:
            self._giving_way.discard(task)
            task.cancel()
