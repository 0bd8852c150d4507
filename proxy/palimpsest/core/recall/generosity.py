"""
The levels of generosity: how sure memory must be before it speaks, and how much a passage must be worth.

Two numbers a kind of block. `least_help` is the probability that memory helps at all (`core/recall/relevance.py`)
below which nothing is said; `least_worth` is the probability of being the answer that a passage must have for each
100 characters that it takes. Right after a compaction a wrong silence costs more than a few lines: there only worth
decides. `whole_chars` is how much a conversation may have lost to get it back whole (`core/recall/small_loss.py`). What
each level costs and recovers: docs/benchmarks.md.
"""

from __future__ import annotations

from collections.abc import Mapping

from palimpsest.domain import BlockKind, Generosity
from palimpsest.domain.frozen import frozen


@frozen
class Demand:
    """What a level demands of one kind of block. `wishes` is how many lasting wishes come without being asked for."""

    least_help: float
    least_worth: float  # probability per 100 characters
    wishes: int
    whole_chars: int


DEMANDS: Mapping[Generosity, Mapping[BlockKind, Demand]] = {
    Generosity.SPARING: {
        BlockKind.RECALL: Demand(0.55, 0.02, 0, 0),
        BlockKind.RESTORE: Demand(0.0, 0.007, 2, 500),
    },
    Generosity.BALANCED: {
        BlockKind.RECALL: Demand(0.4, 0.012, 0, 1500),
        BlockKind.RESTORE: Demand(0.0, 0.002, 3, 1500),
    },
    Generosity.GENEROUS: {
        BlockKind.RECALL: Demand(0.2, 0.005, 0, 3000),
        BlockKind.RESTORE: Demand(0.0, 0.001, 6, 3000),
    },
}
