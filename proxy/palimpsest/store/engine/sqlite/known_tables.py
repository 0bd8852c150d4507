"""The tables that every engine has, read from the schema."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from palimpsest.domain.frozen import frozen
from palimpsest.store.engine.sqlite.tables import statements
from palimpsest.store.schema import SCHEMA

NAMES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY rowid"
COLUMNS = "SELECT name, pk FROM pragma_table_info(?) ORDER BY cid"


@frozen
class Table:
    """One table: its columns in their order, and those of its primary key."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]


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
