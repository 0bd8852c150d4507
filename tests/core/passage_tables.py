"""Tables of passages, for tests that need no database."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from palimpsest.core.archive.chunking import WARNS, WISHES, certainty_of, judged
from palimpsest.core.recall.ranking import Floats, PassageTable

NOW = 1_700_000_000.0
DIMENSIONS = 384


def axis(number: int) -> Floats:
    """A unit vector, at right angles to those of other numbers."""
    vector = np.zeros(DIMENSIONS, np.float32)
    vector[number] = 1
    return vector


def passage_table(
    said: Sequence[str],
    *,
    conversations: Sequence[int] = (),
    speakers: Sequence[str] = (),
    asks: Sequence[int] = (),
    users: Sequence[int] = (),
    created_at: Sequence[float] = (),
) -> PassageTable:
    """One passage for each text, in order, without vectors."""
    count = len(said)
    of = list(conversations) or [1] * count
    before, after, centres = np.full(count, -1), np.full(count, -1), np.zeros(count)
    last: dict[int, int] = {}
    ends: dict[int, float] = {}
    for row, conversation in enumerate(of):
        if conversation in last:
            before[row] = last[conversation]
            after[last[conversation]] = row
        centres[row] = ends.get(conversation, 0.0) + len(said[row]) / 2
        ends[conversation] = ends.get(conversation, 0.0) + len(said[row])
        last[conversation] = row
    judgements = [_judged(text) for text in said]
    names = {name: number for number, name in enumerate(dict.fromkeys(speakers), start=1)}
    return PassageTable(
        ids=np.arange(1, count + 1),
        occurrences=np.arange(101, count + 101),
        conversations=np.array(of, np.int64),
        fulls=np.arange(1001, count + 1001),
        lengths=np.array([len(text) for text in said], float),
        centres=centres,
        before=before,
        after=after,
        created_at=np.array(list(created_at) or [NOW] * count),
        asks=np.isin(np.arange(count), list(asks)),
        consequence=np.ones(count),
        speakers=np.array([names[name] for name in speakers] or [0] * count),
        users=np.isin(np.arange(count), list(users)),
        tells=np.array([certainty_of(judgement) for judgement in judgements]),
        wishes=np.array([WISHES in judgement for judgement in judgements], np.bool_),
        warns=np.array([WARNS in judgement for judgement in judgements], np.bool_),
        names=names,
        vectors=np.zeros((count, DIMENSIONS), np.float32),
        embedded=np.zeros(count, np.bool_),
    )


@lru_cache(None)
def _judged(text: str) -> Sequence[str]:
    """What is found of a text, which stands in many tables."""
    return judged(text, "user")
