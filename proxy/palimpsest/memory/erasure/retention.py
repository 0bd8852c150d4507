"""
Retention: what is too old, or too much, is erased a little at a time beside the requests.

One process at a time sweeps, for a fraction of a second each minute: it goes through the conversations, erases what is
due with the same steps as forgetting on request, and leaves the same tombstones. What it does not do is search the
files afterwards. Words that were deleted leave the full-text index when it is merged, once a day.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from time import perf_counter

import structlog

from palimpsest.core.archive.retention import KINDS, Cutoffs, cutoffs, is_in_force, size_bytes
from palimpsest.core.archive.tombstones import scope_print
from palimpsest.core.caller.identity import tenant_key
from palimpsest.domain import HeadFlag, Json
from palimpsest.domain.errors import MemoryFault
from palimpsest.domain.ports import Clock, Counts
from palimpsest.settings.policy import RetentionPolicy
from palimpsest.store.engine import Engine, Row, Transaction, nobody
from palimpsest.store.engine.full_text import merge_some
from palimpsest.store.engine.room import StoreSize, give_back, store_size
from palimpsest.store.erasure.erasure import erase_conversation, erase_messages, erase_tenant_if_empty, mark_messages
from palimpsest.store.erasure.retirement import due_retirement, expire
from palimpsest.store.erasure.sweeping import (
    HOLDER,
    LOCK,
    DueParts,
    conversations_after,
    due_conversations,
    last_turn_at,
    of_retirement,
    oldest_of_all,
    sweep_explained,
)
from palimpsest.store.families.blocks import erase_blocks, quoting
from palimpsest.store.families.family import Erased
from palimpsest.store.knowledge.added_facts import added_of_retirement, added_until, erase_added
from palimpsest.store.operation.changes import lease, release

PAUSE_SECONDS = 60.0  # between two runs when nothing is due
BUSY_PAUSE_SECONDS = 2.0  # while something is: a tenth of one core and of the disk goes to it
BUDGET_SECONDS = 0.2  # of one run
HOLDER_SECONDS = 200.0  # after this another process takes over from one that has died
LOCK_SECONDS = 30.0  # a step takes milliseconds
CONVERSATIONS = 20  # looked at in one question, some milliseconds
MESSAGES = 20  # erased in one transaction: some 5 ms in which requests wait to be journalled
REST_SECONDS = 0.01  # behind each of them: requests go first
DECISIONS = 200  # the same
OLDEST = 50  # messages taken at a time where the file is too large
SPARE_SHARE = 0.05  # of the largest size is made free, so that it is not reached again at once
MERGE_PAGES = 50  # of the full-text index at a time, 200 KB: some 5 ms
MERGED = 2  # changed rows: see `merge_some`
MERGE_SECONDS = 86_400.0  # between two merges of the whole index
VACUUM_PAGES = 100  # of the file given back at a time, 400 KB: some 5 ms
FREE_PAGES = 100  # 400 KB: less is soon used again
IDLE_SECONDS = 3600.0  # a conversation without a turn for so long is over, where room is needed
LOCK_PAUSE_SECONDS = 0.2
LOOK_SECONDS = 600.0  # between two looks at all conversations, for the metrics, while there is more than one run can do

log = structlog.get_logger()


@dataclass(slots=True)
class Sweep:
    """What one run did, and whether it came to the end of all that is due."""

    swept: Counter[str] = field(default_factory=Counter)  # rows by kind
    is_complete: bool = False
    was_alone: bool = True  # else another process swept at that moment, and this one did nothing
    bytes: int = 0  # of the file


@dataclass(slots=True)
class Overview:
    """What is due, by kind: rows, and the age of the oldest in seconds; and how large the file is."""

    due: Counter[str] = field(default_factory=Counter)
    oldest_seconds: dict[str, float] = field(default_factory=dict)
    file: StoreSize = field(default_factory=lambda: StoreSize(0, 0, 0))

    def to_json(self) -> Json:
        """The overview as JSON."""
        kinds = {kind: {"due": self.due[kind], "oldest_seconds": self.oldest_seconds.get(kind)} for kind in KINDS}
        return {"kinds": kinds, "file": asdict(self.file)}

    def add(self, due: DueParts, now: float) -> None:
        """Add what is due of one conversation."""
        self.due.update({kind: len(found) for kind, found in due.messages.items()})
        if due.explained:
            self.due["explain"] += len(due.explained)
        for kind, created_at in due.oldest.items():
            self.oldest_seconds[kind] = max(now - created_at, self.oldest_seconds.get(kind, 0.0))


class _RowCounts(Erased):
    """Counts erased rows without keeping samples: a sweep does not search the disk."""

    def take(self, name: str, rows: Iterable[tuple[str, ...]]) -> None:
        self.counts[name] += sum(1 for _ in rows)
        self.words.clear()


class Sweeper:
    """Sweeps one database by the policy in force. Run `run` in the background."""

    def __init__(
        self, database: Engine, secret: bytes, policy: Callable[[], RetentionPolicy], counts: Counts, clock: Clock
    ) -> None:
        self._database = database
        self._secret = secret
        self._policy = policy
        self._counts = counts
        self._clock = clock
        self._held_until_ms = 0  # the lease of the one who sweeps by itself
        self._last = 0  # the conversation that was looked at last
        self._due: Counter[str] = Counter()  # by kind, as of the last look at all conversations, less what went since
        self._ages: dict[str, float] = {}
        self._looked_at = 0.0
        self._oldest = 0  # all messages up to this one are erased
        self._is_unmerged = False
        self._has_begun_merging = False
        self._merged_at = 0.0

    async def run(self) -> None:
        """Sweep from time to time, forever; when stopped, let another process take over at once."""
        try:
            while True:
                try:
                    is_busy = await self._hold() and await self._run()
                except MemoryFault as fault:  # the store says so itself; the next run tries again
                    log.warning("what is due could not be erased now", reason=str(fault))
                    is_busy = False
                pause = BUSY_PAUSE_SECONDS if is_busy else PAUSE_SECONDS
                await asyncio.sleep(pause * random.uniform(0.9, 1.1))  # workers start together
        finally:
            if self._held_until_ms:
                with suppress(MemoryFault):
                    await self._database.transact(partial(release, name=HOLDER, mine=self._held_until_ms), nobody)

    async def _run(self) -> bool:
        """Sweep once and publish the metrics; True: something was erased, or is left to erase."""
        sweep = await self.sweep(BUDGET_SECONDS)
        if is_in_force(self._policy()):
            await self._publish(sweep)
        return bool(sweep.swept) or not sweep.is_complete

    async def sweep(self, budget_seconds: float) -> Sweep:
        """Erase what is due, for about so long; what is erased before a failure stays so."""
        ends = perf_counter() + budget_seconds
        sweep = Sweep()
        if not (mine := await self._lock(ends)):
            sweep.was_alone = False
            return sweep
        try:
            sweep.is_complete = await self._sweep(sweep, ends)
        finally:
            await self._database.transact(partial(release, name=LOCK, mine=mine), nobody)
        for kind, rows in sweep.swept.items():
            self._counts.add("retention_rows_swept", rows, kind)
        if sweep.swept:
            log.info("erased what was due", messages=sum(sweep.swept.values()))
        sweep.bytes = (await self._database.ask(store_size)).bytes
        return sweep

    async def overview(self) -> Overview:
        """What is due now. Goes through all conversations, a few at a time."""
        await self._database.open()
        found, last, now = Overview(), 0, self._clock()
        while True:
            due, last = await self._next(last, now)
            for one in due:
                found.add(one, now)
            if not last:
                found.file = await self._database.ask(store_size)
                return found

    async def _hold(self) -> bool:
        """Take or keep the lease for background sweeping; False: another process has it."""
        now_ms = int(self._clock() * 1000)
        until_ms = now_ms + int(HOLDER_SECONDS * 1000) + random.randrange(1000)
        step = partial(lease, name=HOLDER, mine=self._held_until_ms, now_ms=now_ms, until_ms=until_ms)
        is_mine = await self._database.transact(step, nobody)
        self._held_until_ms = until_ms if is_mine else 0
        return is_mine

    async def _lock(self, ends: float) -> int:
        """Take the lock for one sweep; 0: another process has it."""
        while True:
            now_ms = int(self._clock() * 1000)
            mine = now_ms + int(LOCK_SECONDS * 1000) + random.randrange(1000)
            step = partial(lease, name=LOCK, mine=0, now_ms=now_ms, until_ms=mine)
            if await self._database.transact(step, nobody):
                return mine
            if perf_counter() + LOCK_PAUSE_SECONDS > ends:
                return 0
            await asyncio.sleep(LOCK_PAUSE_SECONDS)

    async def _sweep(self, sweep: Sweep, ends: float) -> bool:
        """
        Run all steps in order until `perf_counter` reaches `ends`.

        Each step returns whether it finished; False: the time was over first, and the next sweep goes on.
        """
        steps = (
            *(self._erase_retired, self._erase_old_facts, self._erase_old_messages, self._erase_oldest_if_too_large),
            *(self._merge_index, self._shrink_file),
        )
        for step in steps:
            if not await step(sweep, ends):
                return False
        return True

    async def _erase_retired(self, sweep: Sweep, ends: float) -> bool:
        """Erase what was retired and not taken back in time; True: all of it."""
        while retirement := await self._database.ask(partial(due_retirement, now=self._clock())):
            some = partial(of_retirement, retirement=retirement, limit=OLDEST)
            while found := await self._database.ask(some):
                if not await self._erase_due(found, sweep, ends):
                    return False
            rows = await self._database.ask(partial(added_of_retirement, retirement=retirement))
            await self._erase_added(rows, sweep)
            await self._database.transact(partial(expire, retirement=retirement))
        return True

    async def _erase_old_facts(self, sweep: Sweep, ends: float) -> bool:
        """Erase added facts that are older than messages are kept; True: all of them."""
        if not is_in_force(self._policy()):
            return True
        now = self._clock()
        due = partial(added_until, cutoff_of=lambda tenant: cutoffs(self._policy(), tenant, now).turns, limit=MESSAGES)
        while rows := await self._database.ask(due):
            if perf_counter() > ends:
                return False
            await self._erase_added(rows, sweep)
            await asyncio.sleep(REST_SECONDS)
        return True

    async def _erase_added(self, facts: list[Row], sweep: Sweep) -> None:
        """Erase added facts, given as rows of tenant, its name, and fact; tenants without anything left go, too."""
        for tenant, name in {row[:2] for row in facts}:
            rows = [row for of, _, row in facts if of == tenant]
            key = tenant_key(self._secret, name)
            erase = partial(erase_added, key=key, tenant=tenant, rows=rows, at=self._clock(), erased=_RowCounts())
            await self._database.transact(erase)
            await self._database.transact(partial(erase_tenant_if_empty, tenant=tenant))
            sweep.swept["facts"] += len(rows)

    async def _erase_old_messages(self, sweep: Sweep, ends: float) -> bool:
        """Erase what is older than the policy keeps it, from the conversation after the last; True: it was the last."""
        if not is_in_force(self._policy()):
            return True
        while perf_counter() < ends:
            now = self._clock()
            due, last = await self._next(self._last, now)
            if not await self._erase_due(due, sweep, ends):
                return False
            self._last = last
            if not last:
                return True
        return False

    async def _next(self, last: int, now: float) -> tuple[list[DueParts], int]:
        """What is due of the next conversations, and the id of the last of these; 0: there are no more."""
        stored = await self._database.ask(partial(conversations_after, last=last, limit=CONVERSATIONS))
        of = partial(cutoffs, self._policy(), now=now)
        due = await self._database.ask(due_conversations(of, stored)) if stored else []
        return due, stored[-1].id if len(stored) == CONVERSATIONS else 0

    async def _publish(self, sweep: Sweep) -> None:
        """Set the metrics of what is due; all conversations are only looked at from time to time."""
        self._due.subtract(sweep.swept)
        if (sweep.is_complete and sweep.swept) or self._clock() - self._looked_at > LOOK_SECONDS:
            overview = await self.overview()
            self._due, self._ages = overview.due, overview.oldest_seconds
            self._looked_at = self._clock()
        for kind in KINDS:
            rows = max(self._due[kind], 0)
            self._counts.gauge("retention_rows_remaining", rows, kind)
            self._counts.gauge("retention_oldest_age_seconds", self._ages.get(kind, 0.0) if rows else 0.0, kind)

    async def _erase_oldest_if_too_large(self, sweep: Sweep, ends: float) -> bool:
        """Erase the oldest messages of all while the file is too large; True: small enough, or nothing is left."""
        if not (most := size_bytes(self._policy().max_store_bytes)):
            return True
        if (await self._database.ask(store_size)).used_bytes <= most:
            return True
        while (await self._database.ask(store_size)).used_bytes > most * (1 - SPARE_SHARE):
            if self._is_unmerged and not await self._merge_index(sweep, ends, is_urgent=True):
                return False
            found = await self._database.ask(partial(oldest_of_all, after=self._oldest, limit=OLDEST))
            if not found:
                self._oldest = 0
                return True
            if not await self._erase_due(found, sweep, ends):
                return False
            self._oldest = max(max(one.occurrences) for one in found)
        return True

    async def _erase_due(self, found: list[DueParts], sweep: Sweep, ends: float) -> bool:
        """Erase these messages and explanations, and the conversations that are over; False: time was over first."""
        for tenant in dict.fromkeys(one.tenant for one in found):
            occurrences = [number for one in found if one.tenant == tenant for number in one.occurrences]
            if occurrences:
                blocks = await self._database.ask(partial(quoting, tenant=tenant, occurrences=occurrences))
                erase = partial(erase_blocks, blocks=blocks, erased=_RowCounts())
                await self._database.transact(erase)
        for due in found:
            for kind, occurrences in due.messages.items():
                for start in range(0, len(occurrences), MESSAGES):
                    if perf_counter() > ends:
                        return False
                    some = occurrences[start : start + MESSAGES]
                    await self._database.transact(partial(self._erase, due, some))
                    sweep.swept[kind] += len(some)
                    self._is_unmerged = True
                    await asyncio.sleep(REST_SECONDS)
            for start in range(0, len(due.explained), DECISIONS):
                if perf_counter() > ends:
                    return False
                turns = due.explained[start : start + DECISIONS]
                await self._database.transact(partial(sweep_explained, turns=turns))
                sweep.swept["explain"] += len(turns)
            await self._erase_if_over(due)
        return True

    def _erase(self, due: DueParts, occurrences: list[int], transaction: Transaction) -> None:
        """Erase these messages of a conversation, and leave tombstones for them."""
        fingerprint = scope_print(tenant_key(self._secret, due.tenant_name), "conversation", due.public)
        mark_messages(transaction, due.conversation, fingerprint, self._clock(), occurrences)
        flags = HeadFlag.ERASED | HeadFlag.SWEPT
        erase_messages(transaction, due.tenant, occurrences, _RowCounts(), flags)

    async def _erase_if_over(self, due: DueParts) -> None:
        """Remove a conversation of which nothing is left, and that is over."""
        now = self._clock()
        aged = cutoffs(self._policy(), due.tenant_name, now)
        if size_bytes(self._policy().max_store_bytes):
            idle = now - IDLE_SECONDS
            aged = Cutoffs(max(aged.turns, idle), aged.tool_results, max(aged.side_requests, idle), aged.explain)
        ended = partial(last_turn_at, conversation=due.conversation, cutoffs=aged)
        if at := await self._database.ask(ended):
            end = partial(erase_conversation, conversation=due.conversation, at=at, erased=_RowCounts())
            await self._database.transact(end)
            await self._database.transact(partial(erase_tenant_if_empty, tenant=due.tenant))

    async def _merge_index(self, sweep: Sweep, ends: float, is_urgent: bool = False) -> bool:
        """Merge the full-text index once a day, or if urgent, so that deleted words go; True: merged, or not due."""
        if not self._is_unmerged or not (is_urgent or self._clock() - self._merged_at > MERGE_SECONDS):
            return True
        while perf_counter() < ends:
            pages = MERGE_PAGES if self._has_begun_merging else -MERGE_PAGES
            changed = await self._database.transact(partial(merge_some, pages=pages))
            if self._has_begun_merging and changed < MERGED:
                self._is_unmerged = self._has_begun_merging = False
                self._merged_at = self._clock()
                return True
            self._has_begun_merging = True
        return False

    async def _shrink_file(self, sweep: Sweep, ends: float) -> bool:
        """Give free pages back to the disk; True: few are left."""
        while perf_counter() < ends:
            size = await self._database.ask(store_size)
            if size.free_pages <= FREE_PAGES:
                return True
            await self._database.transact(partial(give_back, pages=VACUUM_PAGES))
        return False
