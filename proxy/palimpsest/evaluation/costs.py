"""The cost of a search and of indexing a message, as in CALMem's two tables of time (sections 9.2 and 9.4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from time import perf_counter

import numpy as np

from palimpsest.core.archive.chunking import split_into_passages
from palimpsest.domain import Query, Reach
from palimpsest.domain.ports import Embedder, Vectors
from palimpsest.evaluation import palimpsest
from palimpsest.evaluation.datasets import Conversation, DatasetMessage
from palimpsest.evaluation.palimpsest import TENANT, Store
from palimpsest.evaluation.rows import vectors_of_tenant
from palimpsest.settings.embedding_models import DEFAULT
from palimpsest.store.engine import Ask
from palimpsest.store.search.scope import scope_of

REPEATS = 20  # of each measurement; the median is told
NEAREST = 5  # CALMem's top k
LENGTHS_CHARS = (200, 750, 3000, 8000)  # CALMem's four kinds of message: short, medium, long, very long


@dataclass(frozen=True, slots=True)
class Search:
    """Milliseconds of one search among so many passages: vectors read from the database, and kept in memory."""

    passages: int
    scan_ms: float
    cache_ms: float


@dataclass(frozen=True, slots=True)
class Indexing:
    """Milliseconds of one message: into passages, into vectors, into the database (its journal included)."""

    chars: int
    passages: float
    digest_ms: float
    embed_ms: float
    write_ms: float


async def search(store: Store, question: Vectors) -> Search:
    """
    Measure the search for the nearest passages of a tenant, by both ways of CALMem 7.

    Args:
        question: unit vector, (d,).
    """
    found = await store.database.ask(lambda ask: scope_of(ask, Query(TENANT, "", "", reach=Reach.TENANT)))
    assert found is not None
    scope, _ = found

    def scan(ask: Ask) -> int:
        held = np.frombuffer(b"".join(vectors_of_tenant(ask, scope.tenant)), np.float16).reshape(-1, len(question))
        return _nearest(held.astype(np.float32), question)

    def cache(ask: Ask) -> int:
        return _nearest(store.tables.table(ask, scope).vectors, question)

    passages = await store.database.ask(cache)  # fills it, outside the clock
    return Search(passages, *[median([await _timed(store, way) for _ in range(REPEATS)]) for way in (scan, cache)])


async def _timed(store: Store, way: Callable[[Ask], int]) -> float:
    """Milliseconds that a search takes."""
    started = perf_counter()
    await store.database.ask(way)
    return (perf_counter() - started) * 1000


def _nearest(held: Vectors, question: Vectors) -> int:
    """Find the nearest; returns how many were looked at."""
    np.argpartition(-(held @ question), NEAREST)
    return len(held)


class Instant:
    """An embedder that costs nothing: what is left is what writing costs."""

    name = "instant"
    dimensions = DEFAULT.dimensions
    ready = True

    async def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return np.zeros((len(texts), self.dimensions), np.float32)

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        return np.zeros((len(texts), self.dimensions), np.float32)


async def indexing(conversations: Sequence[Conversation], embedder: Embedder) -> list[Indexing]:
    """
    Measure indexing of messages of each length that these conversations suffice for.

    Args:
        embedder: one that remembers nothing.
    """
    text = " ".join(said.text for conversation in conversations for said in conversation.messages)
    told = []
    async with palimpsest.opened(Instant()) as store:
        for chars in LENGTHS_CHARS:
            texts = [text[at : at + chars] for at in range(0, len(text) - chars + 1, chars)][: REPEATS + 1]
            spent = [await _spent(store, one, embedder) for one in texts][1:]  # the first ever loads what it needs
            if spent:
                told.append(Indexing(chars, *map(median, zip(*spent, strict=True))))
    return told


async def _spent(store: Store, text: str, embedder: Embedder) -> tuple[float, float, float, float]:
    """Count passages of a text, and measure milliseconds as in `Indexing`."""
    said = DatasetMessage("0", "user", text, text, 0.0, 0, (), {"role": "user", "content": text})
    conversation = Conversation(f"{len(text)} {hash(text)}", (said,), (), 1)
    started = perf_counter()
    passages = split_into_passages(text, said.role)
    cut = perf_counter()
    await embedder.embed_passages([text[passage.start : passage.stop] for passage in passages])
    embedded = perf_counter()
    await store.write([conversation])
    written = perf_counter()
    digest_ms, embed_ms, whole_ms = ((b - a) * 1000 for a, b in pairwise((started, cut, embedded, written)))
    return float(len(passages)), digest_ms, embed_ms, max(0.0, whole_ms - digest_ms)
