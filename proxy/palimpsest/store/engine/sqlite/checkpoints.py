"""
Checkpoints: the write-ahead log is moved into the database file a while after each write.

SQLite does so at the end of whichever commit makes the log too long, and that commit waits for the disk: it was the
slowest answer of a hundred. So here it happens on a connection of its own.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import suppress

from palimpsest.store.engine.sqlite.connection import Connection

CHECKPOINT_SECONDS = 1.0  # after a write; what is written meanwhile is moved with it
MOVE = "PRAGMA wal_checkpoint(PASSIVE)"  # waits for nobody, and nobody for it
EMPTY = "PRAGMA wal_checkpoint(TRUNCATE)"  # waits for readers, and writers for it
IDLE_SECONDS = 3.0  # without a write: then nobody is there to wait
LONG_LOG_PAGES = 4000  # 16 MB; while writes never pause, a log is never moved whole, and grows


class Checkpoints:
    """Moves the log of one database. Call `written` after each commit. `writing`: held by whoever writes."""

    def __init__(
        self, writing: asyncio.Lock, pause_seconds: float = CHECKPOINT_SECONDS, idle_seconds: float = IDLE_SECONDS
    ) -> None:
        self.connection: Connection | None = None  # to move it on; None while the database is closed
        self._writing = writing
        self._pause_seconds = pause_seconds
        self._idle_seconds = idle_seconds
        self._writes = 0
        self._moving: asyncio.Task[None] | None = None

    def note_written(self) -> None:
        self._writes += 1
        if self._moving is None or self._moving.done():
            self._moving = asyncio.create_task(self._move())

    def stop(self) -> None:
        if self._moving is not None:
            self._moving.cancel()

    async def _move(self) -> None:
        """Move what is written into the file each second; give back the log's room when nothing more is written."""
        moved, idle_seconds, is_kept = -1, 0.0, True
        while is_kept:
            await asyncio.sleep(self._pause_seconds)
            idle_seconds += self._pause_seconds
            if moved != self._writes:
                moved, idle_seconds = self._writes, 0.0
                await self._checkpoint()
            elif idle_seconds >= self._idle_seconds:
                idle_seconds, is_kept = 0.0, await self._is_kept()

    async def _checkpoint(self) -> None:
        connection = self.connection
        if connection is None:
            return
        with suppress(sqlite3.Error):  # closed meanwhile, or the disk fails: the next write says so
            ((_, pages, _),) = await connection.rows(MOVE)
            if pages > LONG_LOG_PAGES:
                # what was written meanwhile is little; once that is moved too, the next write starts the log anew
                async with self._writing:
                    await connection.rows(MOVE)

    async def _is_kept(self) -> bool:
        """Try to empty the log; whether a reader, a backup for one, still needs it: then it is tried again."""
        connection = self.connection
        if connection is not None:
            with suppress(sqlite3.Error):  # as above
                async with self._writing:
                    ((busy, *_),) = await connection.rows(EMPTY)
                return bool(busy)
        return False
