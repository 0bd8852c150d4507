"""Databases as files that are made once and copied for each test."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psycopg
from palimpsest.store.engine import Engine
from palimpsest.store.engine.postgres import database as postgres
from palimpsest.store.engine.sqlite.database import Database
from psycopg import sql

from tests.running import Proxy
from tests.servers import ADMIN

NAME = "palimpsest.db"


async def nothing(_database: Database) -> None:
    """Leaves a database empty."""


def database_file(folder: Path, fill: Callable[[Database], Awaitable[None]] = nothing) -> Path:
    """Make a database in a folder, and close it."""

    async def make() -> Path:
        database = Database(folder / NAME)
        await database.open()
        await fill(database)
        await database.close()
        return database.path

    with ThreadPoolExecutor(1) as beside:  # the loops of the tests are no concern of this one
        return beside.submit(asyncio.run, make()).result()


def copied(file: Path, folder: Path) -> Path:
    """A copy that a test may open and change."""
    return Path(shutil.copy(file, folder / NAME))


def database_in(folder: Path, name: str = NAME) -> Engine:
    """A database of a data folder, not yet opened: its file or, with `--store postgres`, one on the server."""
    if Proxy.new_database is None:
        return Database(folder / name)
    whose = folder if name == NAME else folder / name
    Proxy.databases[whose] = Proxy.databases.get(whose) or Proxy.new_database()
    return postgres.Database(Proxy.databases[whose])


def opened_beside(database: Engine) -> Engine:
    """The same database, as another process has it; not yet opened."""
    if isinstance(database, postgres.Database):
        return postgres.Database(database.url)
    assert database.files is not None
    return Database(database.files.path)


def is_held(database: Engine, words: str) -> bool:
    """Whether words stand anywhere in a database: in a byte of its files or, of a server's, in a row or a key."""
    if isinstance(database, postgres.Database):
        with closing(psycopg.connect(database.url, user=ADMIN)) as connection:
            tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
            find = "SELECT 1 FROM {table} AS one WHERE strpos(one::text, %s) > 0 LIMIT 1"
            return any(
                connection.execute(sql.SQL(find).format(table=sql.Identifier(name)), (words,)).fetchall()
                for (name,) in tables
            )
    assert database.files is not None
    return any(words.encode() in file.read_bytes() for file in database.files.path.parent.iterdir())
