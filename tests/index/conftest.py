"""The real embedding model, fetched once into this user's cache; tests that need it say so where it cannot be had."""

from __future__ import annotations

from pathlib import Path

import pytest

from proxy.errors import MemoryFault
from proxy.index.model import install
from proxy.policy import ModelPolicy


@pytest.fixture(scope="session")
def model_folder() -> Path:
    try:
        return install(ModelPolicy(), lambda text: None)
    except MemoryFault as fault:
        pytest.skip(f"needs the embedding model: {fault}")
