"""
The extraction of facts in the background: messages of the archive, batch by batch, by whichever process is free.

Facts follow from messages: those of another version of the extractor are made again from the archive, and so are all
where somebody asks for it. A message that the extractor fails at is set aside and holds up nothing.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from time import perf_counter

import structlog

from palimpsest.core.caller.identity import tenant_key
from palimpsest.core.facts.extraction import VERSION, proposals
from palimpsest.core.facts.form import OWN
from palimpsest.core.facts.sentences import is_played
from palimpsest.domain import BLOCK_OPEN, TOOL_ROLES, FactProposal
from palimpsest.domain.errors import MemoryFault
from palimpsest.domain.ports import Clock, Counts
from palimpsest.memory.archive import Archive
from palimpsest.store.engine import Engine
from palimpsest.store.knowledge import fact_extraction as store
from palimpsest.store.knowledge.fact_extraction import Claim, Source
from palimpsest.store.knowledge.facts import count_by_category
from palimpsest.wire.frame import own_words

LEASE_SECONDS = 10.0  # a batch takes milliseconds; a worker that died holds it up for so long
LOOK_SECONDS = 5.0  # between looks for messages that another process left
GATHER_SECONDS = 0.25  # from the first new message on: several then share one transaction
REST_SECONDS = 0.01  # between two batches: requests go first
COUNT_SECONDS = 30.0  # between two counts for the metrics

Extract = Callable[[str, str], Sequence[FactProposal]]
"""What a message with this text and role states; see `core.facts.extraction.proposals`."""

log = structlog.get_logger()


class FactExtraction:
    """One worker of the extraction; any number of processes may work on one database."""

    def __init__(
        self,
        database: Engine,
        secret: bytes,
        counts: Counts,
        clock: Clock,
        extract: Extract = proposals,
        version: int = VERSION,
    ) -> None:
        self._database = database
        self._key_of = partial(tenant_key, secret)
        self._counts = counts
        self._clock = clock
        self._extract = extract
        self._version = version
        self._fresh = asyncio.Event()
        self._has_begun = False
        self._counted_at = 0.0
        self.has_set_aside = False  # since the start

    @classmethod
    def of(cls, archive: Archive) -> FactExtraction:
        return cls(archive.database, archive.secret(), archive.counts, archive.clock)

    def wake(self) -> None:
        """Look for messages now."""
        self._fresh.set()

    async def run(self, may_extract: Callable[[], bool]) -> None:
        """Extract whatever comes, while `may_extract` (asked before each look and batch) allows it; forever."""
        while True:
            self._fresh.clear()
            try:
                if may_extract():
                    await self._database.open()
                    while may_extract() and await self.extract_batch():  # noqa: ASYNC110 - nothing is waited for
                        await asyncio.sleep(REST_SECONDS)
                    await self._measure()
            except MemoryFault as fault:
                self._counts.fault("facts")
                log.warning("facts could not be extracted; trying again", reason=str(fault))
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS * random.uniform(0.9, 1.1)):
                    await self._fresh.wait()
            await asyncio.sleep(GATHER_SECONDS)

    async def extract_batch(self) -> bool:
        """Extract the facts of the next messages. False: none wait that another worker has not claimed."""
        await self._begin()
        if not await self._database.ask(store.oldest_waiting_at):
            return False
        now_ms = int(self._clock() * 1000)
        until_ms = now_ms + int(LEASE_SECONDS * 1000) + random.randrange(1000)
        claim = partial(store.claim, now_ms=now_ms, until_ms=until_ms)
        claimed: Claim | None = await self._database.transact(claim)
        if claimed is None:
            return False
        started = perf_counter()
        read = await self._database.ask(partial(store.sources, claimed=claimed))
        found, broken = await asyncio.to_thread(self._extracted, read)
        found |= await self._without_parts(read, found)
        for reason in broken.values():
            self.has_set_aside = True
            self._counts.fault("quarantine")
            log.error("the facts of a message cannot be extracted; it is set aside", reason=reason)
        save = partial(
            store.save,
            claimed=claimed,
            read=read,
            found=found,
            broken=broken,
            version=self._version,
            key_of=self._key_of,
            now=self._clock(),
        )
        await self._database.transact(save, lambda _ask: {source.tenant_name for source in read})
        self._counts.observe("facts", perf_counter() - started)
        return True

    async def _without_parts(
        self, read: Sequence[Source], found: Mapping[int, Sequence[FactProposal]]
    ) -> dict[int, Sequence[FactProposal]]:
        """Proposals without those about a speaker who plays a part in a role play."""
        kept: dict[int, Sequence[FactProposal]] = {}
        for source in read:
            if any(one.category in OWN for one in found.get(source.occurrence, ())):
                texts = partial(store.earlier_texts, source=source)
                if is_played(await self._database.ask(texts)):
                    kept[source.occurrence] = [one for one in found[source.occurrence] if one.category not in OWN]
        return kept

    async def _begin(self) -> None:
        """Start over once in a process if the extractor is another version than the last one."""
        if not self._has_begun:
            if await self._database.transact(partial(store.begin, version=self._version)):
                log.info("facts are made again by another version of the extractor", version=self._version)
            self._has_begun = True

    async def _measure(self) -> None:
        now = self._clock()
        since = await self._database.ask(store.oldest_waiting_at)
        self._counts.gauge("facts_lag_seconds", max(now - since, 0.0) if since else 0.0)
        if not 0 <= now - self._counted_at < COUNT_SECONDS:
            self._counted_at = now
            for category, statements in (await self._database.ask(count_by_category)).items():
                self._counts.gauge("facts", statements, category)

    def _extracted(self, sources: Iterable[Source]) -> tuple[dict[int, Sequence[FactProposal]], dict[int, str]]:
        """Proposals by occurrence, and of those at which the extractor failed, why."""
        found: dict[int, Sequence[FactProposal]] = {}
        broken = {}
        for source in sources:
            try:
                if source.may_state:
                    found[source.occurrence] = list(_stated_facts(source, self._extract(source.text, source.role)))
            except Exception as failure:  # a guard: one message must not hold up all that come behind it
                broken[source.occurrence] = f"extracting facts: {type(failure).__name__}"
        return found, broken


def _stated_facts(source: Source, proposed: Sequence[FactProposal]) -> Iterator[FactProposal]:
    """The facts that a message states itself, without those that a memory block quoted."""
    if not proposed or BLOCK_OPEN not in source.text:
        yield from proposed
    elif source.role not in TOOL_ROLES:
        own = own_words(source.text)
        yield from (one for one in proposed if any(start <= one.start and one.stop <= stop for start, stop in own))
