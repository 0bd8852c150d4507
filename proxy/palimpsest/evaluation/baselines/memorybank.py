"""
Baseline: MemoryBank. Dense retrieval, weighed by an importance that decays.

Zhong et al., "MemoryBank", AAAI 2024, as WhenLoss re-implements it ("importance-weighted re-ranking over the same
embedding scores"). Retention is R = exp(-t / S) of Ebbinghaus, t in days since a turn. A model would rate importance;
here the strength S is 1, and 1 more for each thing that a turn names by pattern (paths, errors ...). Retention takes
away half of a score at most: taken whole, nothing older than a week could ever come back. Each question meets the bank
as it was written, as strength that grows with recall would make results depend on their order.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from time import perf_counter

import numpy as np

from palimpsest.core.recall.ranking import Floats
from palimpsest.domain.ports import Embedder
from palimpsest.evaluation.datasets import Conversation
from palimpsest.evaluation.filling import Piece, filled
from palimpsest.evaluation.nearest import Nearest
from palimpsest.evaluation.systems import Pack
from palimpsest.evaluation.turns import TurnPair, turn_pairs

DAY_SECONDS = 86_400.0
FORGOTTEN_SHARE = 0.5  # of a score, once nothing is retained


class MemoryBank:
    """Turns by cosine times retention."""

    name = "memorybank"

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @asynccontextmanager
    async def opened(self, conversation: Conversation) -> AsyncIterator[_Reader]:
        turns = turn_pairs(conversation.messages)
        pieces = [Piece(turn.content, turn.messages) for turn in turns]
        weights = 1 - FORGOTTEN_SHARE * (1 - retention(turns))
        yield _Reader(await Nearest.of(pieces, self._embedder), weights)


def retention(turns: Sequence[TurnPair]) -> Floats:
    """The retention of each turn at the time of the last one, 0..1: (n,)."""
    ages = (turns[-1].at - np.array([turn.at for turn in turns])) / DAY_SECONDS
    strengths = 1.0 + np.array([len(turn.hints) for turn in turns])
    retained: Floats = np.exp(-ages / strengths)
    return retained


class _Reader:
    def __init__(self, nearest: Nearest, weights: Floats) -> None:
        self._nearest = nearest
        self._weights = weights

    async def pack(self, query: str, budget_chars: int, dropped: int | None = None) -> Pack:
        """Fill the budget with what answers a query best; see `systems.Reader`."""
        started = perf_counter()
        scores = (await self._nearest.cosines(query)) * self._weights
        rows = np.flatnonzero(self._nearest.lost(dropped))
        best = rows[np.argsort(-scores[rows], kind="stable")]
        return filled((self._nearest.pieces[row] for row in best), budget_chars, started)

    async def stored(self) -> Sequence[str]:
        return self._nearest.texts
