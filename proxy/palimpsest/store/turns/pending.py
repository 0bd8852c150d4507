"""What waits to be indexed: how many passages, and since when."""

from __future__ import annotations

from palimpsest.store.engine import Ask

PENDING = "SELECT count(*) FROM unindexed"
OLDEST_PENDING = """
SELECT occurrence.created_at FROM unindexed JOIN memory ON memory.id = unindexed.memory
JOIN occurrence ON occurrence.id = memory.occurrence ORDER BY unindexed.memory LIMIT 1
"""


def count_pending(ask: Ask) -> int:
    return int(ask(PENDING)[0][0])


def oldest_pending(ask: Ask) -> float:
    """Unix seconds of the message that has waited longest to be indexed; 0 where none waits."""
    return next((float(at) for (at,) in ask(OLDEST_PENDING)), 0.0)
