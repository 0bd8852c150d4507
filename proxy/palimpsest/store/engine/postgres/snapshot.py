"""Snapshots of a server's database: what it holds at one moment, whoever writes to it meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import psycopg
from psycopg import IsolationLevel

from palimpsest.domain.errors import MemoryFault
from palimpsest.store.engine import Ask
from palimpsest.store.engine.postgres.connection import connect, read
from palimpsest.store.engine.postgres.database import SILENT_MS, password_in
from palimpsest.store.engine.postgres.failures import words_of


@contextmanager
def snapshot(url: str, password_file: Path | None, doing: str) -> Iterator[Ask]:
    """
    What reads a database as it is now. `doing`: what for, as an error begins. Raises `MemoryFault`: it cannot be read.
    """
    try:
        with closing(connect(url, password_in(password_file), {"jit": "off"}, SILENT_MS)) as connection:
            connection.isolation_level, connection.read_only = IsolationLevel.REPEATABLE_READ, True
            with connection.transaction():
                yield partial(read, connection)
    except psycopg.Error as cause:
        raise MemoryFault(f"{doing}: {words_of(cause)}") from cause
