"""What tests of the store share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from proxy.store.database import Database
from tests.remembered import Past


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = Database(tmp_path / "journal.db")
    await database.open()
    yield database
    await database.close()


@pytest.fixture
async def past(database: Database) -> Past:
    return Past(database)
