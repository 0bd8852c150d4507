"""
Is anything relevant at all? Decided before fusion: rank lists always have a first place, relevance does not.

Who asks about Ann where nobody ever spoke of Ann asks in the wrong place, however close the rest of the question comes.
Questions asked of their own conversation and of others: on LoCoMo a best cosine of 0.45 alone admits 98.6 % and 23 %;
0.41, less what is unknown costs, 99 % and 14 %; on BEAM that is 95 % and 17 %.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from proxy.core.ranking import Asked, Bools, Rows, Shelf, in_few_messages, weighed

UNKNOWN_PENALTY = 0.05  # cosine that a question loses when none of its words was ever said here
STRANGERS_PENALTY = 0.1  # ... and when nobody whom it names was ever spoken of
RARE_SHARE = 0.01  # of the scope's passages: a rarer term is rare
IDENTIFIER_SHARE = 0.05  # ... an identifier may stand in more: whoever names a file means that file
COVERED_SHARE = 0.5  # without a model: of the question's weight, in one passage
COVERED_TERMS = 2  # ... by at least so many terms


def admits(
    shelf: Shelf, asked: Asked, eligible: Bools, *, gate_cosine: float, gate_rare_terms: int
) -> tuple[bool, str]:
    """
    Whether what may come is relevant to the question, and why, in words for `explain`.

    Args:
        eligible: (n,), which passages may come at all.
        gate_cosine: best cosine that admits.
        gate_rare_terms: so many rare terms of the question in one passage admit it.
    """
    if not eligible.any():
        return False, "nothing that may come"
    if not asked.found and asked.cosines is None:
        return False, "no word of the question is known"
    for name in asked.identifiers:
        rows = asked.found[name]
        is_rare = len(rows) <= IDENTIFIER_SHARE * len(shelf) or in_few_messages(shelf, rows)
        if is_rare and eligible[rows].any():
            return True, f"names {name}"
    weights = {term: _weight(len(rows), len(shelf)) for term, rows in asked.found.items()}
    whole = sum(weights.values()) + len(asked.absent) * _weight(0, len(shelf))
    rare = {term: rows for term, rows in asked.found.items() if len(rows) <= max(1.0, RARE_SHARE * len(shelf))}
    together = int(_most(rare, dict.fromkeys(rare, 1.0), eligible))
    if together >= gate_rare_terms:
        return True, f"{together} rare terms in one passage"
    if asked.cosines is None:
        covered = _most(asked.found, weights, eligible) / whole
        terms = _most(asked.found, dict.fromkeys(asked.found, 1.0), eligible)
        enough = covered >= COVERED_SHARE and terms >= COVERED_TERMS
        return enough, f"words of one passage cover {covered:.2f} of the question"
    if not whole:
        return False, "the question has no words of its own"
    unknown = len(asked.absent) * _weight(0, len(shelf)) / whole
    cosine = float(asked.cosines[eligible].max())
    close = cosine - UNKNOWN_PENALTY * unknown - STRANGERS_PENALTY * asked.strangers >= gate_cosine
    return (
        close,
        f"best cosine {cosine:.2f}, unknown: {unknown:.0%} of the question, {asked.strangers:.0%} of its names",
    )


def _most(found: Mapping[str, Rows], weights: Mapping[str, float], eligible: Bools) -> float:
    """The highest sum of weights of terms that one passage holds which may come."""
    return float(weighed(found, weights, len(eligible))[eligible].max(initial=0))


def _weight(holding: int, passages: int) -> float:
    """Inverse document frequency that is never negative (Robertson and Spärck Jones; Lucene's form)."""
    return float(np.log1p((passages - holding + 0.5) / (holding + 0.5)))
