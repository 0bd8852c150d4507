"""
Topic boundaries in talk: where neighbouring turns share few words, and mean different things.

LightMem-3 (section 3.1) takes the turns at which a model's attention between neighbours peaks, and of those the ones
whose embeddings are far apart. Here lexical cohesion stands for attention: a boundary is where it is lower than at the
gaps before and behind (Hearst, "TextTiling", Computational Linguistics 23, 1997), and the similarity of what stands
before and behind is below a threshold: of embeddings where there are any, else of words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import log1p, sqrt

import numpy as np

from palimpsest.core.archive.chunking import query_terms
from palimpsest.core.recall.ranking import Floats
from palimpsest.core.writing.information import TermStatistics

# Chosen on conversations that were glued together; `palimpsest bench writing` says how many gluings each choice finds.
WINDOW_TURNS = 2  # that are compared on each side of a gap
LEAST_SIMILAR = 0.3  # cosine of the mean vectors of both sides; less is another topic
LEAST_COHESIVE = 0.08  # cosine of their weighted words, likewise

Vector = Mapping[str, float]


def boundaries(
    turns: Sequence[str], statistics: TermStatistics, vectors: Floats | None = None, least: float | None = None
) -> list[int]:
    """
    The turns that begin a topic, the first apart, rising.

    Args:
        turns: texts.
        vectors: (n, d), unit length, one a turn; None: words alone decide.
        least: similarity below which a gap is a boundary; None: what was found best.
    """
    bags = [_bag(turn, statistics) for turn in turns]
    gaps = [
        _cosine(_sum(bags[max(0, at - WINDOW_TURNS) : at]), _sum(bags[at : at + WINDOW_TURNS]))
        for at in range(1, len(turns))
    ]
    if vectors is None:
        similar, threshold = gaps, LEAST_COHESIVE
    else:
        similar, threshold = [near(vectors, at) for at in range(1, len(turns))], LEAST_SIMILAR
    threshold = threshold if least is None else least
    return [at + 1 for at in range(len(gaps)) if _is_lowest(gaps, at) and similar[at] < threshold]


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


def near(vectors: Floats, at: int) -> float:
    """Cosine of what stands before and behind a gap: the mean vectors of up to two turns on each side."""
    before, behind = vectors[max(0, at - WINDOW_TURNS) : at].sum(axis=0), vectors[at : at + WINDOW_TURNS].sum(axis=0)
    lengths = float(np.linalg.norm(before) * np.linalg.norm(behind))
    return float(before @ behind) / lengths if lengths else 0.0


def _is_lowest(gaps: Sequence[float], at: int) -> bool:
    before = gaps[at - 1] if at else float("inf")
    behind = gaps[at + 1] if at + 1 < len(gaps) else float("inf")
    return gaps[at] <= before and gaps[at] < behind


def _bag(text: str, statistics: TermStatistics) -> Vector:
    return {term: count * statistics.bits(term) for term, count in Counter(query_terms(text)).items()}


def _sum(bags: Sequence[Vector]) -> Vector:
    whole: dict[str, float] = {}
    for bag in bags:
        for term, weight in bag.items():
            whole[term] = whole.get(term, 0.0) + weight
    return whole


def _cosine(a: Vector, b: Vector) -> float:
    product = sum(weight * b.get(term, 0.0) for term, weight in a.items())
    lengths = sqrt(sum(w * w for w in a.values()) * sum(w * w for w in b.values()))
    return product / lengths if lengths else 0.0
