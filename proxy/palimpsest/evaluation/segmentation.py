"""
Topic boundaries against boundaries that are known: where one session ends and another begins.

LightMem-3 (section 5.4) takes the sessions of LongMemEval as topics. Conversations of a single session are glued
together in tens. They are cut as the proxy cuts them: compressed, and by what the sensory buffer holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from palimpsest.core.recall.ranking import Floats
from palimpsest.core.writing.information import TermStatistics
from palimpsest.core.writing.lightmem3 import batches
from palimpsest.domain import SourceMessage
from palimpsest.domain.ports import Embedder
from palimpsest.evaluation.datasets import Conversation, DatasetMessage
from palimpsest.evaluation.writing import turn_vectors
from palimpsest.features.items.writing import CHARS_PER_TOKEN

GLUED = 10  # conversations of one session each
NEAR_TURNS = 1  # a boundary that is off by so many turns is found: "bye" belongs to either side


@dataclass(frozen=True, slots=True)
class Glued:
    """Turns, and the indexes of those that begin another session."""

    turns: tuple[tuple[DatasetMessage, ...], ...]
    begins: frozenset[int]

    @property
    def messages(self) -> list[SourceMessage]:
        """The messages as a writer reads them."""
        said = (each for turn in self.turns for each in turn)
        return [SourceMessage(at, each.role, each.text, each.at) for at, each in enumerate(said)]


@dataclass(slots=True)
class Found:
    """Boundaries: how many there are, how many of them were found, and how many of those that were found are right."""

    known: int = 0
    hit: int = 0
    told: int = 0
    right: int = 0

    def add(self, told: Sequence[int], known: frozenset[int]) -> None:
        """Count the boundaries that were found, and those that are known."""
        self.known += len(known)
        self.told += len(told)
        self.hit += sum(any(abs(one - other) <= NEAR_TURNS for other in told) for one in known)
        self.right += sum(any(abs(one - other) <= NEAR_TURNS for other in known) for one in told)

    @property
    def recall(self) -> float:
        """What LightMem-3 calls accuracy."""
        return self.hit / max(self.known, 1)

    @property
    def precision(self) -> float:
        return self.right / max(self.told, 1)

    @property
    def f1(self) -> float:
        return 2 * self.recall * self.precision / max(self.recall + self.precision, 1e-9)


def glued(conversations: Sequence[Conversation]) -> Iterator[Glued]:
    """Conversations of several sessions as they are, the others in tens."""
    single = [_turns(conversation) for conversation in conversations if conversation.sessions == 1]
    parts = [[part for part in _sessions(_turns(c))] for c in conversations if c.sessions > 1]
    parts += [single[start : start + GLUED] for start in range(0, len(single), GLUED)]
    for sessions in parts:
        ends = np.cumsum([len(session) for session in sessions])[:-1]
        if len(sessions) > 1:
            yield Glued(tuple(tuple(turn) for session in sessions for turn in session), frozenset(ends.tolist()))


async def measured(conversations: Sequence[Conversation], embedder: Embedder) -> dict[str, Found]:
    """Count boundaries found by words, by words and vectors, and by a cut before every turn."""
    found = {way: Found() for way in ("words", "words and vectors", "every turn")}
    for one in glued(conversations):
        found["words"].add(cuts(one), one.begins)
        found["words and vectors"].add(cuts(one, await turn_vectors(one.messages, embedder)), one.begins)
        found["every turn"].add(range(1, len(one.turns)), one.begins)
    return found


def cuts(one: Glued, vectors: Floats | None = None) -> list[int]:
    """The turns with which LightMem-3's topics begin, the first apart."""
    messages = one.messages
    statistics = TermStatistics().with_texts(said.text for said in messages)
    topics = [topic for batch in batches(messages, _tokens, statistics, vectors=vectors) for topic in batch]
    of_message = [at for at, turn in enumerate(one.turns) for _ in turn]
    return [of_message[topic.messages[0]] for topic in topics[1:]]


def _tokens(text: str) -> int:
    return -(-len(text) // CHARS_PER_TOKEN)


def _turns(conversation: Conversation) -> list[list[DatasetMessage]]:
    """The turns of a conversation."""
    found: list[list[DatasetMessage]] = []
    for said in conversation.messages:
        if not found or said.role == "user" or said.session != found[-1][-1].session:
            found.append([])
        found[-1].append(said)
    return found


def _sessions(turns: Sequence[list[DatasetMessage]]) -> Iterator[list[list[DatasetMessage]]]:
    """The turns by session."""
    starts = [0, *(at for at, (a, b) in enumerate(pairwise(turns), 1) if a[0].session != b[0].session), len(turns)]
    for start, stop in pairwise(starts):
        yield list(turns[start:stop])
