"""
Snapshots of a database file that is not open here, and that others may be writing to; what its own checks say of it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from palimpsest.domain.errors import MemoryFault, faults
from palimpsest.store.engine import Ask, Row
from palimpsest.store.engine.dialect import SQLITE
from palimpsest.store.engine.sqlite.tables import APPLICATION_ID
from palimpsest.store.version import refusal_of

MOST_DAMAGES = 5  # of the file, in words of SQLite's: one says enough
ORPHANS = 'SELECT count(*), min("table") FROM pragma_foreign_key_check'
TABLES = "SELECT name FROM sqlite_master WHERE type = 'table'"


@contextmanager
def snapshot(path: Path, doing: str) -> Iterator[Ask]:
    """
    Open a read-only transaction on a database of whatever version, and yield what reads it. `doing`: what for, as an
    error begins. Raises `MemoryFault`: it cannot be read.
    """
    uri = f"{path.absolute().as_uri()}?mode=rw"
    with faults(sqlite3.Error, doing), closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as database:

        def ask(sql: str, args: Sequence[Any] = ()) -> list[Row]:
            return database.execute(SQLITE[sql], args).fetchall()

        database.execute("PRAGMA query_only = ON")
        database.execute("BEGIN")
        yield ask


def tables_of(ask: Ask) -> set[str]:
    """The tables that are there."""
    return {name for (name,) in ask(TABLES)}


def damages_of(ask: Ask, doing: str) -> list[str]:
    """
    Damage of the file, by SQLite's own check; empty: none. Raises `MemoryFault`: it is not ours, or of another version.
    """
    try:
        known_version(ask, doing)
        return [str(row[0]) for row in ask(f"PRAGMA integrity_check({MOST_DAMAGES})") if row[0] != "ok"]
    except sqlite3.OperationalError:  # locked, for one
        raise
    except sqlite3.DatabaseError as cause:
        return [str(cause)]


def orphans_of(ask: Ask) -> tuple[int, str]:
    """Count rows that refer to a row that is gone, and name a table that has some."""
    ((count, table),) = ask(ORPHANS)
    return int(count), str(table)


def known_version(ask: Ask, doing: str) -> int:
    """
    The version of a database.

    Raises `MemoryFault`: it is another program's, or not of `VERSION`; it begins with `doing`.
    """
    ((application,),) = ask("PRAGMA application_id")
    ((version,),) = ask("PRAGMA user_version")
    if application != APPLICATION_ID:
        raise MemoryFault(f"{doing}: it is not a Palimpsest database")
    if refusal := refusal_of(version):
        raise MemoryFault(f"{doing}: {refusal}")
    return int(version)
