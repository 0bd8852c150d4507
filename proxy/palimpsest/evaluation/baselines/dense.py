"""
Baseline: dense retrieval of passages with a floor, CALMem's episodic memory.

CALMem (sections 3.4, 4.2 to 4.4): chunks of 1,000 characters that overlap by 200, cosine of all-MiniLM-L6-v2, floor
0.40. Its five chunks of 600 characters are its budget for a turn; here the given budget is filled, in its order.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from palimpsest.core.archive.chunking import split_into_passages
from palimpsest.domain.ports import Embedder
from palimpsest.evaluation.datasets import Conversation
from palimpsest.evaluation.filling import Piece
from palimpsest.evaluation.nearest import ByCosine, Nearest
from palimpsest.wire.message import readable

FLOOR_COSINE = 0.40  # CALMem 4.3


class DenseTurns:
    """Chunks of messages by cosine."""

    name = "dense"

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @asynccontextmanager
    async def opened(self, conversation: Conversation) -> AsyncIterator[ByCosine]:
        chunks = chunks_of(conversation)
        yield ByCosine(await Nearest.of(chunks, self._embedder), floor=FLOOR_COSINE)


def chunks_of(conversation: Conversation) -> list[Piece]:
    """Chunks of each message, tool calls read behind its text."""
    chunks = []
    for at, said in enumerate(conversation.messages):
        whole = readable(said.text, said.calls)
        chunks += [Piece(whole[chunk.start : chunk.stop], (at,)) for chunk in split_into_passages(whole, said.role)]
    return chunks
