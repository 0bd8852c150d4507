"""Exact search by cosine over all pieces, for the baselines that embed."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Self

import numpy as np

from palimpsest.core.recall.ranking import Bools, Floats
from palimpsest.domain.ports import Embedder, Vectors
from palimpsest.evaluation.filling import Piece, filled
from palimpsest.evaluation.systems import Pack


class Nearest:
    """Pieces with their vectors, (n, d), unit length."""

    def __init__(self, pieces: Sequence[Piece], vectors: Vectors, embedder: Embedder) -> None:
        self.pieces = pieces
        self.vectors = vectors
        self._embedder = embedder
        self._last = np.array([piece.messages[-1] for piece in pieces], np.int64)

    @classmethod
    async def of(cls, pieces: Sequence[Piece], embedder: Embedder) -> Self:
        return cls(pieces, await embedder.embed_passages([piece.text for piece in pieces]), embedder)

    @property
    def texts(self) -> list[str]:
        return [piece.text for piece in self.pieces]

    def lost(self, dropped: int | None) -> Bools:
        """(n,): which pieces tell of the first `dropped` messages only; None: all."""
        return np.ones(len(self._last), np.bool_) if dropped is None else self._last < dropped

    async def cosines(self, query: str) -> Floats:
        """(n,): of each piece to the question, as much of it as the model reads; ours shortens it to be quicker."""
        found: Floats = self.vectors @ (await self._embedder.embed_passages([query]))[0]
        return found

    async def to(self, query: str, dropped: int | None, *, floor: float = -1.0) -> list[Piece]:
        """The lost pieces with at least this cosine, closest first; ties in order of the conversation."""
        cosines = await self.cosines(query)
        rows = np.flatnonzero(self.lost(dropped) & (cosines >= floor))
        return [self.pieces[row] for row in rows[np.argsort(-cosines[rows], kind="stable")]]


class ByCosine:
    """The closest pieces, as many as there is room for. Implements `systems.Reader`."""

    def __init__(self, nearest: Nearest, *, floor: float = -1.0) -> None:
        self._nearest = nearest
        self._floor = floor

    async def pack(self, query: str, budget_chars: int, dropped: int | None = None) -> Pack:
        started = perf_counter()
        return filled(await self._nearest.to(query, dropped, floor=self._floor), budget_chars, started)

    async def stored(self) -> Sequence[str]:
        return self._nearest.texts
