"""The newest turns as a stream of server-sent events, read once a second however many readers there are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from time import monotonic

PERIOD_SECONDS = 1.0
READERS = 40  # at once: each holds a connection
STREAM_SECONDS = 4.0  # a stop of the proxy waits for open streams; a browser asks again
RETRY = b"retry: 1000\n\n"  # milliseconds until then


class Feed:
    """The rows of the newest turns as HTML, for all readers with the same key."""

    def __init__(self) -> None:
        self._readers = 0
        self._latest: dict[str, tuple[float, str]] = {}
        self._reading = asyncio.Lock()

    @property
    def is_full(self) -> bool:
        """Whether there are as many readers as may be."""
        return self._readers >= READERS

    async def events(self, key: str, read: Callable[[], Awaitable[str]]) -> AsyncIterator[bytes]:
        """
        An event whenever the rows change, for some seconds.

        Args:
            key: readers with the same share what one of them reads.
            read: the rows.
        """
        self._readers += 1
        sent, until = "", monotonic() + STREAM_SECONDS
        try:
            yield RETRY
            while monotonic() < until:
                rows = await self._rows(key, read)
                if rows != sent:
                    sent = rows
                    yield b"".join(b"data: %b\n" % line.encode() for line in rows.splitlines()) + b"\n"
                await asyncio.sleep(PERIOD_SECONDS)
        finally:
            self._readers -= 1
            if not self._readers:
                self._latest.clear()

    async def _rows(self, key: str, read: Callable[[], Awaitable[str]]) -> str:
        async with self._reading:
            at, rows = self._latest.get(key, (-PERIOD_SECONDS, ""))
            if monotonic() - at >= PERIOD_SECONDS:
                rows = await read()
                self._latest[key] = monotonic(), rows
            return rows
