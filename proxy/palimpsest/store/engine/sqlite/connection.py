"""
A SQLite connection with a thread of its own, on which whole pieces of work run in order.

Waking that thread and coming back costs some 0.1 ms on a busy machine, as much as ten small statements. So what is sent
there is a function with many statements, not a statement.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, Generic, TypeVar

import aiosqlite

from palimpsest.store.engine import ONCE, Ask, Row, Statement, Transaction
from palimpsest.store.engine.dialect import SQLITE

T = TypeVar("T")

CACHE_KB = (
    16_000  # of each connection: the inner pages of the full-text index of a million passages; the default is 2 MB
)
ITERATED_ROWS = 64  # as aiosqlite has it; no cursor is iterated over here
CACHED_STATEMENTS = 256  # all that are ever asked, prepared once
SLOW_SECONDS = 0.02  # of a small read: it takes 0.1 ms from memory, and a busy machine stops any thread for 10 ms
REST_SECONDS = 5.0  # without small reads at once, after a slow one: whatever keeps the disk busy may go on


class Connection(aiosqlite.Connection):
    """
    One SQLite connection of aiosqlite, which also runs work of many statements on its thread.

    Open it with `Connection.open`; `close` must be awaited in the end.
    """

    @classmethod
    async def open(cls, path: Path, busy_ms: int) -> Connection:
        """
        Args:
            busy_ms: how long a statement waits for a lock of another connection.

        Raises:
            sqlite3.Error: it cannot be opened.
        """
        opened = cls(partial(_connect, path, busy_ms), ITERATED_ROWS)
        await opened
        return opened

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """What `work` makes of the connection, on its thread. Cancelling does not stop work that has begun."""
        return await self.begin(work)

    def begin(self, work: Callable[[sqlite3.Connection], T]) -> asyncio.Future[T]:
        """The same without waiting; `work` is in the thread's line. Raises `sqlite3.ProgrammingError`: it is closed."""
        if not self._running or self._connection is None:
            raise sqlite3.ProgrammingError("the connection is closed")
        result: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._tx.put_nowait((result, partial(work, self._connection)))
        # the thread keeps its last work and what came of it, texts of users, until the next
        self._tx.put_nowait((None, _rest))
        return result

    async def rows(self, sql: str) -> list[Row]:
        """Rows of one statement without arguments."""
        return await self.run(lambda connection: connection.execute(sql).fetchall())

    def stop_statement(self) -> None:
        """End the statement that is running, if there is one."""
        if self._connection is not None:
            with suppress(sqlite3.Error):  # it is being closed
                self._connection.interrupt()


class NearReader:
    """
    A connection for small reads on the thread of whoever asks.

    A few rows by their keys take less than to hand them to a thread. They stand in memory as a rule; whoever is
    answered from a disk once asks elsewhere for a while.
    """

    def __init__(self, path: Path) -> None:
        """Call it on a thread: it reads the schema. Raises `sqlite3.Error`: it cannot be opened."""
        self._connection = _connect(path, busy_ms=0, is_of_one_thread=False)
        self._rests_until = 0.0  # by `monotonic`
        for statement in ("PRAGMA query_only = ON", "SELECT count(*) FROM sqlite_master"):
            self._connection.execute(statement).fetchall()

    def ask(self, work: Callable[[Ask], T]) -> T | None:
        """The result of `work` on a few SELECTs; None if it is not available at once."""
        began = monotonic()
        if began < self._rests_until:
            return None
        try:
            return work(self._read)
        except sqlite3.Error:  # locked, for one: who asks on a thread waits, or learns what is wrong
            return None
        finally:
            ended = monotonic()
            if ended - began > SLOW_SECONDS:
                self._rests_until = ended + REST_SECONDS

    def close(self) -> None:
        self._connection.close()

    def _read(self, sql: str, args: Sequence[Any] = ()) -> list[Row]:
        return self._connection.execute(SQLITE[sql], args).fetchall()


class FileTransaction:
    """Reads and writes on the connection's own thread, in the order in which they are asked for."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._given: dict[str, int] = {}  # by table, the last id that is not in it yet

    def read(self, sql: str, args: Sequence[Any] = ()) -> list[Row]:
        return self._connection.execute(SQLITE[sql], args).fetchall()

    def new_ids(self, table: str, count: int) -> Sequence[int]:
        found = self._connection.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
        last = max(self._given.get(table, 0), found[0] if found else 0)
        self._given[table] = last + count
        return range(last + 1, last + 1 + count)

    def reserve(self, counts: Mapping[str, int]) -> None:
        """Do nothing: ids need no reservation here."""

    def keep_order(self, table: str) -> None:
        """Do nothing: SQLite has one writer at a time."""

    def write_together(self, statements: Sequence[Statement]) -> None:
        for sql, rows in statements:
            self.write(sql, rows)

    def write(self, sql: str, rows: Sequence[Sequence[Any]] = ONCE) -> None:
        """Run one statement once for each row of arguments."""
        if rows is ONCE:
            self._connection.execute(SQLITE[sql])
        elif rows:
            self._connection.executemany(SQLITE[sql], rows)


class InterruptibleRead(Generic[T]):
    """Several SELECTs in one piece of work; `stop` ends it before its next statement."""

    def __init__(self, work: Callable[[Ask], T]) -> None:
        self._work = work
        self._is_stopped = False

    def stop(self) -> None:
        self._is_stopped = True

    def __call__(self, connection: sqlite3.Connection) -> T:
        def read(sql: str, args: Sequence[Any] = ()) -> list[Row]:
            if self._is_stopped:
                raise sqlite3.OperationalError("interrupted")
            return connection.execute(SQLITE[sql], args).fetchall()

        return self._work(read)


def in_transaction(work: Callable[[Transaction], T]) -> Callable[[sqlite3.Connection], T]:
    """All of it in one transaction, undone where it raises."""

    def run(connection: sqlite3.Connection) -> T:
        connection.execute("BEGIN IMMEDIATE")
        try:
            result = work(FileTransaction(connection))
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # some failures have undone it by themselves
                connection.execute("ROLLBACK")
            raise
        return result

    return run


def _connect(path: Path, busy_ms: int, is_of_one_thread: bool = True) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path,
        timeout=busy_ms / 1000,
        isolation_level=None,
        cached_statements=CACHED_STATEMENTS,
        check_same_thread=is_of_one_thread,
    )
    connection.execute(f"PRAGMA cache_size = -{CACHE_KB}")
    return connection


def _rest() -> None:
    """Work that holds nothing."""
