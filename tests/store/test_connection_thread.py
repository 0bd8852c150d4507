"""A whole piece of work happens on the connection's thread, in order, and all of it or nothing."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import AsyncIterator

import aiosqlite
import pytest

from proxy.ports import Ask
from proxy.store.connection_thread import Reading, Transaction, Visited, committed, visit


@pytest.fixture
async def connection() -> AsyncIterator[aiosqlite.Connection]:
    async with aiosqlite.connect(":memory:", isolation_level=None, factory=Visited) as connection:
        yield connection


async def test_work_runs_on_the_thread_of_the_connection(connection: aiosqlite.Connection) -> None:
    threads = [await visit(connection, lambda _: threading.get_ident()) for _ in range(2)]
    assert threads[0] == threads[1] != threading.get_ident()


async def test_a_read_sees_what_was_written_before_it(connection: aiosqlite.Connection) -> None:
    def work(transaction: Transaction) -> list[object]:
        transaction.write("CREATE TABLE t(x)")
        transaction.write("INSERT INTO t VALUES (?)", [(1,), (2,)])
        before = transaction.read("SELECT x FROM t WHERE x > ?", (1,))
        transaction.write("DELETE FROM t WHERE x = ?", [(2,)])
        return [*before, *transaction.read("SELECT x FROM t")]

    assert await visit(connection, committed(work)) == [(2,), (1,)]
    assert not connection.in_transaction


async def test_a_statement_without_rows_is_not_run(connection: aiosqlite.Connection) -> None:
    await visit(connection, committed(lambda transaction: transaction.write("INSERT INTO nowhere VALUES (?)", [])))


async def test_work_that_raises_is_undone(connection: aiosqlite.Connection) -> None:
    def work(transaction: Transaction) -> None:
        transaction.write("CREATE TABLE t(x)")
        transaction.write("INSERT INTO nowhere VALUES (?)", [(1,)])

    with pytest.raises(sqlite3.OperationalError, match="no such table: nowhere"):
        await visit(connection, committed(work))
    assert not connection.in_transaction
    assert list(await connection.execute_fetchall("SELECT name FROM sqlite_master")) == []


async def test_reading_that_is_stopped_asks_nothing_more(connection: aiosqlite.Connection) -> None:
    asked = []

    def work(ask: Ask) -> None:
        asked.append(ask("SELECT 1"))
        reading.stop()
        asked.append(ask("SELECT 2"))

    reading = Reading(work)
    with pytest.raises(sqlite3.OperationalError, match="interrupted"):
        await visit(connection, reading)
    assert asked == [[(1,)]]
