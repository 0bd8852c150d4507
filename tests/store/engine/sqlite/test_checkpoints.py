"""The log is moved into the file, and gives back its room when nobody needs it any more."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from palimpsest.store.engine.sqlite.checkpoints import Checkpoints
from palimpsest.store.engine.sqlite.connection import Connection

from tests.running import PATIENCE_SECONDS


async def test_log_that_a_reader_needs_is_emptied_when_the_reader_has_gone(tmp_path: Path) -> None:
    path, log = tmp_path / "some.db", tmp_path / "some.db-wal"
    checkpoints = Checkpoints(asyncio.Lock(), pause_seconds=0.01, idle_seconds=0.03)
    checkpoints.connection = connection = await Connection.open(path, busy_ms=10)
    for statement in ("PRAGMA journal_mode = WAL", "CREATE TABLE t(x)"):
        await connection.rows(statement)
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM t").fetchall()
        await connection.rows("INSERT INTO t VALUES (1)")
        checkpoints.note_written()
        await asyncio.sleep(0.3)
        assert log.stat().st_size > 0, "the reader has to see the table as it was"
    async with asyncio.timeout(PATIENCE_SECONDS):
        while log.stat().st_size > 0:  # noqa: ASYNC110 - a file says nothing
            await asyncio.sleep(0.01)
    checkpoints.stop()
    await connection.close()
