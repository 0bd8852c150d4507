"""
Baseline: LANTERN. Turn pairs, summaries by rule, four ranked lists, RRF and MMR, packed into the budget.

Our reading of LANTERN (arXiv 2606.05182), section 3 and appendix A, without reinforcement, as in its headline figures.
What the paper leaves open is read in its favour: in a tool loop each answer is a turn of its own; full text sees
summary and content of a turn; the last summary is cut to the room that is left. `lantern-unweighted` leaves out the
list by importance: over months of dates it becomes a list by age, which the paper's conversations of one sitting do not
have. `lantern-chunks` also indexes long messages in chunks of 1,000 characters that overlap by 200, so that what lies
behind the first 500 of them can come. `lantern-rerank` needs a model; the paper prints no prompt, this one is ours.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from palimpsest.core.archive.chunking import STOP_WORDS, WINDOW_CHARS, split_into_passages
from palimpsest.core.recall.ranking import (
    RRF_DAMPING_RANKS,
    Floats,
    RankedRows,
    Rows,
    consequence,
    diversified,
    ranks,
    recency,
)
from palimpsest.domain.ports import Embedder
from palimpsest.evaluation.datasets import Conversation
from palimpsest.evaluation.filling import Piece, filled
from palimpsest.evaluation.model import Model
from palimpsest.evaluation.nearest import Nearest
from palimpsest.evaluation.systems import Pack
from palimpsest.evaluation.turns import TurnPair, hints, turn_pairs
from palimpsest.wire.message import readable

DIVERSITY = 0.7  # lambda of MMR, appendix A
FIRST_CONFIDENCE, FIRST_SUCCESS = 0.5, 0.5  # c0 and s0, section 3.1
DAY_SECONDS = 86_400.0
RERANKED = 20  # candidates: three times as many summaries as a block of 6,000 characters holds
RERANK_CHARS = 300  # of each: two or three sentences tell what it is about
CONTEXT_CHARS = 2_000  # of what stands after the compaction, its end
RERANK_TOKENS = 100  # twenty numbers
RERANK = """A conversation was compacted. You are given what still stands of it, and numbered entries from before.
Order the entries by how much is needed to go on: those with specific facts first. Answer with their numbers only, best
first, separated by commas.

What still stands:
{context}

Entries:
{entries}"""


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the archive: what is embedded and shown, what full text sees beside it, its hints and its D."""

    piece: Piece
    content: str
    hints: frozenset[str]
    richness: float
    at: float


class Lantern:
    """The four lists, and no model."""

    name = "lantern"

    def __init__(
        self, embedder: Embedder, *, chunks: bool = False, weighted: bool = True, model: Model | None = None
    ) -> None:
        self._embedder = embedder
        self._chunks = chunks
        self._weighted = weighted
        self._model = model

    @asynccontextmanager
    async def opened(self, conversation: Conversation) -> AsyncIterator[_Reader]:
        turns = turn_pairs(conversation.messages)
        entries = [_entry(turn) for turn in turns]
        if self._chunks:
            entries += [entry for turn in turns for entry in _chunks(conversation, turn)]
        nearest = await Nearest.of([entry.piece for entry in entries], self._embedder)
        with closing(_full_text(entries)) as text:
            yield _Reader(entries, nearest, text, self._weighted, self._model)


class LanternWithChunks(Lantern):
    """LANTERN, long messages also in chunks."""

    name = "lantern-chunks"

    def __init__(self, embedder: Embedder) -> None:
        super().__init__(embedder, chunks=True)


class UnweightedLantern(Lantern):
    """LANTERN without its list by importance, which in the paper's conversations of one sitting is alike for most."""

    name = "lantern-unweighted"

    def __init__(self, embedder: Embedder) -> None:
        super().__init__(embedder, weighted=False)


class RerankedLantern(Lantern):
    """Lantern-Rerank: a model orders the first candidates, in one call."""

    name = "lantern-rerank"

    def __init__(self, embedder: Embedder, model: Model) -> None:
        super().__init__(embedder, model=model)


class _Reader:
    def __init__(
        self,
        entries: Sequence[Entry],
        nearest: Nearest,
        text: sqlite3.Connection,
        weighted: bool,
        model: Model | None,
    ) -> None:
        self._entries = entries
        self._nearest = nearest
        self._text = text
        self._weighted = weighted
        self._model = model
        ages = (max(entry.at for entry in entries) - np.array([entry.at for entry in entries])) / DAY_SECONDS
        never_accessed = np.log2(0 + 1) + 1  # F
        richness = np.array([entry.richness for entry in entries])
        self._importance = recency(ages) * never_accessed * richness * FIRST_CONFIDENCE * FIRST_SUCCESS

    async def pack(self, query: str, budget_chars: int, dropped: int | None = None) -> Pack:
        """Fill the budget with what answers a query best; see `systems.Reader`."""
        started = perf_counter()
        lost = self._nearest.lost(dropped)
        lists = await self.lists(query)
        scores = sum((_reciprocal_ranks(np.where(lost, values, 0.0)) for values in lists.values()), np.zeros(len(lost)))
        rows = np.flatnonzero(lost)
        rows = rows[np.argsort(-scores[rows], kind="stable")]
        order = diversified(RankedRows(rows, scores[rows], {}), self._nearest.vectors, DIVERSITY).rows
        pieces = [self._entries[row].piece for row in order]
        if self._model is not None:
            pieces = await reranked(query, pieces, self._model)
        return filled(pieces, budget_chars, started)

    async def lists(self, query: str) -> Mapping[str, Floats]:
        """The four ranked lists: a value for each of n entries, (n,), 0 where an entry is not in the list."""
        found = {
            "meaning": await self._nearest.cosines(query),
            "words": self._matches(query),
            "hints": self._overlaps(query),
        }
        return found | {"importance": self._importance} if self._weighted else found

    async def stored(self) -> Sequence[str]:
        return self._nearest.texts

    def _matches(self, query: str) -> Floats:
        """BM25 of FTS5 where an entry holds a word of the query, else 0: (n,)."""
        scores = np.zeros(len(self._entries))
        words = " OR ".join(f'"{word}"' for word in _words(query))
        if words:
            for row, score in self._text.execute("SELECT rowid, -bm25(entry) FROM entry WHERE entry MATCH ?", (words,)):
                scores[row - 1] = max(score, np.finfo(float).tiny)
        return scores

    def _overlaps(self, query: str) -> Floats:
        """Shared terms and hints of query and entry, of all of both (Jaccard): (n,)."""
        wanted = _words(query) | hints(query)
        return np.array([len(wanted & e.hints) / max(len(wanted | e.hints), 1) for e in self._entries])


async def reranked(context: str, pieces: Sequence[Piece], model: Model) -> list[Piece]:
    """The first candidates in the order of the numbers that the model names; those that it leaves out come behind."""
    shown = pieces[:RERANKED]
    entries = "\n".join(f"[{at}] {' '.join(one.text.split())[:RERANK_CHARS]}" for at, one in enumerate(shown, start=1))
    prompt = RERANK.format(context=context[-CONTEXT_CHARS:], entries=entries)
    named = (int(number) - 1 for number in re.findall(r"\d{1,3}", await model.complete(prompt, RERANK_TOKENS)))
    order = dict.fromkeys([*(at for at in named if 0 <= at < len(shown)), *range(len(shown))])
    return [*(shown[at] for at in order), *pieces[len(shown) :]]


def _words(query: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", query.lower())) - STOP_WORDS


def _entry(turn: TurnPair) -> Entry:
    return Entry(
        Piece(turn.summary, turn.messages),
        turn.content,
        turn.hints,
        consequence(bool(turn.tools), bool(turn.files)),
        turn.at,
    )


def _chunks(conversation: Conversation, turn: TurnPair) -> list[Entry]:
    """An entry for each chunk of the long messages of a turn."""
    richness = consequence(bool(turn.tools), bool(turn.files))
    entries = []
    for at in turn.messages:
        said = conversation.messages[at]
        whole = readable(said.text, said.calls)
        for chunk in split_into_passages(whole, said.role) if len(whole) > WINDOW_CHARS else ():
            piece = Piece(whole[chunk.start : chunk.stop], (at,))
            entries.append(Entry(piece, "", hints(piece.text), richness, said.at))
    return entries


def _full_text(entries: Sequence[Entry]) -> sqlite3.Connection:
    """A full-text index of entries, in memory."""
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE entry USING fts5(summary, content, tokenize = 'porter unicode61')")
    database.executemany("INSERT INTO entry VALUES (?, ?)", [(entry.piece.text, entry.content) for entry in entries])
    return database


def _reciprocal_ranks(values: Floats) -> Floats:
    """1 / (60 + rank) of what a list holds; 0 for what it does not."""
    places: Rows = ranks(values)
    return np.where(values > 0, 1 / (RRF_DAMPING_RANKS + places), 0.0)
