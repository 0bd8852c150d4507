"""
Baseline: MemGPT as LANTERN re-implements it. A model extracts facts every five turns and finds them by three
questions.

LANTERN (arXiv 2606.05182, section 4.5, "MemGPT-Faithful", after Packer et al., arXiv 2310.08560): facts are extracted
by a model from each batch of five turns (500 characters of each message, at most 2,048 tokens), a model writes three
different search queries for what is asked, and a fact's score is the highest of its cosines to them.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from time import perf_counter

import numpy as np

from palimpsest.domain.ports import Embedder
from palimpsest.evaluation.datasets import Conversation
from palimpsest.evaluation.filling import Piece, filled
from palimpsest.evaluation.model import REPLY_TOKENS, Model
from palimpsest.evaluation.nearest import Nearest
from palimpsest.evaluation.systems import Pack
from palimpsest.evaluation.turns import SUMMARY_CHARS_OF_MESSAGE, turn_pairs

BATCH_TURNS = 5  # LANTERN 4.5
QUERIES = 3  # LANTERN 4.5
QUERY_TOKENS = 200  # three lines
CONTEXT_CHARS = 4_000  # of what is asked: as much as a block may hold, roughly
EXTRACT = """Extract every specific fact from this part of a conversation that may be needed later: configuration,
decisions, error codes, names, paths, commands, numbers, dates, preferences. One fact a line, complete in itself. Return
only the facts.

{turns}"""
SEARCH = """Write {queries} different search queries that find, in an archive of facts from this conversation, what is
needed to go on from here. One a line. Return only the queries.

{context}"""

_LIST = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s*")


class MemGpt:
    """Facts that a model extracted, by the best of three cosines."""

    name = "memgpt"

    def __init__(self, embedder: Embedder, model: Model) -> None:
        self._embedder = embedder
        self._model = model

    @asynccontextmanager
    async def opened(self, conversation: Conversation) -> AsyncIterator[_Reader]:
        turns = turn_pairs(conversation.messages)
        batches = [
            tuple(at for turn in turns[start : start + BATCH_TURNS] for at in turn.messages)
            for start in range(0, len(turns), BATCH_TURNS)
        ]
        answers = await asyncio.gather(*(self._extract(conversation, batch) for batch in batches))
        pieces = [Piece(fact, batch) for batch, facts in zip(batches, answers, strict=True) for fact in facts]
        yield _Reader(await Nearest.of(pieces, self._embedder), self._model)

    async def _extract(self, conversation: Conversation, batch: Sequence[int]) -> list[str]:
        """Let the model extract memories from some messages."""
        said = [conversation.messages[at] for at in batch]
        turns = "\n".join(f"{m.role}: {m.text[:SUMMARY_CHARS_OF_MESSAGE]}" for m in said if m.text.strip())
        return _lines(await self._model.complete(EXTRACT.format(turns=turns), REPLY_TOKENS))


class _Reader:
    def __init__(self, nearest: Nearest, model: Model) -> None:
        self._nearest = nearest
        self._model = model

    async def pack(self, query: str, budget_chars: int, dropped: int | None = None) -> Pack:
        """Fill the budget with what answers a query best; see `systems.Reader`."""
        started = perf_counter()
        prompt = SEARCH.format(queries=QUERIES, context=query[-CONTEXT_CHARS:])
        queries = _lines(await self._model.complete(prompt, QUERY_TOKENS))[:QUERIES] or [query]
        scores = np.max([await self._nearest.cosines(one) for one in queries], axis=0)
        rows = np.flatnonzero(self._nearest.lost(dropped))
        best = rows[np.argsort(-scores[rows], kind="stable")]
        return filled((self._nearest.pieces[row] for row in best), budget_chars, started)

    async def stored(self) -> Sequence[str]:
        return self._nearest.texts


def _lines(answer: str) -> list[str]:
    return [line for line in (_LIST.sub("", raw).strip() for raw in answer.splitlines()) if line]
