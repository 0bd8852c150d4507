"""A whole piece of work happens on the connection's thread, in order, and all of it or nothing."""

from __future__ import annotations

import asyncio
import functools
import sqlite3
import threading
import time
import weakref
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
from palimpsest.store.engine import Ask, Transaction
from palimpsest.store.engine.sqlite.connection import (
    SLOW_SECONDS,
    Connection,
    InterruptibleRead,
    NearReader,
    in_transaction,
)


@pytest.fixture
async def connection(tmp_path: Path) -> AsyncIterator[Connection]:
    connection = await Connection.open(tmp_path / "some.db", busy_ms=100)
    yield connection
    await connection.close()


async def test_work_runs_on_the_thread_of_the_connection(connection: Connection) -> None:
    threads = [await connection.run(lambda _: threading.get_ident()) for _ in range(2)]
    assert threads[0] == threads[1] != threading.get_ident()


async def test_a_read_sees_what_was_written_before_it(connection: Connection) -> None:
    def work(transaction: Transaction) -> list[object]:
        transaction.write("CREATE TABLE t(x)")
        transaction.write("INSERT INTO t VALUES (?)", [(1,), (2,)])
        before = transaction.read("SELECT x FROM t WHERE x > ?", (1,))
        transaction.write("DELETE FROM t WHERE x = ?", [(2,)])
        return [*before, *transaction.read("SELECT x FROM t")]

    assert await connection.run(in_transaction(work)) == [(2,), (1,)]
    assert not await connection.run(lambda sqlite: sqlite.in_transaction)


async def test_a_statement_without_rows_is_not_run(connection: Connection) -> None:
    await connection.run(in_transaction(lambda transaction: transaction.write("INSERT INTO nowhere VALUES (?)", [])))


async def test_work_that_raises_is_undone(connection: Connection) -> None:
    def work(transaction: Transaction) -> None:
        transaction.write("CREATE TABLE t(x)")
        transaction.write("INSERT INTO nowhere VALUES (?)", [(1,)])

    with pytest.raises(sqlite3.OperationalError, match="no such table: nowhere"):
        await connection.run(in_transaction(work))
    assert not await connection.run(lambda sqlite: sqlite.in_transaction)
    assert await connection.rows("SELECT name FROM sqlite_master") == []


async def test_reading_that_is_stopped_asks_nothing_more(connection: Connection) -> None:
    asked = []

    def work(ask: Ask) -> None:
        asked.append(ask("SELECT 1"))
        reading.stop()
        asked.append(ask("SELECT 2"))

    reading = InterruptibleRead(work)
    with pytest.raises(sqlite3.OperationalError, match="interrupted"):
        await connection.run(reading)
    assert asked == [[(1,)]]


async def test_statement_that_is_interrupted_ends_and_the_next_one_works(connection: Connection) -> None:
    def count_forever(sqlite: sqlite3.Connection) -> None:
        began.set()
        sqlite.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n")

    began = threading.Event()
    counting = asyncio.create_task(connection.run(count_forever))
    await asyncio.to_thread(began.wait, 10)
    while not counting.done():
        connection.stop_statement()
        await asyncio.sleep(0.01)
    with pytest.raises(sqlite3.OperationalError, match="interrupted"):
        await counting
    assert await connection.rows("SELECT 1") == [(1,)]


async def test_connection_that_is_closed_says_so_and_may_be_closed_again(connection: Connection) -> None:
    await connection.close()
    await connection.close()
    connection.stop_statement()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        await connection.rows("SELECT 1")


async def test_connection_that_is_being_closed_has_no_statement_to_stop(connection: Connection) -> None:
    await connection.run(lambda sqlite: sqlite.close())
    connection.stop_statement()


class Text:
    """Something of a user's."""


async def test_thread_keeps_neither_its_last_work_nor_what_came_of_it(connection: Connection) -> None:
    text, found = Text(), Text()
    kept = [weakref.ref(text), weakref.ref(found)]
    await connection.run(functools.partial(lambda asked, found, _: found, text, found))
    del text, found
    async with asyncio.timeout(10):
        while any(reference() is not None for reference in kept):  # noqa: ASYNC110 - a thread says nothing of it
            await asyncio.sleep(0.01)


async def test_connection_that_cannot_be_opened_leaves_no_thread(tmp_path: Path) -> None:
    before = {*threading.enumerate()}  # each by itself: another may end meanwhile
    with pytest.raises(sqlite3.OperationalError):
        await Connection.open(tmp_path / "nowhere" / "some.db", busy_ms=100)
    async with asyncio.timeout(10):
        while not before.issuperset(threading.enumerate()):  # noqa: ASYNC110 - a thread says nothing when it ends
            await asyncio.sleep(0.01)


def who_reads(ask: Ask) -> tuple[int, object]:
    return threading.get_ident(), ask("SELECT 1 + ?", (1,))


async def test_a_small_read_runs_on_the_thread_that_asks(tmp_path: Path) -> None:
    with closing(await asyncio.to_thread(NearReader, tmp_path / "some.db")) as near:
        assert near.ask(who_reads) == (threading.get_ident(), [(2,)])


def test_a_small_read_is_not_had_where_the_file_is_locked_or_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "some.db"
    with closing(NearReader(path)) as near, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("CREATE TABLE t(x)")
        other.execute("BEGIN EXCLUSIVE")
        assert near.ask(lambda ask: ask("SELECT x FROM t")) is None
        other.execute("COMMIT")
        assert near.ask(lambda ask: ask("SELECT x FROM t")) == []
        assert near.ask(lambda ask: ask("SELECT x FROM unknown")) is None
        assert near.ask(lambda ask: ask("INSERT INTO t VALUES (1)")) is None


def test_after_a_slow_read_the_next_ones_are_left_to_threads(tmp_path: Path) -> None:
    with closing(NearReader(tmp_path / "some.db")) as near:
        near.ask(lambda ask: time.sleep(2 * SLOW_SECONDS))
        assert near.ask(who_reads) is None


async def test_no_id_is_given_twice_whether_it_was_used_or_not(connection: Connection) -> None:
    def work(transaction: Transaction) -> list[int]:
        transaction.write("CREATE TABLE t(id INTEGER PRIMARY KEY AUTOINCREMENT)")
        first = transaction.new_ids("t", 2)
        transaction.write("INSERT INTO t(id) VALUES (?)", [(first[1],)])
        transaction.write("INSERT INTO t DEFAULT VALUES")
        given = [*first, *transaction.new_ids("t", 1), *transaction.new_ids("t", 2)]
        transaction.write("DELETE FROM t")
        return [*given, *transaction.new_ids("t", 1)]

    given = await connection.run(in_transaction(work))
    assert given == sorted({*given, 3} - {3})
