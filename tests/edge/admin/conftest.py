"""The admin API with something in it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from palimpsest.store.engine.sqlite.database import Database

from tests.databases import copied, database_file
from tests.edge.admin.asking import AT_HOME, House, two_tenants


@pytest.fixture(scope="session")
def inhabited_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a database with two tenants, to be copied."""
    return database_file(tmp_path_factory.mktemp("inhabited"), two_tenants)


@pytest.fixture
async def inhabited(tmp_path: Path, inhabited_database: Path) -> AsyncIterator[Database]:
    """Two tenants, see `two_tenants`."""
    database = Database(copied(inhabited_database, tmp_path))
    await database.open()
    yield database
    await database.close()


@pytest.fixture
def database(inhabited: Database) -> Database:
    """The same: nothing here wants an empty one."""
    return inhabited


@pytest.fixture
def house(inhabited: Database) -> House:
    """Bound to the world, with a token and one proxy key, of the first tenant."""
    return House(inhabited)


@pytest.fixture
def home(inhabited: Database) -> House:
    """Bound to loopback, no token."""
    return House(inhabited, AT_HOME)
