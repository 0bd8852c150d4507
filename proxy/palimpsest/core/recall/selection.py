"""
Selection: the best candidates in the order of a slower judge, who is offered twice as many as a block holds.

What the judge names comes first. What it was offered and leaves out keeps its order behind that, with the lowest
probabilities of those that were offered, by which packing leaves it out where it is not worth its room. So a judge can
move what recall found, and nothing else: it adds nothing, and what it was not offered stays where it is.

Source: LightMem-SLM 3.4 (2K candidates, K of them kept); LANTERN 3.2 (one call that orders the best candidates).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from palimpsest.core.recall.wishes import NOTE, WISH
from palimpsest.domain import Candidate

# With a judge who is never wrong, LoCoMo's multi-hop questions find all of their evidence at 3,000 characters in .30 of
# the cases without one, and in .42, .60, .68 and .72 where it is offered 20, 40, 60 and 100.
OFFERED = 60
KEPT = OFFERED // 2
CERTAIN = 1.0  # the probability of a lasting wish, which comes whatever is asked


def offered(candidates: Sequence[Candidate]) -> list[int]:
    """Places of those that a judge is offered: the best, without wishes, which are no answers."""
    return [at for at, one in enumerate(candidates) if not _is_unasked(one)][:OFFERED]


def reordered(candidates: Sequence[Candidate], places: Sequence[int], chosen: Sequence[int]) -> tuple[Candidate, ...]:
    """
    The candidates in a judge's order.

    Args:
        places: what it was offered (`offered`).
        chosen: indexes into `places`, best first; others than those, and the same once more, count for nothing.
    """
    named = list(dict.fromkeys(index for index in chosen if 0 <= index < len(places)))[:KEPT]
    if not named:
        return tuple(candidates)
    taken = set(named)
    order = [*named, *(index for index in range(len(places)) if index not in taken)]
    probabilities = sorted((candidates[at].probability for at in places), reverse=True)
    moved = list(candidates)
    for at, index, probability in zip(places, order, probabilities, strict=True):
        moved[at] = replace(candidates[places[index]], probability=probability)
    return tuple(moved)


def _is_unasked(candidate: Candidate) -> bool:
    return candidate.probability == CERTAIN and not {WISH, NOTE}.isdisjoint(candidate.signals)
