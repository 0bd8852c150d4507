"""The admin API with something in it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from proxy.store.database import Database
from tests.edge.admin.asking import AT_HOME, House, two_tenants


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    """Two tenants, see `two_tenants`."""
    database = Database(tmp_path / "palimpsest.db")
    await database.open()
    await two_tenants(database)
    yield database
    await database.close()


@pytest.fixture
def house(database: Database) -> House:
    """Bound to the world, with a token and one proxy key, of the first tenant."""
    return House(database)


@pytest.fixture
def home(database: Database) -> House:
    """Bound to loopback, no token."""
    return House(database, AT_HOME)
