"""
Keys to passages besides their own words and vectors: items that were made of them, and relations of a question's words.

A key only leads to passages: it makes them look nearer to the question than their own text does. What is quoted is
always the passage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from palimpsest.core.recall.ranking import Floats, Rows
from palimpsest.domain.frozen import frozen

ITEM_SHARE = 0.5  # of how much nearer an item is to the question than a passage that it was made of
RELATED_BOOST = 0.1  # cosine, for a passage that holds all related words; what tells passages apart is of that size
RELATED_TERMS = 10  # of a question, the strongest; ten are as many as a question and its answer share


@frozen
class ItemVectors:
    """
    The m items of a scope: their ids and unit vectors, (m, d), and the passages that each was made of.

    `at` and `memories` are parallel: places of items, and the ids of passages.
    """

    ids: Rows
    vectors: Floats
    at: Rows
    memories: Rows


@frozen
class Boost:
    """How much nearer keys make each of n passages, (n,) in cosine; and by which item, (n,): its id, 0 by none."""

    cosines: Floats
    items: Rows


def by_items(items: ItemVectors, question: Floats, cosines: Floats, passage_ids: Rows) -> Boost:
    """
    The boost of each passage by the items made of it, and which item gave it.

    Args:
        question: unit vector, (d,).
        cosines: of n passages to the question, (n,).
        passage_ids: theirs, rising, (n,).
    """
    boost, which = np.zeros(len(cosines)), np.zeros(len(cosines), np.int64)
    rows = np.searchsorted(passage_ids, items.memories)
    here = np.flatnonzero(rows < len(passage_ids))
    here = here[passage_ids[rows[here]] == items.memories[here]]
    if not len(here):
        return Boost(boost, which)
    nearer = (items.vectors @ question)[items.at[here]] - cosines[rows[here]]
    order = np.argsort(nearer, kind="stable")  # the nearest item of a passage is written last
    boost[rows[here][order]] = ITEM_SHARE * np.maximum(nearer[order], 0.0)
    which[rows[here][order]] = np.where(nearer[order] > 0, items.ids[items.at[here][order]], 0)
    return Boost(boost, which)


def split_by_score(count: int, mid_term: Sequence[float], long_term: Sequence[float]) -> tuple[int, int]:
    """
    Split `count` results between mid-term and long-term memory, in proportion to the scores of their best.

    Args:
        mid_term, long_term: scores, best first.

    Source: LightMem-SLM 3.3, where a model routes; a tier that has nothing leaves its share to the other.
    """
    whole = sum(mid_term[:count]) + sum(long_term[:count])
    mid = round(count * sum(mid_term[:count]) / whole) if whole else 0
    mid = min(max(mid, count - len(long_term)), len(mid_term))
    return mid, min(count - mid, len(long_term))


def related_terms(terms: Sequence[str], relations: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """The strongest of the words related to those of a question, with their strengths."""
    found: dict[str, float] = {}
    for term in terms:
        for other, strength in relations.get(term, {}).items():
            if other not in terms:
                found[other] = found.get(other, 0.0) + strength
    strongest = sorted(found, key=lambda term: (-found[term], term))[:RELATED_TERMS]
    return {term: found[term] for term in strongest}


def by_relations(held: Mapping[str, Rows], strengths: Mapping[str, float], passages: int) -> Floats:
    """
    The boost of each of n passages by the related words that it holds: (n,), in cosine.

    Args:
        held: by related word, the rows of the passages that hold it.
        strengths: of the relations that led to it. Rare words say more than common ones.
    """
    boost = np.zeros(passages)
    for term, rows in held.items():
        if len(rows):
            boost[rows] += np.log(passages / len(rows)) * min(strengths[term], 3.0)
    most = boost.max(initial=0.0)
    return RELATED_BOOST * boost / most if most > 0 else boost
