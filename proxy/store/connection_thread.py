"""
How does a whole piece of work cost one visit to a connection's thread?

Waking that thread and coming back costs some 0.1 ms on a busy machine, as much as ten small statements. aiosqlite sends
one statement at a time; so the statement of a visit carries a function, which is run there with the connection.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import aiosqlite

from proxy.ports import Ask, Row

T = TypeVar("T")

Statement = tuple[str, Sequence[Sequence[Any]]]
"""SQL, and the rows of arguments to run it with."""

ONCE: Sequence[Sequence[Any]] = ((),)


class Transaction:
    """Reads and writes on the connection's own thread, in the order in which they are asked for."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def read(self, sql: str, args: Sequence[Any] = ()) -> list[Row]:
        return self._connection.execute(sql, args).fetchall()

    def write(self, sql: str, rows: Sequence[Sequence[Any]] = ONCE) -> None:
        """Run one statement once for each row of arguments."""
        if rows is ONCE:
            self._connection.execute(sql)
        elif rows:
            self._connection.executemany(sql, rows)


class Reading(Generic[T]):
    """Several reads in one visit; `stop` ends it before its next statement."""

    def __init__(self, work: Callable[[Ask], T]) -> None:
        self._work = work
        self._stopped = False

    def stop(self) -> None:
        self._stopped = True

    def __call__(self, connection: sqlite3.Connection) -> T:
        def read(sql: str, args: Sequence[Any] = ()) -> list[Row]:
            if self._stopped:
                raise sqlite3.OperationalError("interrupted")
            return connection.execute(sql, args).fetchall()

        return self._work(read)


def committed(work: Callable[[Transaction], T]) -> Callable[[sqlite3.Connection], T]:
    """All of it in one transaction, undone where it raises."""

    def run(connection: sqlite3.Connection) -> T:
        connection.execute("BEGIN IMMEDIATE")
        try:
            result = work(Transaction(connection))
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # some failures have undone it by themselves
                connection.execute("ROLLBACK")
            raise
        return result

    return run


async def visit(connection: aiosqlite.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
    """Run `work` on the thread of a connection that was made with `Visited`."""
    call = _Call()
    call.work = work
    await connection.execute_fetchall("", call)
    result: T = call.result
    return result


class _Call(tuple[Any, ...]):
    """Arguments of a statement that is none."""

    work: Callable[[sqlite3.Connection], Any]
    result: Any


class Visited(sqlite3.Connection):
    """The connection on that thread."""

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        if isinstance(parameters, _Call):
            parameters.result = parameters.work(self)
            return self.cursor()
        return super().execute(sql, parameters)
