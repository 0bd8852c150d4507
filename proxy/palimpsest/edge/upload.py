"""
The body of a request, read whole or piece by piece within a limit; the watch for a client that leaves; and decoded
copies for memory to read, no larger than it reads, and few large ones at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext

from starlette.types import Receive

from palimpsest.domain import RawHeaders
from palimpsest.domain.errors import WireError
from palimpsest.wire.encoding import TooLarge, decoded

SMALL_BYTES = 1024 * 1024  # more than most conversations have: whoever compresses every request never waits for a turn
LARGE_AT_ONCE = 2  # as many as there are threads that read them


class ClientGone(Exception):
    """The client has closed the connection."""


class BodyTooLarge(Exception):
    """The request is larger than the policy allows."""


class Upload:
    """
    The body of one request, and the watch for the client leaving after it.

    Read it with `piece`, `rest` or `whole`; then run everything for this client inside `attended`.
    """

    def __init__(
        self, receive: Receive, limit_bytes: int, when_left: Callable[[Callable[[], object] | None], bool]
    ) -> None:
        self.failure: ClientGone | BodyTooLarge | None = None  # why there is no more to read
        self.has_arrived = False
        self._receive = receive
        self._room_bytes = limit_bytes
        self._when_left = when_left

    async def piece(self) -> bytes:
        """The next bytes, as they arrive. Raises `ClientGone` or `BodyTooLarge`: no more will come."""
        message = await self._receive()
        data: bytes = message.get("body", b"")
        self._room_bytes -= len(data)
        if message["type"] == "http.disconnect":
            self.failure = ClientGone()
        elif self._room_bytes < 0:
            self.failure = BodyTooLarge()
        if self.failure is not None:
            raise self.failure
        if not message.get("more_body", False):
            self.has_arrived = True
        return data

    async def rest(self, first: bytes) -> AsyncIterator[bytes]:
        """`first`, then everything after it."""
        yield first
        while not self.has_arrived:
            yield await self.piece()

    async def whole(self) -> bytes:
        first = await self.piece()
        return first if self.has_arrived else b"".join([data async for data in self.rest(first)])

    @contextmanager
    def attended(self) -> Iterator[None]:
        """Cancel what runs inside when the client leaves, or has left, and raise `ClientGone`."""
        task = asyncio.current_task()
        assert task is not None
        has_left = False

        def leave() -> None:
            nonlocal has_left
            has_left = True
            task.cancel()

        if not self._when_left(leave):
            raise ClientGone
        try:
            yield
        except asyncio.CancelledError:
            if has_left and not task.uncancel():
                raise ClientGone from None
            raise
        finally:
            self._when_left(None)


class Copies:
    """The decoded copies of a proxy."""

    def __init__(self, limit_bytes: int, wait_seconds: float) -> None:
        self._limit_bytes = limit_bytes  # of the decoded body; larger ones are not read
        self._wait_seconds = wait_seconds  # longest wait for a turn
        self._turns = asyncio.Semaphore(LARGE_AT_ONCE)

    def copy(self, sent: bytes, headers: RawHeaders) -> AbstractAsyncContextManager[bytes | None]:
        """
        The decoded body, freed when the context ends.

        As it was sent where it is not compressed, and empty where it cannot be decoded: the provider alone is to make
        something of it. None where it is too large, or others are being read for too long.
        """
        encoding = b",".join(value for name, value in headers if name == b"content-encoding").decode("latin-1")
        return self._decoded(sent, encoding) if encoding else nullcontext(sent)

    @asynccontextmanager
    async def _decoded(self, sent: bytes, encoding: str) -> AsyncIterator[bytes | None]:
        small_bytes = min(SMALL_BYTES, self._limit_bytes)
        small = await asyncio.to_thread(_decoded, sent, encoding, small_bytes)
        if small is not None or small_bytes == self._limit_bytes:
            yield small
            return
        try:
            async with asyncio.timeout(self._wait_seconds):
                await self._turns.acquire()
        except TimeoutError:
            yield None
            return
        try:
            yield await asyncio.to_thread(_decoded, sent, encoding, self._limit_bytes)
        finally:
            self._turns.release()


def _decoded(sent: bytes, encoding: str, limit_bytes: int) -> bytes | None:
    try:
        return decoded(sent, encoding, limit_bytes)
    except TooLarge:
        return None
    except WireError:
        return b""
