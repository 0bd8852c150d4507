"""
The database: one SQLite file with one writer and a few readers; every failure is a `MemoryFault` that says what to try.

SQLite in WAL mode: readers never wait for the writer, and a reader that is no longer wanted is interrupted. A deferred
transaction that turns into a write fails at once whatever the busy timeout is, so every write is `BEGIN IMMEDIATE`. A
damaged file is never touched: it stays as it is, for its owner to look at.
"""

from __future__ import annotations

import asyncio
import sqlite3
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TypeVar

import structlog

from palimpsest.domain.errors import MemoryFault, faults
from palimpsest.store.data_dir import FOLDER_MODE, refuse_network_file_system
from palimpsest.store.engine import TRUNCATE_ATTEMPTS, Ask, Engine, Files, Transaction, Whose
from palimpsest.store.engine.secret_mark import SecretMark
from palimpsest.store.engine.sqlite.checkpoints import EMPTY, Checkpoints
from palimpsest.store.engine.sqlite.connection import (
    Connection,
    FileTransaction,
    InterruptibleRead,
    NearReader,
    in_transaction,
)
from palimpsest.store.engine.sqlite.failures import LOCKED, REOPEN_AFTER, advice_on, code_of, is_of_the_data
from palimpsest.store.engine.sqlite.tables import APPLICATION_ID, make_tables
from palimpsest.store.engine.watch import OPENING, Watch
from palimpsest.store.version import refusal_of

T = TypeVar("T")

log = structlog.get_logger()

READERS = 3  # reads of one request follow each other; more requests than this rarely look at the same instant
READER_BUSY_MS = 100  # a reader waits only while the log is recovered; well below the 250 ms of a request
WRITER_BUSY_MS = 2000  # another process's batch takes milliseconds; the archivist tries again after this
INTERRUPT_SECONDS = 0.01  # between two interrupts of a read that nobody waits for
LOG_BYTES = 4 * 1024 * 1024  # what a log keeps of its room once it was moved whole; some seconds of heavy use
TRUNCATE_PAUSE_SECONDS = 0.1  # between two attempts to empty the log; each waits `WRITER_BUSY_MS` for readers itself
FILE_MODE = 0o600  # other people's conversations
OTHERS = stat.S_IRWXG | stat.S_IRWXO

# In one statement: between two of them another worker may have made the tables of an empty file.
IS_FOREIGN = f"""
SELECT application_id <> {APPLICATION_ID} AND (application_id <> 0 OR EXISTS (SELECT 1 FROM sqlite_master))
FROM pragma_application_id
"""


class Database(Engine):
    """
    One SQLite file.

    `open` may fail and be tried again; until it has succeeded every read raises `MemoryFault`, and every write tries
    to open first. `close` must be awaited in the end: connections are threads.
    """

    def __init__(
        self,
        path: Path,
        synchronous: Literal["NORMAL", "FULL"] = "NORMAL",
        # called when the file turns out to have been removed or replaced while it was open
        on_replaced: Callable[[], None] = lambda: None,
        mark: SecretMark | None = None,  # of the secret that its rows must have been written with; None: whichever
    ) -> None:
        self.path = path
        self.replaced = 0  # times that this happened
        self._on_replaced = on_replaced
        self._identity: tuple[int, int] | None = None  # of the file that is open
        self.writes = 0  # committed
        self._synchronous = synchronous
        self._writer: Connection | None = None
        self._idle: asyncio.Queue[Connection] | None = None  # readers
        self._near: NearReader | None = None
        self._opened: list[Connection] = []
        self._writing = asyncio.Lock()
        self._checkpoints = Checkpoints(self._writing)
        self._must_reopen = False
        self._mark = mark
        self._watch = Watch(str(path), sqlite3.Error, str, advice_on, is_of_the_data, self._note)

    def __repr__(self) -> str:
        return f"<Database {self.path} [{self.error or ('open' if self._writer else 'closed')}]>"

    @property
    def place(self) -> str:
        return str(self.path)

    @property
    def is_there(self) -> bool:
        return self.path.exists()

    @property
    def files(self) -> Files:
        return self

    @property
    def error(self) -> str:
        return self._watch.error

    @property
    def is_healthy(self) -> bool:
        return self._writer is not None and not self.error

    async def open(self) -> None:
        async with self._writing:
            await self._ensure_open()

    async def follow_file(self) -> None:
        if self.error if self._writer is None else self._is_replaced():
            await self.open()

    async def close(self) -> None:
        self._checkpoints.stop()
        async with self._writing:
            await self._close()

    async def ask(self, work: Callable[[Ask], T], tenant: str = "") -> T:
        """See `Engine.ask`; `tenant` is ignored, as SQLite has no row-level security."""
        idle = self._idle
        if idle is None:
            raise self._closed()
        reader = await idle.get()
        if idle is not self._idle:  # closed while we waited: the next in line shall know too
            idle.put_nowait(reader)
            raise self._closed()
        reading = InterruptibleRead(work)

        def give_back(done: asyncio.Future[Any]) -> None:
            if not done.cancelled():
                done.exception()  # nobody may be waiting for it by now
            idle.put_nowait(reader)

        with self._watch("reading"):
            try:
                asking = reader.begin(reading)
            except BaseException:
                idle.put_nowait(reader)
                raise
            asking.add_done_callback(give_back)
            try:
                return await asyncio.shield(asking)
            except asyncio.CancelledError:
                reading.stop()
                _interrupt(reader, asking)
                raise

    def ask_at_once(self, work: Callable[[Ask], T]) -> T | None:
        """See `Engine.ask_at_once`: to hand it to a reader and come back takes up to a millisecond of a request."""
        return None if self._near is None or self._must_reopen else self._near.ask(work)

    async def transact(self, work: Callable[[Transaction], T], whose: Whose | None = None) -> T:
        """See `Engine.transact`. A caller cancelled meanwhile cannot know whether it was committed or undone."""
        async with self._writing:
            writer = await self._ensure_open()
            with self._watch("writing"):
                result = await writer.run(in_transaction(work))
        self.writes += 1
        self._checkpoints.note_written()
        return result

    async def truncate_log(self, attempts: int = TRUNCATE_ATTEMPTS) -> bool:
        """Move the whole log into the file and empty it, so that no old page is left in either; see `Files`."""
        for _ in range(attempts):
            async with self._writing:
                writer = await self._ensure_open()
                with self._watch("writing"):
                    try:
                        ((busy, *_),) = await writer.rows(EMPTY)
                    except sqlite3.OperationalError as cause:
                        if code_of(cause) not in LOCKED:
                            raise
                        busy = 1
            if not busy:
                return True
            await asyncio.sleep(TRUNCATE_PAUSE_SECONDS)
        return False

    async def vacuum(self) -> None:
        async with self._writing:
            writer = await self._ensure_open()
            with self._watch("writing"):
                await writer.rows("VACUUM")

    async def _ensure_open(self) -> Connection:
        if self._writer is not None and self._is_replaced():
            self._must_reopen = True
            self.replaced += 1
            log.error("the database file was removed or replaced while in use, and is opened again", file=self.path)
            self._on_replaced()
        if self._must_reopen:
            await self._close()
        if self._writer is None:
            refuse_network_file_system(self.path.parent)
            with self._watch(OPENING):
                try:
                    with faults(OSError, f"opening {self.path}"):
                        self.path.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
                        if not self.path.exists():
                            self.path.touch(mode=FILE_MODE)
                        self._keep_to_owner()
                    writer = await self._connect(WRITER_BUSY_MS)
                    await self._prepare(writer)
                    self._checkpoints.connection = await self._connect(READER_BUSY_MS)
                    idle: asyncio.Queue[Connection] = asyncio.LifoQueue()
                    for _ in range(READERS):
                        reader = await self._connect(READER_BUSY_MS)
                        await reader.rows("PRAGMA query_only = ON")
                        idle.put_nowait(reader)
                    self._near = await asyncio.to_thread(NearReader, self.path)
                except BaseException:
                    await self._close()
                    raise
            self._writer, self._idle, self._identity = writer, idle, _identity(self.path)
        return self._writer

    def _is_replaced(self) -> bool:
        """Whether the file was removed or replaced: SQLite would go on with the old one, and lose what is written."""
        try:
            return _identity(self.path) != self._identity
        except OSError:  # whether it is there cannot be known: opening it would fail, too
            return False

    def _keep_to_owner(self) -> None:
        """Restrict file and log to their owner: a backup that was put in place may be readable by others."""
        mode = stat.S_IMODE(self.path.stat().st_mode)
        if mode & OTHERS:
            log.warning(
                "other users could read the database: its mode has been changed", file=self.path, mode=f"{mode:o}"
            )
            for suffix in ("", "-wal", "-shm"):
                with suppress(FileNotFoundError):
                    self.path.with_name(f"{self.path.name}{suffix}").chmod(FILE_MODE)

    async def _connect(self, busy_ms: int) -> Connection:
        connection = await Connection.open(self.path, busy_ms)
        self._opened.append(connection)
        return connection

    async def _prepare(self, writer: Connection) -> None:
        if await self._ask(writer, IS_FOREIGN):
            raise MemoryFault(f"opening {self.path}: it belongs to another program: choose another data folder")
        version = await self._version(writer)
        # `retention` gives pages back; counts only before there is a table
        await writer.rows("PRAGMA auto_vacuum = INCREMENTAL")
        mode = await self._ask(writer, "PRAGMA journal_mode = WAL")
        if mode != "wal":
            raise MemoryFault(f"opening {self.path}: its file system has no shared memory: choose another data folder")
        await writer.rows("PRAGMA wal_autocheckpoint = 0")  # see `Checkpoints`
        await writer.rows(f"PRAGMA journal_size_limit = {LOG_BYTES}")
        await writer.rows(f"PRAGMA synchronous = {self._synchronous}")
        await writer.rows("PRAGMA foreign_keys = ON")
        await writer.rows("PRAGMA temp_store = MEMORY")
        await writer.rows("PRAGMA secure_delete = ON")  # overwrite what is deleted: not every build does
        if not version:
            await writer.run(in_transaction(make_tables))
            await self._version(writer)
        if (mark := self._mark) is not None:
            doing = f"opening {self.path}"
            if not await writer.run(lambda connection: mark.is_set(FileTransaction(connection).read, doing)):
                await writer.run(in_transaction(mark.put))
                await writer.run(lambda connection: mark.is_set(FileTransaction(connection).read, doing))

    async def _version(self, writer: Connection) -> int:
        """The version of the file: `VERSION`, or 0 without tables."""
        version: int = await self._ask(writer, "PRAGMA user_version")
        if version and (refusal := refusal_of(version)):
            raise MemoryFault(f"opening {self.path}: {refusal}")
        return version

    async def _ask(self, connection: Connection, sql: str) -> Any:
        return (await connection.rows(sql))[0][0]

    async def _close(self) -> None:
        """
        Undo what was not committed, interrupt reads under way, refuse those that wait.

        The writer goes last and uninterrupted: whoever closes last moves the log into the file. Where this is
        cancelled, the next call closes what is still open: a connection's thread keeps its process from ending.
        """
        writer, self._writer, self._idle, self._must_reopen = self._writer, None, None, False
        near, self._near = self._near, None
        if near is not None:
            near.close()
        self._checkpoints.connection = None
        while self._opened:
            connection = self._opened.pop()
            with suppress(sqlite3.Error):
                if connection is not writer:
                    connection.stop_statement()
                await connection.close()

    def _closed(self) -> MemoryFault:
        return MemoryFault(self.error or f"reading {self.path}: it is not open")

    def _note(self, failure: sqlite3.Error) -> None:
        self._must_reopen |= code_of(failure) in REOPEN_AFTER


def _interrupt(reader: Connection, asking: asyncio.Future[Any]) -> None:
    """End the statement of a read, and again until the read has ended: one that is about to begin hears nothing."""
    if not asking.done():
        reader.stop_statement()
        asyncio.get_running_loop().call_later(INTERRUPT_SECONDS, _interrupt, reader, asking)


def _identity(path: Path) -> tuple[int, int] | None:
    """What tells one file from another of the same name; None: there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
