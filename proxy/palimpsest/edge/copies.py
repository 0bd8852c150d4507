"""
Decoded copies of compressed bodies, for memory to read: no larger than it reads, and few large ones at a time.

A quarter of a megabyte of gzip can hold 256 megabytes; what is forwarded stays as it was sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

from palimpsest.domain import RawHeaders
from palimpsest.domain.errors import WireError
from palimpsest.wire.encoding import TooLarge, decoded

SMALL_BYTES = 1024 * 1024  # more than most conversations have: whoever compresses every request never waits for a turn
LARGE_AT_ONCE = 2  # as many as there are threads that read them


class Copies:
    """The decoded copies of a proxy."""

    def __init__(self, limit_bytes: int, patience_seconds: float) -> None:
        """
        Args:
            limit_bytes: of the decoded body; larger ones are not read.
            patience_seconds: longest wait for a turn.
        """
        self._limit_bytes = limit_bytes
        self._patience_seconds = patience_seconds
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
            async with asyncio.timeout(self._patience_seconds):
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
