"""
The database on a PostgreSQL server; every failure is a `MemoryFault` that says what to try.

Work runs on threads that have a connection each: some that read, and one that writes, so that whoever waits for the
right to write holds up no question. A connection that broke is opened anew by the next work on its thread.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import psycopg
from psycopg.pq import ConnStatus

from palimpsest.domain.errors import MemoryFault, faults
from palimpsest.store.engine import Ask, Engine, Row, Transaction, Whose
from palimpsest.store.engine.postgres.connection import (
    ServerConnection,
    connect,
    in_transaction,
    listed,
    read,
    read_all,
)
from palimpsest.store.engine.postgres.failures import RETRIED, advice_on, is_of_the_data, words_of
from palimpsest.store.engine.postgres.tables import make_tables
from palimpsest.store.engine.secret_mark import SecretMark
from palimpsest.store.engine.watch import OPENING, Watch

T = TypeVar("T")

READERS = 4  # as on SQLite, and one for what is asked outside of requests
WRITERS = 1  # what one process writes is written in the order in which it is asked for, as on SQLite
READ_MS = 30_000  # a last resort: whoever asks within a deadline interrupts sooner
WRITE_MS = 120_000  # likewise: removing a large tenant takes long
LOCK_MS = 10_000  # the archivist tries again after this
SILENT_MS = 10_000  # a reader's statements are short; one that writes many rows fills all buffers while it is busy
CONNECTED = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'palimpsest' AND pid <> pg_backend_pid()
"""
ATTEMPTS = 5  # at a transaction that the server has undone
FIRST_PAUSE_SECONDS = 0.01  # before the next; it doubles
SETTINGS = {"jit": "off", "idle_in_transaction_session_timeout": WRITE_MS}
READING = SETTINGS | {"statement_timeout": READ_MS, "default_transaction_read_only": "on"}
WRITING = SETTINGS | {"statement_timeout": WRITE_MS, "lock_timeout": LOCK_MS}


class Database(Engine):
    """
    One database of a server.

    `open` may fail and be tried again; until it has succeeded every read raises `MemoryFault`, and every write tries
    to open first. `close` must be awaited in the end: connections are threads.
    """

    files = None
    is_there = True  # what is there, only the server knows

    def __init__(self, url: str, password_file: Path | None = None, mark: SecretMark | None = None) -> None:
        self.url = url  # postgresql://user@host:port/database, without a password
        self.writes = 0  # committed
        self.replaced = 0
        self._password_file = password_file  # read whenever a connection is opened
        self._lanes: tuple[_Lane, _Lane] | None = None  # that reads, and that writes
        self._opening = asyncio.Lock()
        self._mark = mark  # of the secret that its rows must have been written with; None: whichever
        self._watch = Watch(self.place, psycopg.Error, words_of, advice_on, is_of_the_data)

    def __repr__(self) -> str:
        return f"<Database {self.place} [{self.error or ('open' if self._lanes else 'closed')}]>"

    @property
    def place(self) -> str:
        """See `Engine.place`: its server and name, without who asks."""
        return self.url.partition("://")[2].rpartition("@")[2].partition("?")[0]

    @property
    def error(self) -> str:
        return self._watch.error

    @property
    def is_healthy(self) -> bool:
        return self._lanes is not None and not self.error

    async def open(self) -> None:
        async with self._opening:
            if self._lanes is not None:
                return
            lanes = self._lane(READERS, READING, True), self._lane(WRITERS, WRITING, False)
            doing = f"opening {self.place}"
            try:
                with self._watch(OPENING):
                    await lanes[1].run(lambda connection: make_tables(connection, doing))
                    if self._mark is not None:
                        await lanes[1].run(partial(_keep_to, self._mark, doing))
            except BaseException:
                for lane in lanes:
                    lane.close()
                raise
            self._lanes = lanes

    async def follow_file(self) -> None:
        """Open the database anew where that has failed."""
        if self._lanes is None and self.error:
            await self.open()

    async def close(self) -> None:
        async with self._opening:
            lanes, self._lanes = self._lanes, None
            for lane in lanes or ():
                await asyncio.to_thread(lane.close)

    async def ask(self, work: Callable[[Ask], T], tenant: str = "") -> T:
        if self._lanes is None:
            raise MemoryFault(self.error or f"reading {self.place}: it is not open")
        reading = _Reading(work, tenant)
        with self._watch("reading"):
            asking = asyncio.ensure_future(self._lanes[0].run(reading))
            try:
                return await asyncio.shield(asking)
            except asyncio.CancelledError:
                asking.add_done_callback(lambda done: done.cancelled() or done.exception())
                await asyncio.shield(asyncio.to_thread(reading.stop))
                raise

    def ask_at_once(self, work: Callable[[Ask], T]) -> T | None:
        """Never: the server is too far away to keep the event loop waiting for it."""
        return None

    async def transact(self, work: Callable[[Transaction], T], whose: Whose | None = None) -> T:
        """
        As `Engine.transact`. What the server undoes for the sake of others is done again; so `work` may run twice.
        Raises `MemoryFault`: nothing was written, or it cannot be known whether; writing the same again does no harm.
        """
        await self.open()
        if self._lanes is None:
            raise MemoryFault(f"writing {self.place}: it was closed")
        with self._watch("writing"):
            result = await self._lanes[1].run(in_transaction(work, whose))
        self.writes += 1
        return result

    def _lane(self, count: int, settings: dict[str, Any], reads: bool) -> _Lane:
        silent_ms = SILENT_MS if reads else WRITE_MS
        return _Lane(lambda: connect(self.url, password_in(self._password_file), settings, silent_ms), count, reads)


def is_in_use(url: str, password_file: Path | None) -> bool:
    """Whether another process of ours is connected to this database. Raises `MemoryFault`: it cannot be opened."""
    try:
        with closing(connect(url, password_in(password_file), {}, SILENT_MS)) as connection:
            return read(connection, CONNECTED) != [(0,)]
    except psycopg.Error as cause:
        raise MemoryFault(f"opening {Database(url).place}: {words_of(cause)}") from cause


def password_in(file: Path | None) -> str | None:
    """The password that a file holds; None: there is no file. Raises `MemoryFault`: it cannot be read."""
    if file is None:
        return None
    with faults(OSError, f"reading {file} (store.password_file)"):
        return file.read_text().strip()


def _keep_to(mark: SecretMark, doing: str, connection: ServerConnection) -> None:
    if not mark.is_set(partial(read, connection), doing):
        in_transaction(mark.put, None)(connection)
        mark.is_set(partial(read, connection), doing)


class _Lane:
    """Threads with a connection each."""

    def __init__(self, connect: Callable[[], ServerConnection], count: int, reads: bool) -> None:
        self._connect = connect
        self._reads = reads
        self._threads = ThreadPoolExecutor(count, "palimpsest-postgres")
        self._own = threading.local()
        self._opened: set[ServerConnection] = set()

    async def run(self, work: Callable[[ServerConnection], T]) -> T:
        """What `work` makes of a connection. What the server has undone is tried again."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._run, work)

    def close(self) -> None:
        """Wait for what is under way, and close all connections."""
        self._threads.shutdown(cancel_futures=True)
        for connection in self._opened:
            connection.close()

    def _run(self, work: Callable[[ServerConnection], T]) -> T:
        for attempt in range(ATTEMPTS):
            connection = self._connection()
            try:
                return work(connection)
            except RETRIED:
                if attempt + 1 == ATTEMPTS:
                    raise
                time.sleep(FIRST_PAUSE_SECONDS * 2**attempt * random.uniform(0.5, 1.5))
            except psycopg.errors.ReadOnlySqlTransaction:
                connection.close()  # another may lead to the server that takes writes by now
                raise
            except psycopg.OperationalError:  # of a write it is not known whether its commit came through
                if not (connection.closed and self._reads and attempt == 0):
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _connection(self) -> ServerConnection:
        """The connection of this thread; another one where the server has ended it meanwhile."""
        own: ServerConnection | None = getattr(self._own, "connection", None)
        if own is not None and not _is_gone(own):
            return own
        if own is not None:
            own.close()
            self._opened.discard(own)
        self._own.connection = own = self._connect()
        self._opened.add(own)
        return own


def _is_gone(connection: ServerConnection) -> bool:
    """Whether an idle connection was ended; asks nobody."""
    if connection.closed:
        return True
    try:
        connection.pgconn.consume_input()
    except psycopg.OperationalError:
        return True
    return connection.pgconn.status != ConnStatus.OK


class _Reading(Generic[T]):
    """Several SELECTs in one piece of work; `stop` ends it, wherever it is."""

    def __init__(self, work: Callable[[Ask], T], tenant: str) -> None:
        self._work = work
        self._tenant = tenant
        self._connection: ServerConnection | None = None
        self._is_stopped = False
        self._changing = threading.Lock()
        self._ahead: dict[tuple[str, tuple[Any, ...]], list[Row]] = {}  # rows that were asked for ahead

    def __call__(self, connection: ServerConnection) -> T:
        with self._changing:
            self._connection = connection
        try:
            with connection.reading(self._tenant):
                return self._work(_Asking(self))
        finally:
            with self._changing:
                self._connection = None

    def stop(self) -> None:
        self._is_stopped = True
        with self._changing, suppress(psycopg.Error):
            if self._connection is not None:
                self._connection.cancel_safe(timeout=1.0)

    def read(self, sql: str, args: Sequence[Any] = ()) -> list[Row]:
        if self._ahead and (rows := self._ahead.pop((sql, tuple(listed(sql, args))), None)) is not None:
            return rows
        return read(self._usable(), sql, args)

    def ahead(self, statements: Sequence[tuple[str, Sequence[Any]]]) -> None:
        asked = {(sql, tuple(listed(sql, args))): (sql, args) for sql, args in statements}
        asked = {key: statement for key, statement in asked.items() if key not in self._ahead}
        if asked:
            self._ahead |= zip(asked, read_all(self._usable(), [*asked.values()]), strict=True)

    def drop(self) -> None:
        self._ahead.clear()

    def _usable(self) -> ServerConnection:
        if self._is_stopped or self._connection is None:
            raise psycopg.errors.QueryCanceled("interrupted")
        return self._connection


class _Asking:
    """The `Ask` of a piece of work."""

    def __init__(self, reading: _Reading[Any]) -> None:
        self._reading = reading
        self.ahead, self.drop = reading.ahead, reading.drop

    def __call__(self, sql: str, args: Sequence[Any] = ()) -> list[Row]:
        return self._reading.read(sql, args)
