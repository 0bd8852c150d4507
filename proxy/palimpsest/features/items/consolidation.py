"""
Consolidation: mid-term memory is tidied, bounded and abstracted, off the request path.

For each group of items (of one user in one project): update queues, then relations; for each user: the bound. What is
done is committed batch by batch, so that a run can end at any moment and the next one goes on; a run that finds nothing
to do writes nothing. Every action is logged and can be taken back. The journal is never touched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import nullcontext
from functools import partial

import numpy as np
import structlog

from palimpsest.core.consolidation.capacity import CAPACITY_ITEMS, Use, evicted
from palimpsest.core.consolidation.queues import (
    Entry,
    Floats,
    Verdict,
    entry_of,
    key_text,
    queues,
    same_slot,
    verdict,
    word_vector,
)
from palimpsest.domain import Json, Reach, frozen
from palimpsest.domain.ports import Clock, Counts, Embedder, Vectors
from palimpsest.features.items.consolidation_batches import ASKED_ITEMS, BATCH_ITEMS, Batches, Outcome
from palimpsest.features.items.model_consolidator import ModelConsolidator
from palimpsest.features.items.relating import Relater
from palimpsest.memory.archive import Archive
from palimpsest.store.engine import Ask, Engine, Transaction
from palimpsest.store.knowledge import consolidations
from palimpsest.store.knowledge.consolidations import Action
from palimpsest.store.knowledge.items import (
    Group,
    StoredItem,
    groups,
    items_of,
    mark_judged,
    save_item_vectors,
    vectors_of_items,
)

SPENT_SECONDS = 30 * 86_400.0  # for which what gave way for room can be taken back: a month, as with what is retired
SPENT_ITEMS = 1_000  # removed at a time
SLOT_LIKENESS = 0.0  # of items that state the same slot, however little alike they are

log = structlog.get_logger()


@frozen
class ItemSelection:
    """A selection of items by name of tenant ("": all), user and project (None: all; "": those of none)."""

    tenant: str = ""
    user: str | None = None
    scope: str | None = None

    def includes(self, group: Group) -> bool:
        """Whether a group is selected."""
        return (
            self.tenant in ("", group.tenant_name)
            and self.user in (None, group.user)
            and self.scope in (None, group.scope)
        )


EVERYTHING = ItemSelection()


class Consolidator:
    """Consolidates one database. Any number of processes may; one does at a time."""

    def __init__(
        self,
        database: Engine,
        embedder: Embedder,
        counts: Counts,
        clock: Clock,
        # the model that judges what rules leave, as the policy in force names it; None: nobody does
        judge: Callable[[], ModelConsolidator | None] = lambda: None,
        # that one user has at most, as the policy in force has it
        capacity_items: Callable[[], int] = lambda: CAPACITY_ITEMS,
        # likewise, whether the conversations of a tenant see each other though they name no user
        is_shared: Callable[[], bool] = lambda: False,
        batches: Batches | None = None,  # how it writes, if not as usual
    ) -> None:
        self._database = database
        self._embedder = embedder
        self._clock = clock
        self._judge = judge
        self._capacity_items = capacity_items
        self._is_shared = is_shared
        self._batches = batches or Batches(database, counts, clock)
        self._relater = Relater(database, self._batches, judge)
        self._busy = asyncio.Lock()

    @classmethod
    def of(cls, archive: Archive) -> Consolidator:
        """A consolidator of an archive, with its model in that role where there is one."""

        def judge() -> ModelConsolidator | None:
            model = archive.assistants.of("consolidator") if archive.assistants else None
            return None if model is None else ModelConsolidator(model)

        return cls(
            *(archive.database, archive.embedder, archive.counts, archive.clock, judge),
            capacity_items=lambda: archive.current().consolidation.capacity,
            is_shared=lambda: archive.current().memory.reach is Reach.TENANT,
        )

    async def run(
        self, selection: ItemSelection = EVERYTHING, dry_run: bool = False, seconds: float | None = None
    ) -> Outcome:
        """
        Consolidate the selected items.

        Args:
            dry_run: only say what would be done.
            seconds: at most for so long.

        Raises:
            MemoryFault: it was not finished; what is done by then stays so, and the next run goes on.
        """
        await self._database.open()
        outcome = Outcome()
        if not dry_run and (self._busy.locked() or not await self._batches.hold() or self._busy.locked()):
            outcome.was_alone = False
            return outcome
        async with nullcontext() if dry_run else self._busy:
            try:
                async with asyncio.timeout(seconds):
                    await self._consolidate(selection, outcome, dry_run)
            except TimeoutError:
                outcome.is_complete = False
            finally:
                if not dry_run:
                    await self._batches.release()
        if outcome.keys:
            log.info("consolidated", rows=sum(outcome.done.values()))
        return outcome

    async def undo(self, key: str, tenant: str = "") -> Json | None:
        """Undo a run, of this tenant or with "" anybody's; None: there is no such run, or it was undone before."""
        await self._database.open()
        step = partial(consolidations.undo, key=key, tenant=tenant, at=self._clock())
        count = await self._database.transact(step)
        return None if count is None else {"run": key, **count}

    async def size(self, key: str, tenant: str = "") -> int:
        """How many changes of a run can be undone; arguments as of `undo`."""
        await self._database.open()
        return await self._database.ask(partial(consolidations.size, key=key, tenant=tenant))

    async def runs(self, tenant: str = "", limit: int = 20) -> list[Json]:
        """The newest runs that changed something; see `consolidations.runs`."""
        await self._database.open()
        return await self._database.ask(partial(consolidations.runs, tenant=tenant, limit=limit))

    async def _consolidate(self, selection: ItemSelection, outcome: Outcome, dry_run: bool) -> None:
        """Consolidate each selected group, keep users within capacity, and relate items."""
        every = await self._database.ask(partial(groups, is_shared=self._is_shared()))
        meant = [group for group in every if selection.includes(group)]
        for group in meant:
            await self._queues(group, outcome, dry_run)
        for tenant, user in dict.fromkeys((group.tenant, group.user) for group in meant):
            await self._evict(tenant, user, outcome, dry_run)
        for group in meant:
            await self._relater.relate(group, outcome, dry_run)
        if not dry_run:
            await self._clean(outcome)

    async def _queues(self, group: Group, outcome: Outcome, dry_run: bool) -> None:
        """Judge the update queues of a group, oldest item first, and merge or replace items."""
        items = await self._database.ask(partial(items_of, group=group))
        newest = max((item.id for item in items), default=0)
        outcome.items += len(items)
        if all(item.judged >= newest for item in items):
            return
        entries = await asyncio.to_thread(lambda: [entry_of(item.id, item.text, item.role) for item in items])
        vectors = await self._vectors(items, entries, dry_run)
        slots, kept_apart = same_slot(entries), await self._batches.undone(items)
        row_of = {item.id: row for row, item in enumerate(items)}
        gone: set[int] = set()
        for start in range(0, len(items), BATCH_ITEMS):
            stop = min(start + BATCH_ITEMS, len(items))
            if all(item.judged >= newest for item in items[start:stop]):
                continue
            near = await asyncio.to_thread(queues, vectors, start, stop)
            verdicts: list[Verdict] = []
            open_queues: dict[int, dict[int, float]] = {}  # that rules do not judge, by row
            for row, queue in zip(range(start, stop), near, strict=True):
                at = dict(queue)
                if row in slots:
                    at.setdefault(slots[row], SLOT_LIKENESS)
                left = {
                    other: likeness
                    for other, likeness in at.items()
                    if items[other].id > items[row].judged
                    and (items[row].id, items[other].id) not in kept_apart
                    and items[other].id not in gone
                }
                found = _by_rules(entries, row, left)
                if found is not None and found.heir in row_of:
                    verdicts.append(found)
                    gone.add(found.item)
                else:
                    open_queues[row] = left
            if not dry_run:
                judged = await self._by_model(items, open_queues, gone, group)
                verdicts += judged
                gone.update(one.item for one in judged)
            actions = [Action(one.item, one.heir, one.what, one.why) for one in verdicts]
            await self._commit(group, actions, outcome, dry_run, [item.id for item in items[start:stop]], newest)

    async def _by_model(
        self, items: Sequence[StoredItem], queues: Mapping[int, Mapping[int, float]], gone: Set[int], group: Group
    ) -> list[Verdict]:
        """The verdicts of a model on queues, by row of the item, all asked at once."""
        judge = self._judge()
        if judge is None:
            return []

        async def verdict_on(row: int, queue: Sequence[StoredItem]) -> Verdict | None:
            found = await judge.judge(items[row], queue, group.tenant_name)
            return found if found is not None and found.heir in {item.id for item in queue} else None

        asked = []
        for row, queue in queues.items():
            if left := [items[other] for other in queue if items[other].id not in gone]:
                asked.append(verdict_on(row, left))
        return [found for found in await self._batches.run_beside(asyncio.gather(*asked)) if found is not None]

    async def _evict(self, tenant: int, user: str, outcome: Outcome, dry_run: bool) -> None:
        """Evict items of a user beyond the capacity; whoever names none is one user of the tenant."""
        capacity = self._capacity_items()

        def uses_of_user(ask: Ask) -> tuple[Group | None, list[Use]]:
            theirs = [group for group in groups(ask) if (group.tenant, group.user) == (tenant, user)]
            found = [item for group in theirs for item in items_of(ask, group)]
            used = [Use(item.id, item.said_at, item.used_at, item.uses) for item in found]
            return (theirs[0] if theirs else None), used

        group, uses = await self._database.ask(uses_of_user)
        if group is None:
            return
        going = evicted(uses, capacity, self._clock())
        for start in range(0, len(going), BATCH_ITEMS):
            some = going[start : start + BATCH_ITEMS]
            why = f"more than {capacity:,} items"
            actions = [Action(use.id, 0, "evicted", f"{why}; used {use.uses} times") for use in some]
            await self._commit(group, actions, outcome, dry_run)

    async def _clean(self, outcome: Outcome) -> None:
        """Remove items that were evicted so long ago that nobody will take them back."""
        before = self._clock() - SPENT_SECONDS
        spent = partial(consolidations.forget_spent, before=before, limit=SPENT_ITEMS)
        while await self._database.ask(partial(consolidations.has_spent, before=before)):
            outcome.spent += await self._batches.transact(spent)

    async def _vectors(self, items: Sequence[StoredItem], entries: Sequence[Entry], dry_run: bool) -> Floats:
        """Unit vectors of items, (n, d): by the model, or made of their words where there is none."""
        if not self._embedder.ready:
            return np.array([word_vector(entry) for entry in entries])
        look = partial(vectors_of_items, items=[item.id for item in items], model=self._embedder.name)
        known = dict(await self._database.ask(look))
        lacking = [item for item in items if item.id not in known]
        for start in range(0, len(lacking), ASKED_ITEMS):
            some = lacking[start : start + ASKED_ITEMS]
            vectors = await self._embedder.embed_passages([key_text(item.text, item.question) for item in some])
            made: dict[int, Vectors] = {item.id: v for item, v in zip(some, vectors, strict=True)}
            known |= made
            if not dry_run:
                await self._batches.transact(partial(save_item_vectors, model=self._embedder.name, vectors=made))
        return np.array([known[item.id] for item in items])

    async def _commit(
        self,
        group: Group,
        actions: Sequence[Action],
        outcome: Outcome,
        dry_run: bool,
        judged: Sequence[int] = (),
        newest: int = 0,
    ) -> None:
        """Write the actions of a group, or only count them in a dry run."""
        if dry_run:
            outcome.actions += actions
            outcome.done.update(action.what for action in actions)
            return

        def work(transaction: Transaction) -> None:
            self._batches.act(transaction, group, actions, outcome)
            mark_judged(transaction, judged, newest)

        await self._batches.transact(work, group.tenant_name)


def _by_rules(entries: Sequence[Entry], row: int, queue: Mapping[int, float]) -> Verdict | None:
    """The first verdict of a queue, the most similar items first."""
    judged = (verdict(entries[row], entries[other], likeness) for other, likeness in queue.items())
    return next((found for found in judged if found is not None), None)
