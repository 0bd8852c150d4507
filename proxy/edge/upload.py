"""
The body of a request, read whole or piece by piece within a limit, and the watch for a client that leaves.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.types import Receive


class ClientGone(Exception):
    """The client has closed the connection."""


class BodyTooLarge(Exception):
    """The request is larger than the policy allows."""


class Upload:
    """
    The body of one request, and the watch for the client leaving after it.

    Read it with `piece`, `rest` or `whole`; then run everything for this client inside `attended`.
    """

    def __init__(self, receive: Receive, limit_bytes: int) -> None:
        self.failure: ClientGone | BodyTooLarge | None = None  # why there is no more to read
        self._receive = receive
        self._room_bytes = limit_bytes
        self._arrived = asyncio.Event()

    @property
    def has_arrived(self) -> bool:
        return self._arrived.is_set()

    async def piece(self) -> bytes:
        """
        The next bytes as they come.

        Raises:
            ClientGone, BodyTooLarge: no more will come.
        """
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
            self._arrived.set()
        return data

    async def rest(self, first: bytes) -> AsyncIterator[bytes]:
        """`first`, then everything after it."""
        yield first
        while not self.has_arrived:
            yield await self.piece()

    async def whole(self) -> bytes:
        first = await self.piece()
        return first if self.has_arrived else b"".join([data async for data in self.rest(first)])

    @asynccontextmanager
    async def attended(self) -> AsyncIterator[None]:
        """
        Cancel what runs inside when the client leaves.

        Raises:
            ClientGone: it left.
        """
        task = asyncio.current_task()
        assert task is not None
        has_left = False

        async def watch() -> None:
            nonlocal has_left
            await self._arrived.wait()  # until then `piece` is the one who receives
            while (await self._receive())["type"] != "http.disconnect":
                pass
            has_left = True
            task.cancel()

        watcher = asyncio.create_task(watch())
        try:
            yield
        except asyncio.CancelledError:
            if has_left and not task.uncancel():
                raise ClientGone from None
            raise
        finally:
            watcher.cancel()
