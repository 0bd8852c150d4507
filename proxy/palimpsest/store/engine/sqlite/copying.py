"""
Copies of a database that is in use, and their examination: a backup is worth what opening it shows.

The copy is one snapshot: it is read page by page inside one transaction, for which nobody waits in WAL mode. Meanwhile
the log grows by what others write.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

from palimpsest.domain.errors import MemoryFault, faults
from palimpsest.store.engine.sqlite.snapshot import damages_of, known_version, orphans_of, snapshot

STEP_PAGES = 2_048  # 8 MB: some 10 ms of the disk
STEP_PAUSE_SECONDS = 0.002  # between them, for others who read and write
BUSY_SECONDS = 5.0
COUNTED = ("tenant", "conversation", "turn", "occurrence", "content", "memory", "vector", "erased", "fact")
"""Tables whose rows are counted, so that two copies can be compared."""


def copy(source: Path, target: Path, report: Callable[[float], None] = lambda share: None) -> None:
    """
    Copy a database that others may be writing to.

    Args:
        target: a new file.
        report: told how much is done, 0 to 1.

    Raises:
        MemoryFault: it cannot be read, or written.
    """
    with (
        faults(sqlite3.Error, f"copying {source} to {target}"),
        closing(
            sqlite3.connect(f"file:{source}?mode=rw", uri=True, timeout=BUSY_SECONDS, isolation_level=None)
        ) as here,
        closing(sqlite3.connect(target, isolation_level=None)) as there,
    ):
        here.execute("BEGIN")
        here.execute("SELECT count(*) FROM sqlite_master").fetchone()  # the snapshot begins here
        here.backup(
            there,
            pages=STEP_PAGES,
            progress=lambda _status, left, pages: report(1 - left / pages if pages else 1.0),
            sleep=STEP_PAUSE_SECONDS,
        )
        here.execute("COMMIT")
        there.execute("PRAGMA journal_mode = DELETE")  # all of it in the one file


def examined(path: Path) -> tuple[int, Mapping[str, int]]:
    """
    The version of a database, and how many rows its tables have.

    Raises `MemoryFault`: it is damaged, another program's, or of another version.
    """
    doing = f"examining {path}"
    with snapshot(path, doing) as ask:
        if damages := damages_of(ask, doing):
            raise MemoryFault(f"{doing}: it is damaged: {damages[0]}")
        orphans, table = orphans_of(ask)
        if orphans:
            raise MemoryFault(f"{doing}: it is damaged: rows of {table} belong to nothing")
        return known_version(ask, doing), {table: ask(f"SELECT count(*) FROM {table}")[0][0] for table in COUNTED}


def is_in_use(path: Path) -> bool:
    """Whether another process has this database open. Raises `MemoryFault`: that cannot be known."""
    uri = f"{path.absolute().as_uri()}?mode=rw"
    with (
        faults(sqlite3.DatabaseError, f"opening {path}"),
        closing(sqlite3.connect(uri, uri=True, timeout=0, isolation_level=None)) as database,
    ):
        try:
            # in WAL mode every connection holds a shared lock on the file as long as it is open
            database.execute("PRAGMA locking_mode = EXCLUSIVE")
            database.execute("BEGIN EXCLUSIVE")
            database.execute("ROLLBACK")
        except sqlite3.OperationalError as cause:
            if cause.sqlite_errorcode in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                return True
            raise
        return False
