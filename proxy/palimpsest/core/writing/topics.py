"""
Topic boundaries in talk: where neighbouring turns share fewer words, and are further apart in meaning, than elsewhere.

LightMem-3 (section 3.1) takes the turns at which a model's attention between neighbours peaks, and of those the ones
whose embeddings are less alike than a threshold. Here lexical cohesion stands for attention, and both are measured
against the talk itself, as no cosine serves both friends who chat on and a user with ten tasks: a boundary is a gap
that is less alike than those before and behind it, and than the average gap by most of a standard deviation (Hearst,
"TextTiling", Computational Linguistics 23, 1997, cuts by the distribution of a text's own scores).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import log1p, sqrt

import numpy as np

from palimpsest.core.archive.chunking import query_terms
from palimpsest.core.recall.ranking import Floats
from palimpsest.core.writing.information import TermStatistics

# Chosen on conversations that were glued together; `palimpsest bench writing` says how many gluings each choice finds.
WINDOW_TURNS = 2  # that are compared on each side of a gap
LEAST_DIP = 0.75  # standard deviations; from .6 to 1.25 the mean F1 of three sets is .60 to .62
MOST_COHESIVE = 0.2  # cosine of the weighted words of both sides: one topic, however much the rest of a talk shares
SAME = 1e-9  # a deviation, or a length, that is rounding

Vector = Mapping[str, float]


def boundaries(turns: Sequence[str], statistics: TermStatistics, vectors: Floats | None = None) -> list[int]:
    """
    The turns that begin a topic, the first apart, rising.

    Args:
        turns: texts, of which gaps are compared with one another.
        vectors: (n, d), unit length, one a turn, which count as much as words; None: words alone decide.
    """
    bags = [_term_weights(turn, statistics) for turn in turns]
    cohesion = [_cosine(_sum(bags[before]), _sum(bags[behind])) for before, behind in _sides(len(turns))]
    alike = _standardised(cohesion)
    if vectors is not None:
        alike = (alike + _standardised([_mean_cosine(vectors[a], vectors[b]) for a, b in _sides(len(turns))])) / 2
    dips = [at for at in range(len(alike)) if _is_lowest(alike, at) and alike[at] < -LEAST_DIP]
    return [at + 1 for at in dips if cohesion[at] < MOST_COHESIVE]


def label(texts: Sequence[str], statistics: TermStatistics, words: int = 3) -> str:
    """The words of these texts that tell most of what is said again and again, as they were said first."""
    said: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for text in texts:
        for word in text.split():
            bare = word.strip(".,;:!?\"'()[]*")
            for term in query_terms(bare)[:1]:
                said.setdefault(term, bare)
                counts[term] += 1
    best = sorted(counts, key=lambda term: -log1p(counts[term]) * statistics.bits(term))[:words]
    return ", ".join(said[term] for term in best)


def _sides(turns: int) -> Iterator[tuple[slice, slice]]:
    """The slices of turns that are compared at each gap: before it and behind."""
    for at in range(1, turns):
        yield slice(max(0, at - WINDOW_TURNS), at), slice(at, at + WINDOW_TURNS)


def _standardised(values: Sequence[float]) -> Floats:
    """Values in standard deviations from their mean; 0 where all are the same."""
    found = np.array(values)
    return (found - found.mean()) / (found.std() + SAME) if len(found) else found


def _mean_cosine(before: Floats, behind: Floats) -> float:
    """The cosine of the mean of some vectors and the mean of others."""
    a, b = before.sum(axis=0), behind.sum(axis=0)
    return float(a @ b) / max(float(np.linalg.norm(a) * np.linalg.norm(b)), SAME)


def _is_lowest(alike: Floats, at: int) -> bool:
    """Whether a value is a local minimum; of equal neighbours only the last is one."""
    before = alike[at - 1] if at else float("inf")
    behind = alike[at + 1] if at + 1 < len(alike) else float("inf")
    return bool(alike[at] <= before and alike[at] < behind)


def _term_weights(text: str, statistics: TermStatistics) -> Vector:
    """The terms of a text, each weighted by its count times its bits of information."""
    return {term: count * statistics.bits(term) for term, count in Counter(query_terms(text)).items()}


def _sum(bags: Sequence[Vector]) -> Vector:
    """The sum of weights by term."""
    whole: dict[str, float] = {}
    for bag in bags:
        for term, weight in bag.items():
            whole[term] = whole.get(term, 0.0) + weight
    return whole


def _cosine(a: Vector, b: Vector) -> float:
    product = sum(weight * b.get(term, 0.0) for term, weight in a.items())
    lengths = sqrt(sum(w * w for w in a.values()) * sum(w * w for w in b.values()))
    return product / lengths if lengths else 0.0
