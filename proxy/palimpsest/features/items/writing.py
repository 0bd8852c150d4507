"""
Writing items: when a stretch of a conversation is complete, a writer keeps what is worth remembering of it.

A stretch is complete when enough was said, or when nothing was said for a while. Conversations are claimed by lease, so
that several processes share the work, and one that dies holds a conversation up for no longer than that. How far each
was read is stored with what was made of it, in one transaction.
"""

from __future__ import annotations

import asyncio
import functools
import secrets
from collections.abc import Callable, Collection, Sequence
from math import sqrt
from typing import Protocol

import structlog

from palimpsest.core.archive.chunking import terms
from palimpsest.core.writing.information import TermStatistics
from palimpsest.core.writing.writers import WRITERS
from palimpsest.domain.errors import MemoryFault
from palimpsest.domain.items import Item, SourceMessage
from palimpsest.domain.ports import Assistant, Assistants, Clock, Counts
from palimpsest.features.items.model_writers import ModelWriters
from palimpsest.memory.archive import Archive
from palimpsest.settings.policy import ConsolidationPolicy
from palimpsest.store.engine import Ask, Engine
from palimpsest.store.knowledge.items import (
    Waiting,
    claim,
    count_uses,
    passages_in,
    unread,
    waiting_conversations,
    write_items,
)
from palimpsest.store.search.terms import passages_holding

CHARS_PER_TOKEN = 4  # of English prose; budgets here are rough
SEGMENT_CHARS = 1024 * CHARS_PER_TOKEN  # LightMem buffers 256 to 1,024 tokens before it writes
IDLE_SECONDS = 600.0  # without a message: the conversation pauses, and what was said so far can be kept
LOOK_SECONDS = 15.0  # between looks for what is complete
LEASE_SECONDS = 120.0  # a model may take its time over a segment
REST_SECONDS = 0.05  # between segments: requests go first
VERSION = 1  # of these writers; kept with what they wrote
BUDGET_FACTOR = 8.0  # WhenLoss: a budget grows with the root of the length; 256 tokens of 1,024

log = structlog.get_logger()


class ItemWriter(Protocol):
    """Makes items of a stretch of conversation."""

    @property
    def name(self) -> str:
        """Kept with each item; its version is part of it."""

    async def write(self, segment: Sequence[SourceMessage], statistics: TermStatistics, tenant: str) -> Sequence[Item]:
        """
        What to keep, each with its sources among the messages.

        Args:
            statistics: of the tenant's words.
            tenant: whose messages these are.
        """


class RuleWriter:
    """One of the writers that need no model (`core/writing/writers.py`). Implements `ItemWriter`."""

    def __init__(self, name: str) -> None:
        self._write = WRITERS[name]
        self.name = f"{name}/{VERSION}"

    def __repr__(self) -> str:
        return f"<RuleWriter {self.name}>"

    async def write(self, segment: Sequence[SourceMessage], statistics: TermStatistics, tenant: str) -> Sequence[Item]:
        return await asyncio.to_thread(self._write, segment, _budget_tokens(segment), _tokens, statistics)


class ModelWriter:
    """The same with a model; where that fails, rules write. Implements `ItemWriter`."""

    def __init__(self, name: str, assistant: Assistant) -> None:
        self._paper = name
        self._writers = ModelWriters(assistant, _tokens)
        self.name = f"{name}+model/{VERSION}"

    def __repr__(self) -> str:
        return f"<ModelWriter {self.name}>"

    async def write(self, segment: Sequence[SourceMessage], statistics: TermStatistics, tenant: str) -> Sequence[Item]:
        return (await self._writers.write(self._paper, segment, _budget_tokens(segment), statistics, tenant)).items


class ItemKeeper:
    """Keeps items of the conversations of one database. Run `run` in the background."""

    def __init__(
        self,
        database: Engine,
        counts: Counts,
        clock: Clock,
        writer: Callable[[], ItemWriter | None],
        take_used: Callable[[], Collection[int]] = tuple,
    ) -> None:
        """
        Args:
            writer: who writes, as the policy in force has it; None: nobody does, and nothing is looked at.
            take_used: items that led to what was recalled since it was called last.
        """
        self._database = database
        self._counts = counts
        self._clock = clock
        self._writer = writer
        self._take_used = take_used
        self._worker = secrets.token_hex(8)

    @classmethod
    def of(cls, archive: Archive, writer: Callable[[], ItemWriter | None]) -> ItemKeeper:
        """Over an archive; see there for `writer`."""

        def take_used() -> Collection[int]:
            keys = archive.keys()
            return () if keys is None else keys.take_used()

        return cls(archive.database, archive.counts, archive.clock, writer, take_used)

    def __repr__(self) -> str:
        return f"<ItemKeeper {self._database!r}>"

    async def run(self) -> None:
        """Write whatever is complete; forever."""
        while True:
            try:
                await self.catch_up()
                await self.count_uses()
            except MemoryFault as fault:
                self._counts.fault("items")
                log.warning("items could not be written now; trying again", reason=str(fault))
            await asyncio.sleep(LOOK_SECONDS)

    async def catch_up(self, may_be_open: bool = False) -> int:
        """
        Write all that is complete now; returns how many items.

        Args:
            may_be_open: what is not complete yet, too.

        Raises:
            MemoryFault: the store could not do its work.
        """
        written = 0
        while (writer := self._writer()) is not None:
            now = self._clock()
            waiting = await self._database.ask(functools.partial(waiting_conversations, now=now))
            complete = [one for one in waiting if may_be_open or self._is_complete(one, now)]
            for one in complete:
                written += await self._write(writer, one)
                await asyncio.sleep(REST_SECONDS)
            if not complete:
                break
        return written

    async def count_uses(self) -> None:
        """Write down which items led to what was recalled."""
        if used := self._take_used():
            await self._database.transact(functools.partial(count_uses, items=used, now=self._clock()))

    def _is_complete(self, waiting: Waiting, now: float) -> bool:
        return waiting.chars >= SEGMENT_CHARS or now - waiting.newest_at >= IDLE_SECONDS

    async def _write(self, writer: ItemWriter, waiting: Waiting) -> int:
        """Write the next segment of a conversation, unless another process reads it."""
        conversation, now = waiting.conversation, self._clock()
        mine = functools.partial(
            claim, conversation=conversation, worker=self._worker, now=now, until=now + LEASE_SECONDS
        )
        if not await self._database.transact(mine):
            return 0
        segment = _first_segment(await self._database.ask(functools.partial(unread, conversation=conversation)))
        if not segment:
            return 0
        statistics = await self._database.ask(functools.partial(_statistics, tenant=waiting.tenant, segment=segment))
        items = await writer.write(segment, statistics, waiting.tenant_name)
        keep = functools.partial(
            write_items,
            conversation=conversation,
            worker=self._worker,
            through=segment[-1].occurrence,
            items=items,
            writer=writer.name,
            now=self._clock(),
        )
        kept = await self._database.transact(keep)
        self._counts.add("items_written", len(kept))
        return len(kept)


def _first_segment(messages: Sequence[SourceMessage]) -> list[SourceMessage]:
    """The first messages, until they are long enough."""
    segment: list[SourceMessage] = []
    chars = 0
    for said in messages:
        if chars >= SEGMENT_CHARS:
            break
        segment.append(said)
        chars += len(said.text)
    return segment


def _statistics(ask: Ask, tenant: int, segment: Sequence[SourceMessage]) -> TermStatistics:
    """In how many of the tenant's passages the words of a segment stand; the segment is among them."""
    found = dict.fromkeys(term for said in segment for term in terms(said.text))
    return TermStatistics(passages_in(ask, tenant), passages_holding(ask, tenant, [*found]))


def _tokens(text: str) -> int:
    return -(-len(text) // CHARS_PER_TOKEN)


def _budget_tokens(segment: Sequence[SourceMessage]) -> int:
    return round(BUDGET_FACTOR * sqrt(sum(len(said.text) for said in segment) / CHARS_PER_TOKEN))


def writer_of(policy: ConsolidationPolicy, assistants: Assistants | None = None) -> ItemWriter | None:
    """Who writes by this policy, by the model in the role of the writer where there is one; None: nobody."""
    if policy.writer == "off":
        return None
    model = assistants.of("writer") if assistants else None
    return ModelWriter(policy.writer, model) if model else RuleWriter(policy.writer)
