"""What is asked for happens in that order, however few visits it takes."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiosqlite
import pytest

from proxy.store.transaction import Transaction, VisitedConnection


@pytest.fixture
async def connection() -> AsyncIterator[aiosqlite.Connection]:
    async with aiosqlite.connect(":memory:", isolation_level=None, factory=VisitedConnection) as connection:
        yield connection


async def test_a_read_sees_what_was_written_before_it(connection: aiosqlite.Connection) -> None:
    transaction = Transaction(connection)
    transaction.write("CREATE TABLE t(x)")
    transaction.write("INSERT INTO t VALUES (?)", [(1,), (2,)])
    assert await transaction.read("SELECT x FROM t WHERE x > ?", (1,)) == [(2,)]
    transaction.write("DELETE FROM t WHERE x = ?", [(2,)])
    assert await transaction.read("SELECT x FROM t") == [(1,)]
    assert connection.in_transaction
    await transaction.commit()
    assert not connection.in_transaction


async def test_nothing_happens_before_the_first_read_or_the_commit(connection: aiosqlite.Connection) -> None:
    transaction = Transaction(connection)
    transaction.write("CREATE TABLE t(x)")
    assert not connection.in_transaction
    await transaction.commit()
    assert list(await connection.execute_fetchall("SELECT name FROM sqlite_master")) == [("t",)]


async def test_a_statement_without_rows_is_not_run(connection: aiosqlite.Connection) -> None:
    transaction = Transaction(connection)
    transaction.write("INSERT INTO nowhere VALUES (?)", [])
    await transaction.commit()


async def test_a_write_that_fails_ends_the_read_that_carries_it(connection: aiosqlite.Connection) -> None:
    transaction = Transaction(connection)
    transaction.write("INSERT INTO nowhere VALUES (?)", [(1,)])
    with pytest.raises(aiosqlite.OperationalError, match="no such table: nowhere"):
        await transaction.read("SELECT 1")
