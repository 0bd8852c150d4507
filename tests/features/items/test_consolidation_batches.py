"""A batch is written only while no other process consolidates."""

from __future__ import annotations

import pytest
from palimpsest.domain.errors import MemoryFault
from palimpsest.features.items.consolidation_batches import LOCK_SECONDS, Batches
from palimpsest.store.engine import Transaction
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.telemetry.metrics import Metrics

from tests.clock import Clock
from tests.talking import NOW


def work(transaction: Transaction) -> str:
    return "done"


async def test_whoever_died_is_followed_when_the_lease_is_over(database: Database) -> None:
    clock = Clock(NOW)
    first, second = (Batches(database, Metrics(), clock) for _ in range(2))
    assert await first.transact(work) == "done"
    with pytest.raises(MemoryFault, match="another process"):
        await second.transact(work)
    clock.now = NOW + LOCK_SECONDS + 1
    assert await second.transact(work) == "done"
    with pytest.raises(MemoryFault, match="another process"):
        await first.transact(work)
    await second.release()
    assert await first.hold()
