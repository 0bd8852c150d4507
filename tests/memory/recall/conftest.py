"""A recall by words over a past, and a talk that was lost."""

from __future__ import annotations

import pytest
from palimpsest.memory.recall.recall import Recall

from tests.memory.recall.asking import TALK, Counts, recalling
from tests.remembered import Past, WordEmbedder


@pytest.fixture
def embedder() -> WordEmbedder:
    return WordEmbedder()


@pytest.fixture
def counts() -> Counts:
    return Counts()


@pytest.fixture
def recall(past: Past, embedder: WordEmbedder, counts: Counts) -> Recall:
    return recalling(past.database, embedder, counts)


@pytest.fixture
async def lost(past: Past) -> frozenset[int]:
    """A talk that was had and that the client no longer sends."""
    occurrences = await past.say(*TALK)
    await past.index()
    return frozenset(occurrences)
