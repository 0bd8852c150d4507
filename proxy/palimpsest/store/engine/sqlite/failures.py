"""SQLite's errors: whether the machine or the record is at fault, and what the operator can do."""

from __future__ import annotations

import sqlite3

ADVICE = {
    sqlite3.SQLITE_BUSY: "another process holds it: stop that process, or wait; it is tried again",
    sqlite3.SQLITE_LOCKED: "another process holds it: stop that process, or wait; it is tried again",
    sqlite3.SQLITE_FULL: "free some space; what waits to be written is kept in memory and tried again",
    sqlite3.SQLITE_CANTOPEN: "check that the folder is there and that this user may write to it",
    sqlite3.SQLITE_READONLY: "check that this user may write to the file and its folder",
    sqlite3.SQLITE_PERM: "check that this user may write to the file and its folder",
    sqlite3.SQLITE_IOERR: "check the disk, its free space and the file's permissions; it is tried again",
    sqlite3.SQLITE_CORRUPT: "the file is damaged and was left as it is: move it away, or put a backup in its place",
    sqlite3.SQLITE_NOTADB: "the file is damaged and was left as it is: move it away, or put a backup in its place",
}
"""What the operator can do, by SQLite's primary result code. Other errors are ours, not the machine's."""

REOPEN_AFTER = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN})
"""Failures after which the open connections are worthless: the file was damaged, replaced or removed."""

LOCKED = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
"""Somebody else holds what is needed, for now."""

OF_THE_DATA = (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.InterfaceError)
"""What one record does to the driver whenever it is written: it breaks a constraint, is too long, has no such type."""


def code_of(failure: sqlite3.Error) -> int:
    """SQLite's primary result code."""
    code: int = getattr(failure, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return code & 0xFF


def advice_on(failure: sqlite3.Error) -> str:
    """What to do about a failure; "": nothing that the operator could."""
    return ADVICE.get(code_of(failure), "")


def is_of_the_data(failure: sqlite3.Error) -> bool:
    """Whether the same record would fail again on any machine."""
    text, code = str(failure), getattr(failure, "sqlite_errorcode", None)
    if isinstance(failure, sqlite3.ProgrammingError):  # so is a connection that was closed
        return "bind" in text
    if code == sqlite3.SQLITE_ERROR:  # what a function makes of a value; so is a table that is gone
        return not text.startswith("no such ") and "transaction" not in text
    return isinstance(failure, OF_THE_DATA)
