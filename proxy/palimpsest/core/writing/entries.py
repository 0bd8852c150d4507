"""What all writers share: their signature, weights and counting of tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from palimpsest.core.writing.information import TermStatistics
from palimpsest.domain import Item, SourceMessage, frozen

Count = Callable[[str], int]
"""Tokens of a text."""

Write = Callable[[Sequence[SourceMessage], int, Count, TermStatistics], tuple[Item, ...]]
"""A segment, a budget in tokens, how they are counted, and the tenant's terms; items in order of the conversation."""

PROBES = 5  # WhenLoss 4.2; the paper found no gain in ten
ENTRY_TOKENS = 8  # of the day that an entry is shown with, and its line breaks
LONG_CHARS = 500  # of a message; without this, the clauses of long answers take the place of what users told
LEAST_TOKENS = 16  # no entry is shorter


@frozen
class Weights:
    """u(e) of WhenLoss (equation 5), and the number of questions that are asked at once."""

    coverage: float = 1.0
    specificity: float = 0.5
    redundancy: float = 0.3
    probes: int = PROBES

    def utility(self, coverage: float, specificity: float, redundancy: float) -> float:
        """Utility of evidence, by the questions it supports, and how much of it is specific or redundant."""
        return self.coverage * coverage + self.specificity * specificity - self.redundancy * redundancy


PAPER = Weights()


def cost(item: Item, count: Count) -> int:
    """Tokens of an item as it is shown: question or topic, text, day."""
    return ENTRY_TOKENS + count(f"{item.question or item.topic}\n{item.text}")


def share(message: SourceMessage) -> float:
    """How much one clause of a message counts, 0..1: less in long documents."""
    return min(1.0, LONG_CHARS / max(len(message.text), 1))
