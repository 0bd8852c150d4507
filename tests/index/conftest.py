"""An empty database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from proxy.store.database import Database
from tests.remembered import Past


@pytest.fixture
async def past(tmp_path: Path) -> AsyncIterator[Past]:
    database = Database(tmp_path / "journal.db")
    await database.open()
    yield Past(database)
    await database.close()
