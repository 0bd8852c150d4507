"""
Baseline: a sliding window of the newest messages that fit, as most clients truncate.

LANTERN (arXiv 2606.05182, section 2) and every truncating client.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from time import perf_counter

from palimpsest.domain.ports import Embedder
from palimpsest.evaluation.datasets import Conversation
from palimpsest.evaluation.filling import Piece, filled
from palimpsest.evaluation.systems import Pack


class MostRecent:
    """The newest messages, whatever is asked."""

    name = "recent"

    def __init__(self, embedder: Embedder) -> None:
        """Needs no vectors."""

    @asynccontextmanager
    async def opened(self, conversation: Conversation) -> AsyncIterator[_Reader]:
        yield _Reader([Piece(said.text, (at,)) for at, said in enumerate(conversation.messages)])


class _Reader:
    def __init__(self, pieces: list[Piece]) -> None:
        self._pieces = pieces

    async def pack(self, query: str, budget_chars: int, dropped: int | None = None) -> Pack:
        return filled(reversed(self._pieces[:dropped]), budget_chars, perf_counter())

    async def stored(self) -> Sequence[str]:
        return [piece.text for piece in self._pieces]
