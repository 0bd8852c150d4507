"""The real embedding model, fetched once into this user's cache (tests that need it say so), and an empty database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from proxy.errors import MemoryFault
from proxy.index.model import install
from proxy.policy import ModelPolicy
from proxy.store.connection import Database
from tests.remembered import Past


@pytest.fixture(scope="session")
def model_folder() -> Path:
    try:
        return install(ModelPolicy(), lambda text: None)
    except MemoryFault as fault:
        pytest.skip(f"needs the embedding model: {fault}")


@pytest.fixture
async def past(tmp_path: Path) -> AsyncIterator[Past]:
    database = Database(tmp_path / "journal.db")
    await database.open()
    yield Past(database)
    await database.close()
