"""
How do the many statements of one transaction cost few visits to the database's thread?

Each visit wakes that thread and comes back, some 0.1 ms on a busy machine, as much as ten small statements. So writes
wait for the next read, or for the end, and go with it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

import aiosqlite

from proxy.ports import Row

Statement = tuple[str, Sequence[Sequence[Any]]]
"""SQL, and the rows of arguments to run it with."""

ONCE: Sequence[Sequence[Any]] = ((),)


class Transaction:
    """Reads and writes in the order in which they are asked for; begins with the first read, or at the end."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        """
        Args:
            connection: made with `VisitedConnection`.
        """
        self._connection = connection
        self._before: list[Statement] = [("BEGIN IMMEDIATE", ONCE)]

    async def read(self, sql: str, args: Sequence[Any] = ()) -> list[Row]:
        """Rows of one statement, after all that was written before it."""
        visit = _Visit(args)
        visit.before, self._before = self._before, []
        rows: Iterable[Any] = await self._connection.execute_fetchall(sql, visit)
        return list(rows)

    def write(self, sql: str, rows: Sequence[Sequence[Any]] = ONCE) -> None:
        """Run one statement once for each row of arguments, not later than the next read or the commit."""
        if rows:
            self._before.append((sql, rows))

    async def commit(self) -> None:
        await self.read("COMMIT")


class _Visit(tuple[Any, ...]):
    """Arguments of a statement, and what is to be run before it."""

    before: Sequence[Statement] = ()


class VisitedConnection(sqlite3.Connection):
    """The connection on that thread."""

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        if isinstance(parameters, _Visit):
            for earlier, rows in parameters.before:
                if rows is ONCE:
                    super().execute(earlier)
                else:
                    self.executemany(earlier, rows)
        return super().execute(sql, parameters)
