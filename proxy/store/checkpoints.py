"""
Checkpoints: the write-ahead log is moved into the database file a while after each write.

SQLite does so at the end of whichever commit makes the log too long, and that commit waits for the disk: it was the
slowest answer of a hundred. So here it happens on a connection of its own.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import suppress

from proxy.store.connection import Connection

CHECKPOINT_SECONDS = 1.0  # after a write; what is written meanwhile is moved with it
MOVE = "PRAGMA wal_checkpoint(PASSIVE)"  # waits for nobody, and nobody for it
EMPTY = "PRAGMA wal_checkpoint(TRUNCATE)"  # waits for readers, and writers for it
IDLE_SECONDS = 3.0  # without a write: then nobody is there to wait
LONG_LOG_PAGES = 4000  # 16 MB; while writes never pause, a log is never moved whole, and grows


class Checkpoints:
    """
    Moves the log of one database. Call `written` after each commit.

    Args:
        writing: held by whoever writes.
    """

    def __init__(self, writing: asyncio.Lock) -> None:
        self.connection: Connection | None = None  # to move it on; None while the database is closed
        self._writing = writing
        self._writes = 0
        self._moving: asyncio.Task[None] | None = None

    def written(self) -> None:
        self._writes += 1
        if self._moving is None or self._moving.done():
            self._moving = asyncio.create_task(self._move())

    def stop(self) -> None:
        if self._moving is not None:
            self._moving.cancel()

    async def _move(self) -> None:
        """Move what is written each second; when nothing is written any more, give back the log's room."""
        moved, idle_seconds = -1, 0.0
        while idle_seconds < IDLE_SECONDS:
            await asyncio.sleep(CHECKPOINT_SECONDS)
            if moved == self._writes:
                idle_seconds += CHECKPOINT_SECONDS
                continue
            moved, idle_seconds = self._writes, 0.0
            await self._checkpoint(MOVE)
        await self._checkpoint(EMPTY)

    async def _checkpoint(self, sql: str) -> None:
        connection = self.connection
        if connection is None:
            return
        with suppress(sqlite3.Error):  # closed meanwhile, or the disk fails: the next write says so
            if sql == EMPTY:
                async with self._writing:
                    await connection.rows(EMPTY)
                return
            ((_, pages, _),) = await connection.rows(MOVE)
            if pages > LONG_LOG_PAGES:
                # what was written meanwhile is little; once that is moved too, the next write starts the log anew
                async with self._writing:
                    await connection.rows(MOVE)
