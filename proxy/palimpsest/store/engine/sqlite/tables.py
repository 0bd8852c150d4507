"""The tables of a database file, made in one transaction, and what its header says of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

from palimpsest.domain.errors import MemoryFault
from palimpsest.domain.frozen import frozen
from palimpsest.store.engine import Ask, Transaction, full_text
from palimpsest.store.schema import SCHEMA, VERSION, refusal_of


@frozen
class Table:
    """One table: its columns in their order, and those of its primary key."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]


APPLICATION_ID = 0x50414C49  # "PALI", in the header of the file: tells our databases from others


NAMES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY rowid"
COLUMNS = "SELECT name, pk FROM pragma_table_info(?) ORDER BY cid"


def make_tables(transaction: Transaction) -> None:
    """Make the tables; of processes that start together, whoever comes second finds them there."""
    if transaction.read("PRAGMA user_version") == [(0,)]:
        for statement in statements(SCHEMA + full_text.MAKE):
            transaction.write(statement)
        transaction.write(f"PRAGMA user_version = {VERSION}")
        transaction.write(f"PRAGMA application_id = {APPLICATION_ID}")


def known_tables() -> list[Table]:
    """All tables, each behind those that it refers to, and the full-text index last; of every engine."""
    with closing(sqlite3.connect(":memory:")) as empty:
        for statement in statements(SCHEMA):
            empty.execute(statement)
        names = [name for (name,) in empty.execute(NAMES)]
        infos = [(name, empty.execute(COLUMNS, (name,)).fetchall()) for name in names]
    listed = [
        Table(
            name,
            tuple(column for column, _ in rows),
            tuple(column for column, place in sorted(rows, key=lambda row: row[1]) if place),
        )
        for name, rows in infos
    ]
    return [*listed, Table("memory_text", ("rowid", "tokens"), ("rowid",))]


def known_version(ask: Ask, doing: str) -> int:
    """
    Return the version of a database; raises where it is not ours, or not `VERSION`.

    Raises:
        MemoryFault: it is another program's, or of another version; it begins with `doing`.
    """
    ((application,),) = ask("PRAGMA application_id")
    ((version,),) = ask("PRAGMA user_version")
    if application != APPLICATION_ID:
        raise MemoryFault(f"{doing}: it is not a Palimpsest database")
    if refusal := refusal_of(version):
        raise MemoryFault(f"{doing}: {refusal}")
    return int(version)


def statements(script: str) -> Iterator[str]:
    """The statements of a script, one by one: `executescript` would commit the transaction that they belong to."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending.strip()
            pending = ""
