"""
The limit of mid-term memory: which of a user's items are evicted when there are too many.

LightMem-SLM keeps at most 10,000 items a user and lets those go that are stale and little used. Nothing is lost with an
item: its messages stay in the archive, and are found as before.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import log2

from palimpsest.domain.frozen import frozen

CAPACITY_ITEMS = 10_000  # LightMem-SLM 3.3
HALF_LIFE_DAYS = 30.0  # of what an item is worth while it is not used; a month, as people go back to things
DAY_SECONDS = 86_400.0


@frozen
class Use:
    """How an item was used. Times in Unix seconds."""

    id: int
    said_at: float
    used_at: float
    uses: int


def evicted(items: Iterable[Use], capacity: int, now: float) -> list[Use]:
    """Choose the least valuable items of a user to evict, the least valuable first, so that `capacity` stay."""
    ranked = sorted(items, key=lambda use: (worth(use, now), use.said_at, use.id))
    return ranked[: max(len(ranked) - capacity, 0)]


def worth(use: Use, now: float) -> float:
    """The value of an item: it grows with the logarithm of its uses, and halves every month that it is idle."""
    idle_days = max(now - max(use.said_at, use.used_at), 0.0) / DAY_SECONDS
    return float((1 + log2(1 + use.uses)) * 0.5 ** (idle_days / HALF_LIFE_DAYS))
