"""
Baseline: extractive summaries, newest first, LANTERN's "Summarization".

LANTERN (arXiv 2606.05182, sections 3.1 and 4.5): up to 500 characters of each message, 1,200 of a turn.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from time import perf_counter

from palimpsest.domain.ports import Embedder
from palimpsest.evaluation.datasets import Conversation
from palimpsest.evaluation.filling import Piece, filled
from palimpsest.evaluation.systems import Pack
from palimpsest.evaluation.turns import TurnPair, turn_pairs


class Extractive:
    """Summaries of turns by rule, whatever is asked."""

    name = "extractive"

    def __init__(self, embedder: Embedder) -> None:
        """Needs no vectors."""

    @asynccontextmanager
    async def opened(self, conversation: Conversation) -> AsyncIterator[_Reader]:
        yield _Reader(turn_pairs(conversation.messages))


class _Reader:
    def __init__(self, turns: list[TurnPair]) -> None:
        self._turns = turns

    async def pack(self, query: str, budget_chars: int, dropped: int | None = None) -> Pack:
        lost = (turn for turn in reversed(self._turns) if dropped is None or turn.messages[-1] < dropped)
        return filled((Piece(turn.summary, turn.messages) for turn in lost), budget_chars, perf_counter())

    async def stored(self) -> Sequence[str]:
        return [turn.summary for turn in self._turns]
