"""
The copy of a whole database into another one, whatever engines both have: table by table, in the order of their keys.

Nothing is kept of how far it came but the rows themselves: what a table has there already is its beginning, so that a
copy that was interrupted goes on behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any

from palimpsest.domain.errors import MemoryFault
from palimpsest.domain.frozen import frozen
from palimpsest.store.engine import Ask, Engine, Row
from palimpsest.store.engine.full_text import optimise
from palimpsest.store.engine.last_ids import last_ids, set_last_ids
from palimpsest.store.engine.sqlite.known_tables import Table, known_tables

ROWS = 200  # of one transaction: with the longest messages some hundred megabytes
MARKED = "SELECT origin FROM migration"

Report = Callable[[str, int], None]
"""Told a table and how many of its rows are there by now."""


@frozen
class Copied:
    """One table that is the same in both databases: how many rows it has, and the hash of all of them."""

    table: str
    rows: int
    digest: str


async def migrate(source: Engine, target: Engine, report: Report) -> list[Copied]:
    """
    Copy all rows, and compare what both databases have then. Nobody else may write to either of them. `MemoryFault`:
    something cannot be read or written, and it can be repeated; or the target holds something else.
    """
    tables = known_tables()
    await _begin(source, target, tables)
    await _settle(source)
    for table in tables:
        await _copy(source, target, table, report)
    await target.transact(partial(set_last_ids, last=await source.ask(last_ids)))
    await _settle(target)
    copied = [await _compare(source, target, table) for table in tables]
    await target.write([("DROP TABLE migration", [()])])
    return copied


async def _settle(database: Engine) -> None:
    """Put terms of a server's newest passages to the others: as long as they wait, each page sorts all of them."""
    if database.files is None:
        await database.transact(optimise)


async def _begin(source: Engine, target: Engine, tables: Sequence[Table]) -> None:
    """Mark an empty target as being filled; one that is marked so is continued."""
    await target.write([("CREATE TABLE IF NOT EXISTS migration (origin TEXT NOT NULL)", [()])])
    marks = await target.read(MARKED)
    if marks and marks[0][0] != source.place:
        raise MemoryFault(f"migrating to {target.place}: it holds a part of {marks[0][0]}; choose an empty database")
    if not marks:
        filled = [table.name for table in tables if await target.read(f"SELECT 1 FROM {table.name} LIMIT 1")]
        if filled:
            await target.write([("DROP TABLE migration", [()])])
            raise MemoryFault(f"migrating to {target.place}: it is not empty ({filled[0]}); choose an empty database")
        await target.write([("INSERT INTO migration(origin) VALUES (?)", [(source.place,)])])


async def _copy(source: Engine, target: Engine, table: Table, report: Report) -> None:
    key, newest_first = ", ".join(table.key), ", ".join(f"{column} DESC" for column in table.key)
    there = await target.read(f"SELECT {key} FROM {table.name} ORDER BY {newest_first} LIMIT 1")
    last: Row | None = there[0] if there else None
    marks = ", ".join("?" * len(table.columns))
    insert = f"INSERT INTO {table.name}({', '.join(table.columns)}) VALUES ({marks})"
    done = (await target.read(f"SELECT count(*) FROM {table.name}"))[0][0]
    report(table.name, done)
    while rows := await source.ask(partial(_page, table=table, last=last)):
        await target.write([(insert, rows)])
        last = _key(table, rows[-1])
        done += len(rows)
        report(table.name, done)


def _page(ask: Ask, table: Table, last: Row | None) -> list[Row]:
    """The next rows behind a key; None: from the first."""
    columns, key = ", ".join(table.columns), ", ".join(table.key)
    behind = f" WHERE ({key}) > ({', '.join('?' * len(table.key))})" if last is not None else ""
    statement = f"SELECT {columns} FROM {table.name}{behind} ORDER BY {key} LIMIT {ROWS}"
    return ask(statement, last or ())


async def _compare(source: Engine, target: Engine, table: Table) -> Copied:
    there, here = await _digest(source, table), await _digest(target, table)
    if there != here:
        raise MemoryFault(
            f"migrating to {target.place}: {table.name} differs: {there.rows} rows in {source.place} and {here.rows} "
            "there, or not the same ones; empty that database, and begin again"
        )
    return here


async def _digest(database: Engine, table: Table) -> Copied:
    hashed, rows, last = blake2b(digest_size=16), 0, None
    while page := await database.ask(partial(_page, table=table, last=last)):
        for row in page:
            hashed.update(b"".join(_bytes_of(row)))
        rows, last = rows + len(page), _key(table, page[-1])
    return Copied(table.name, rows, hashed.hexdigest())


def _bytes_of(row: Row) -> Iterator[bytes]:
    """A row as bytes, the same on every engine, and different for different rows."""
    for value in row:
        plain: Any = bytes(value) if isinstance(value, bytes | bytearray | memoryview) else value
        text = repr(float(plain) if isinstance(plain, float) else plain).encode(errors="surrogatepass")
        yield b"%d:%s" % (len(text), text)


def _key(table: Table, row: Row) -> Row:
    return tuple(row[table.columns.index(column)] for column in table.key)
