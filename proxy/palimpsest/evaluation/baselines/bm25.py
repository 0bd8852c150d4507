"""
Baseline: messages ranked by BM25 alone, with the library rank-bm25.

Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009; Okapi variant with the library's parameters. The
words are our own stems (`core/archive/chunking.py`), so that only the ranking differs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from time import perf_counter

import numpy as np
from rank_bm25 import BM25Okapi  # type: ignore[import-untyped]

from palimpsest.core.archive.chunking import query_terms, terms
from palimpsest.domain.ports import Embedder
from palimpsest.evaluation.baselines.dense import chunks_of
from palimpsest.evaluation.datasets import Conversation
from palimpsest.evaluation.filling import Piece, filled
from palimpsest.evaluation.systems import Pack


class Bm25:
    """Chunks of messages by their words."""

    name = "bm25"

    def __init__(self, embedder: Embedder) -> None:
        """Needs no vectors."""

    @asynccontextmanager
    async def opened(self, conversation: Conversation) -> AsyncIterator[_Reader]:
        yield _Reader(chunks_of(conversation))


class _Reader:
    def __init__(self, chunks: list[Piece]) -> None:
        self._chunks = chunks
        words = [terms(chunk.text) for chunk in chunks]
        self._index = BM25Okapi(words) if any(words) else None

    async def pack(self, query: str, budget_chars: int, dropped: int | None = None) -> Pack:
        """Fill the budget with what answers a query best; see `systems.Reader`."""
        started = perf_counter()
        if self._index is None:
            return filled((), budget_chars, started)
        scores = self._index.get_scores(query_terms(query))
        order = np.argsort(-scores, kind="stable")
        found = [self._chunks[row] for row in order if scores[row] > 0]
        lost = (piece for piece in found if dropped is None or piece.messages[-1] < dropped)
        return filled(lost, budget_chars, started)

    async def stored(self) -> Sequence[str]:
        return [chunk.text for chunk in self._chunks]
