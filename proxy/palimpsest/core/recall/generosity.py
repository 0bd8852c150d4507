"""
Generosity as a price: tokens a turn on average, and what memory demands so that it keeps that.

Four numbers a kind of block. `least_help` is the probability that memory helps at all (`core/recall/relevance.py`)
below which nothing is added; `least_worth` is the probability of being the answer that a passage must have for each
100 characters that it takes. Right after a compaction what is missing costs more than a few lines: there only worth
decides. `whole_chars` is how much a conversation may have lost to get it back whole (`core/recall/small_loss.py`).

Three prices were measured, docs/benchmarks.md says with what result; another one demands what lies between its
neighbours. Where a conversation spends more than its price, its recall blocks must be surer and shorter. Nothing else
moves the threshold, so the same conversation gets the same blocks again: neither the clock, nor other conversations,
nor the size of the archive. A conversation that spends less gets no weaker blocks for it.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping

from palimpsest.domain import BlockKind, Generosity, Head, frozen

PRICES = {Generosity.SPARING: 20.0, Generosity.BALANCED: 60.0, Generosity.GENEROUS: 150.0}
"""Tokens a turn, on average, that memory may add to a conversation."""

SENDINGS = 5  # of a block: with the newest ten messages. Who sends all of a history repeats it from a provider's cache
MESSAGES_OF_TURN = 2  # what the client adds, and the answer
TRUSTED_TURNS = 50  # count as if the price had been spent in them: nothing is dear at the beginning
CERTAIN = 0.9  # what is more probable to help comes whatever was spent
STEEPNESS = 2  # who spends twice the price needs four times the odds, and a quarter of the room for what it tells


@frozen
class Demand:
    """The demands of a price on one kind of block. `wishes` is how many lasting wishes come without being asked for."""

    least_help: float
    least_worth: float  # probability per 100 characters
    wishes: int
    whole_chars: int


DEMANDS: Mapping[Generosity, Mapping[BlockKind, Demand]] = {
    Generosity.SPARING: {BlockKind.RECALL: Demand(0.5, 0.04, 0, 0), BlockKind.RESTORE: Demand(0.1, 0.006, 2, 500)},
    Generosity.BALANCED: {
        BlockKind.RECALL: Demand(0.38, 0.025, 0, 1500),
        BlockKind.RESTORE: Demand(0.06, 0.003, 3, 1500),
    },
    Generosity.GENEROUS: {
        BlockKind.RECALL: Demand(0.2, 0.01, 0, 3000),
        BlockKind.RESTORE: Demand(0.03, 0.001, 6, 3000),
    },
}


def price(generosity: Generosity | float) -> float:
    """The price of a level, tokens per turn, or the number itself."""
    return PRICES[generosity] if isinstance(generosity, Generosity) else generosity


def demanded(generosity: Generosity | float, kind: BlockKind, head: Head | None = None) -> Demand:
    """The demands on a block in a conversation. `head`: where the conversation stands; None: it begins."""
    tokens = price(generosity)
    demand = _between(tokens, kind)
    excess = overspent(head, tokens) if kind is BlockKind.RECALL else 1.0
    if excess <= 1.0:
        return demand
    odds = demand.least_help / (1 - demand.least_help) * excess**STEEPNESS
    least_help = max(demand.least_help, min(odds / (1 + odds), CERTAIN))
    return Demand(least_help, demand.least_worth * excess**STEEPNESS, demand.wishes, demand.whole_chars)


def overspent(head: Head | None, price_tokens: float) -> float:
    """The cost per turn of a conversation's recall blocks so far, as a multiple of the price; 1 at its start."""
    if head is None:
        return 1.0
    spent = SENDINGS * sum(one.block.tokens for one in head.blocks if one.block.kind is BlockKind.RECALL)
    turns = (len(head.lost) + len(head.fulls)) / MESSAGES_OF_TURN
    return (spent / price_tokens + TRUSTED_TURNS) / (turns + TRUSTED_TURNS)


def _between(tokens: float, kind: BlockKind) -> Demand:
    """The demand at a price, interpolated between measured ones by the logarithm of the price."""
    measured = [*PRICES.values()]
    levels = [DEMANDS[level][kind] for level in PRICES]
    at = min(max(bisect_left(measured, tokens), 1), len(measured) - 1)
    low, high = levels[at - 1], levels[at]
    share = math.log(tokens / measured[at - 1]) / math.log(measured[at] / measured[at - 1])
    share = min(max(share, 0.0), 1.0)

    def mixed(a: float, b: float) -> float:
        return (1 - share) * a + share * b

    return Demand(
        mixed(low.least_help, high.least_help),
        mixed(low.least_worth, high.least_worth),
        round(mixed(low.wishes, high.wishes)),
        round(mixed(low.whole_chars, high.whole_chars)),
    )
