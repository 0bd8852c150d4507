"""
Topic boundaries against boundaries that are known: where one session ends and another begins.

LightMem-3 (section 5.4) takes the sessions of LongMemEval as topics. Conversations of a single session are glued
together in tens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from palimpsest.core.recall.ranking import Floats
from palimpsest.core.writing.information import TermStatistics
from palimpsest.core.writing.topics import LEAST_SIMILAR, boundaries, near
from palimpsest.domain.ports import Embedder
from palimpsest.evaluation.datasets import Conversation, DatasetMessage

GLUED = 10  # conversations of one session each
NEAR_TURNS = 1  # a boundary that is off by so many turns is found: "bye" belongs to either side
TURN_CHARS = 2000  # of a turn that is compared
ALL = 2.0  # a similarity that nothing reaches: every lowest point is a boundary


@dataclass(frozen=True, slots=True)
class Glued:
    """Turns as texts, and the indexes of those that begin another session."""

    turns: tuple[str, ...]
    begins: frozenset[int]


@dataclass(slots=True)
class Found:
    """Boundaries: how many there are, how many of them were found, and how many of those that were found are right."""

    known: int = 0
    hit: int = 0
    told: int = 0
    right: int = 0

    def add(self, told: Sequence[int], known: frozenset[int]) -> None:
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
        turns = [" ".join(said.text for said in turn)[:TURN_CHARS] for session in sessions for turn in session]
        ends = np.cumsum([len(session) for session in sessions])[:-1]
        if len(sessions) > 1:
            yield Glued(tuple(turns), frozenset(ends.tolist()))


async def measured(conversations: Sequence[Conversation], embedder: Embedder) -> dict[str, Found]:
    """What is found by words, by vectors, and by both, which is the rule."""
    found = {way: Found() for way in ("words", "vectors", "both", "no threshold")}
    for one in glued(conversations):
        statistics = TermStatistics().with_texts(one.turns)
        vectors: Floats = (await embedder.embed_passages(one.turns)).astype(np.float64)
        found["words"].add(boundaries(one.turns, statistics), one.begins)
        found["vectors"].add(_far_apart(vectors), one.begins)
        found["both"].add(boundaries(one.turns, statistics, vectors), one.begins)
        found["no threshold"].add(boundaries(one.turns, statistics, None, ALL), one.begins)
    return found


def _far_apart(vectors: Floats) -> list[int]:
    """Gaps whose sides are less alike than the threshold, and no nearer than their neighbours."""
    alike = [ALL, *(near(vectors, at) for at in range(1, len(vectors))), ALL]
    return [
        at for at in range(1, len(vectors)) if alike[at] < LEAST_SIMILAR and alike[at - 1] >= alike[at] <= alike[at + 1]
    ]


def _turns(conversation: Conversation) -> list[list[DatasetMessage]]:
    found: list[list[DatasetMessage]] = []
    for said in conversation.messages:
        if not found or said.role == "user" or said.session != found[-1][-1].session:
            found.append([])
        found[-1].append(said)
    return found


def _sessions(turns: Sequence[list[DatasetMessage]]) -> Iterator[list[list[DatasetMessage]]]:
    starts = [0, *(at for at, (a, b) in enumerate(pairwise(turns), 1) if a[0].session != b[0].session), len(turns)]
    for start, stop in pairwise(starts):
        yield list(turns[start:stop])
