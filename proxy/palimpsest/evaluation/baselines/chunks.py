"""
Baseline: dense retrieval of stretches of 200 tokens, WhenLoss's "Verbatim Chunk".

WhenLoss (arXiv 2605.24579, section 5.3): the conversation is cut into chunks of 200 tokens (cl100k_base) without
overlap, found by the cosine of all-MiniLM-L6-v2. Nothing is evicted here, as no write budget is given; `bench diagnose`
sets one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from palimpsest.domain.ports import Embedder
from palimpsest.evaluation.datasets import Conversation
from palimpsest.evaluation.filling import Piece
from palimpsest.evaluation.nearest import ByCosine, Nearest
from palimpsest.memory.tokens.counter import encoder
from palimpsest.wire.message import readable

CHUNK_TOKENS = 200
ENCODING = "cl100k_base"


class VerbatimChunks:
    """Stretches of the conversation by cosine."""

    name = "chunks"

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @asynccontextmanager
    async def opened(self, conversation: Conversation) -> AsyncIterator[ByCosine]:
        yield ByCosine(await Nearest.of(token_chunks(conversation), self._embedder))


def token_chunks(conversation: Conversation) -> list[Piece]:
    """
    Chunks of the conversation, in order. Each tells of the messages that it holds a part of.

    A chunk that reaches into what is still seen counts as seen.
    """
    encoding = encoder(ENCODING)
    tokens: list[int] = []
    owners: list[int] = []
    for at, said in enumerate(conversation.messages):
        found = encoding.encode_ordinary(f"{said.role}: {readable(said.text, said.calls)}\n")
        tokens += found
        owners += [at] * len(found)
    return [
        Piece(
            encoding.decode(tokens[start : start + CHUNK_TOKENS]),
            tuple(dict.fromkeys(owners[start : start + CHUNK_TOKENS])),
        )
        for start in range(0, len(tokens), CHUNK_TOKENS)
    ]
