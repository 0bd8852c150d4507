"""
Which passages mean something close to the question? CALMem's episodic memory: dense only, with a floor.

CALMem (sections 3.4, 4.2 to 4.4): chunks of 1,000 characters that overlap by 200, cosine of all-MiniLM-L6-v2, floor
0.40. Its five chunks of 600 characters are its budget for a turn; here the given budget is filled, in its order.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from time import perf_counter

from proxy.core.digest import digest, readable
from proxy.evaluation.datasets import Conversation
from proxy.evaluation.filling import Piece, filled
from proxy.evaluation.nearest import Nearest
from proxy.evaluation.systems import Pack
from proxy.ports import Embedder

FLOOR_COSINE = 0.40  # CALMem 4.3


class DenseTurns:
    """Chunks of messages by cosine."""

    name = "dense"

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @asynccontextmanager
    async def opened(self, conversation: Conversation) -> AsyncIterator[_Reader]:
        chunks = chunks_of(conversation)
        yield _Reader(await Nearest.of(chunks, self._embedder))


class _Reader:
    def __init__(self, nearest: Nearest) -> None:
        self._nearest = nearest

    async def pack(self, query: str, budget_chars: int, dropped: int | None = None) -> Pack:
        started = perf_counter()
        found = await self._nearest.to(query, dropped, floor=FLOOR_COSINE)
        return filled(found, budget_chars, started)

    async def stored(self) -> Sequence[str]:
        return self._nearest.texts


def chunks_of(conversation: Conversation) -> list[Piece]:
    """Chunks of each message, tool calls read behind its text."""
    chunks = []
    for at, said in enumerate(conversation.messages):
        whole = readable(said.text, said.calls)
        chunks += [Piece(whole[chunk.start : chunk.stop], (at,)) for chunk in digest(whole, said.role)]
    return chunks
