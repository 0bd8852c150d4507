"""Batches of a consolidation: each is one transaction, logged, and only while no other process consolidates."""

from __future__ import annotations

import asyncio
import random
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TypeVar

from palimpsest.domain import Json
from palimpsest.domain.errors import MemoryFault
from palimpsest.domain.ports import Clock, Counts
from palimpsest.store.engine import Engine, Transaction, nobody
from palimpsest.store.knowledge import consolidations
from palimpsest.store.knowledge.consolidations import Action
from palimpsest.store.knowledge.items import Group, StoredItem
from palimpsest.store.operation.changes import lease, release

BATCH_ITEMS = 256  # judged, and committed, at a time: some 20 ms in which requests wait to be journalled
ASKED_ITEMS = 32  # embedded, or shown to a model, at a time: more save little, and hold up a stop
REST_SECONDS = 0.01  # between batches: requests go first
LOCK = "consolidation"  # name of the task: who consolidates at this moment
LOCK_SECONDS = 60.0  # renewed with each batch; after this another process takes over from one that has died

T = TypeVar("T")


@dataclass(slots=True)
class Outcome:
    """What a run did: actions by kind, items it looked at; its keys by tenant, where it changed something."""

    keys: dict[int, str] = field(default_factory=dict)
    items: int = 0
    done: Counter[str] = field(default_factory=Counter)
    spent: int = 0  # items that gave way for room a month ago, and are gone now
    is_complete: bool = True  # else its time was over
    was_alone: bool = True  # else another process consolidates at this moment, and this one did nothing
    actions: list[Action] = field(default_factory=list)  # of a dry run

    def to_json(self) -> Json:
        return {
            "runs": [*self.keys.values()],
            "items": self.items,
            **{what: self.done[what] for what in ("merged", "superseded", "evicted", "related")},
            "removed": self.spent,
            "alone": self.was_alone,
            "complete": self.is_complete,
            "would": [asdict(action) for action in self.actions],
        }


class Batches:
    """The transactions of consolidation of one database."""

    def __init__(self, database: Engine, counts: Counts, clock: Clock) -> None:
        self._database = database
        self._counts = counts
        self._clock = clock
        self._held_until_ms = 0
        self._holding = asyncio.Lock()

    async def transact(self, work: Callable[[Transaction], T], tenant: str = "") -> T:
        """
        Write one batch, of this tenant's rows alone, then rest.

        Raises `MemoryFault`: also if another process took over.
        """
        if not await self.hold():
            raise MemoryFault("consolidating: another process has taken over")
        result = await self._database.transact(work, (lambda _ask: (tenant,)) if tenant else None)
        await asyncio.sleep(REST_SECONDS)
        return result

    async def run_beside(self, work: Awaitable[T]) -> T:
        """Wait for long work while this process keeps the lock."""
        task = asyncio.ensure_future(work)
        try:
            while not task.done():
                await asyncio.wait((task,), timeout=LOCK_SECONDS / 4)
                await self.hold()
            return task.result()
        finally:
            task.cancel()

    def act(
        self, transaction: Transaction, group: Group, actions: Sequence[Action], outcome: Outcome
    ) -> Sequence[Action]:
        """Apply those actions that still can be, log them under the tenant's run, count and return them."""
        if not actions:
            return ()
        at = self._clock()
        key = outcome.keys.setdefault(group.tenant, f"k-{secrets.token_hex(8)}")
        run = consolidations.begin(transaction, key, group.tenant, at)
        done = consolidations.act(transaction, run, actions, at)
        outcome.done.update(action.what for action in done)
        for action in done:
            self._counts.add(f"items_{action.what}", 1)
        return done

    async def undone(self, items: Sequence[StoredItem]) -> frozenset[tuple[int, int]]:
        """Pairs of an item and its replacement (0: none) from undone runs; they are not merged again."""
        look = partial(consolidations.undone_pairs, items=[item.id for item in items])
        return await self._database.ask(look)

    async def hold(self) -> bool:
        """Take or keep the lock; whether this process is the one that consolidates."""
        async with self._holding:
            return await self._hold()

    async def _hold(self) -> bool:
        """Take the lock, or renew it when half of its time is over; False: another process has it."""
        now_ms = int(self._clock() * 1000)
        until_ms = now_ms + int(LOCK_SECONDS * 1000) + random.randrange(1000)
        if self._held_until_ms - now_ms > LOCK_SECONDS * 500:  # more than half of it is left
            return True
        step = partial(lease, name=LOCK, mine=self._held_until_ms, now_ms=now_ms, until_ms=until_ms)
        is_mine = await self._database.transact(step, nobody)
        self._held_until_ms = until_ms if is_mine else 0
        return is_mine

    async def release(self) -> None:
        mine, self._held_until_ms = self._held_until_ms, 0
        await self._database.transact(partial(release, name=LOCK, mine=mine), nobody)
