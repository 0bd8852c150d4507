"""Databases as files that are made once and copied for each test."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from palimpsest.store.engine.sqlite.database import Database

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
