"""
The body of a request, read whole or piece by piece within a limit, and the watch for a client that leaves.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager

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

    def __init__(
        self, receive: Receive, limit_bytes: int, when_left: Callable[[Callable[[], object] | None], bool]
    ) -> None:
        """
        Args:
            when_left: see `LEAVING` in `palimpsest.edge.http`.
        """
        self.failure: ClientGone | BodyTooLarge | None = None  # why there is no more to read
        self.has_arrived = False
        self._receive = receive
        self._room_bytes = limit_bytes
        self._when_left = when_left

    async def piece(self) -> bytes:
        """
        The next bytes, as they arrive.

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
        """
        Cancel what runs inside when the client leaves.

        Raises:
            ClientGone: it left, perhaps before.
        """
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
