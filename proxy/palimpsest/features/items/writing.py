"""
Writing items: when a stretch of a conversation is complete, a writer keeps what is worth remembering of it.

A stretch is complete when enough was said, or when nothing was said for a while. Conversations are claimed by lease, so
that several processes share the work, and one that dies holds a conversation up for no longer than that. How far each
was read is stored with what was made of it, in one transaction.
"""

from __future__ import annotations

import asyncio
import secrets
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import sqrt
from typing import Protocol

import numpy as np
import structlog

from palimpsest.core.archive.chunking import terms
from palimpsest.core.recall.ranking import Floats
from palimpsest.core.writing import lightmem3
from palimpsest.core.writing.information import TermStatistics
from palimpsest.core.writing.lightmem3 import Buffers, Compress
from palimpsest.core.writing.writers import WRITERS
from palimpsest.domain.errors import MemoryFault
from palimpsest.domain.frozen import frozen
from palimpsest.domain.memories import Item, SourceMessage
from palimpsest.domain.ports import Assistant, Assistants, Clock, Counts
from palimpsest.features.items.model_writers import ModelWriters
from palimpsest.memory.archive import Archive
from palimpsest.settings.policy import ConsolidationPolicy
from palimpsest.store.engine import Ask, Engine, nobody
from palimpsest.store.engine.full_text import counted
from palimpsest.store.knowledge import items as store

CHARS_PER_TOKEN = 4  # of English prose; budgets here are rough
SEGMENT_CHARS = 1024 * CHARS_PER_TOKEN  # LightMem buffers 256 to 1,024 tokens before it writes
RETRY_CHARS = 1024 * CHARS_PER_TOKEN  # more, before a buffer that was not full is looked at again
IDLE_SECONDS = 600.0  # without a message: the conversation pauses, and what was said so far can be kept
OVER_SECONDS = 86_400.0  # likewise with a short-term buffer, which lasts: each pause would cost a call for a few turns
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
        """The name and version that are kept with each item."""

    @property
    def short_term(self) -> ShortTerm | None:
        """The buffer that says when a stretch is complete; None: its length does."""

    async def write(
        self, segment: Sequence[SourceMessage], statistics: TermStatistics, tenant: str, vectors: Floats | None = None
    ) -> Sequence[Item]:
        """The items to keep of a segment, each with its sources; vectors of its turns: see `lightmem3.batches`."""


@frozen
class ShortTerm:
    """
    The short-term buffer of LightMem-3. What a conversation has unread is in it, so the journal keeps it.

    `compress` None: by the self-information of words.
    """

    buffers: Buffers
    compress: Compress | None = None

    @property
    def least_chars(self) -> int:
        """Characters below which no messages fill the buffer."""
        return self.buffers.short_term_tokens * CHARS_PER_TOKEN

    @property
    def of_segment(self) -> Buffers:
        """The buffers for a segment that filled them, or is all there is: it is summarised as one."""
        return replace(self.buffers, short_term_tokens=sys.maxsize)

    def filled(self, unread: Sequence[SourceMessage], statistics: TermStatistics, vectors: Floats | None) -> int:
        """See `lightmem3.filled`."""
        return lightmem3.filled(unread, _tokens, statistics, self.buffers, self.compress, vectors)


class RuleWriter:
    """One of the writers that need no model (`core/writing/writers.py`). Implements `ItemWriter`."""

    def __init__(self, name: str, short_term: ShortTerm | None = None) -> None:
        self._write = WRITERS[name]
        self.name = f"{name}/{VERSION}"
        self.short_term = short_term

    async def write(
        self, segment: Sequence[SourceMessage], statistics: TermStatistics, tenant: str, vectors: Floats | None = None
    ) -> Sequence[Item]:
        """Write items of a segment by rules, on a thread."""
        write = self._write
        if self.short_term is not None:
            held = self.short_term
            write = partial(lightmem3.write, buffers=held.of_segment, compress=held.compress, vectors=vectors)
        return await asyncio.to_thread(write, segment, _budget_tokens(segment), _tokens, statistics)


class ModelWriter:
    """The same with a model; where that fails, rules write. Implements `ItemWriter`."""

    def __init__(self, name: str, assistant: Assistant, short_term: ShortTerm | None = None) -> None:
        self._paper = name
        buffers = (short_term.compress, short_term.of_segment) if short_term else ()
        self._writers = ModelWriters(assistant, _tokens, *buffers)
        self.name = f"{name}+model/{VERSION}"
        self.short_term = short_term

    async def write(
        self, segment: Sequence[SourceMessage], statistics: TermStatistics, tenant: str, vectors: Floats | None = None
    ) -> Sequence[Item]:
        budget = _budget_tokens(segment)
        return await self._writers.write(self._paper, segment, budget, statistics, tenant, vectors)


@dataclass(eq=False, slots=True)
class ItemKeeper:
    """
    Keeps items of the conversations of one database. Run `run` in the background.

    Attributes:
        writer: who writes, as the policy in force has it; None: nobody does, and nothing is looked at.
        take_used: items that led to what was recalled since it was called last.
        model: by whose vectors topics are told apart; "": by words alone.
    """

    database: Engine
    counts: Counts
    clock: Clock
    writer: Callable[[], ItemWriter | None]
    take_used: Callable[[], Collection[int]] = tuple
    model: str = ""
    _unfilled: dict[int, int] = field(default_factory=dict, init=False)  # characters that filled no buffer yet
    _worker: str = field(default_factory=partial(secrets.token_hex, 8), init=False)

    @classmethod
    def of(cls, archive: Archive, writer: Callable[[], ItemWriter | None]) -> ItemKeeper:

        def take_used() -> Collection[int]:
            keys = archive.keys()
            return () if keys is None else keys.take_used()

        return cls(archive.database, archive.counts, archive.clock, writer, take_used, archive.embedder.name)

    async def run(self) -> None:
        """Write items of whatever is complete; forever."""
        while True:
            try:
                await self.catch_up()
                await self.count_uses()
            except MemoryFault as fault:
                self.counts.fault("items")
                log.warning("items could not be written now; trying again", reason=str(fault))
            await asyncio.sleep(LOOK_SECONDS)

    async def catch_up(self, may_be_open: bool = False) -> int:
        """Write all that is complete now, or also what is not; returns how many items."""
        written = 0
        while (writer := self.writer()) is not None:
            now = self.clock()
            waiting = await self.database.ask(partial(store.waiting_conversations, now=now))
            complete = [one for one in waiting if may_be_open or self._is_complete(one, now, writer.short_term)]
            for one in complete:
                is_over = may_be_open or _is_over(one, now, writer.short_term)
                written += await self._write(writer, one, is_over)
                await asyncio.sleep(REST_SECONDS)
            if not complete:
                break
        return written

    async def count_uses(self) -> None:
        """Store which items led to what was recalled."""
        if used := self.take_used():
            await self.database.transact(partial(store.count_uses, items=used, now=self.clock()), nobody)

    def _is_complete(self, waiting: store.UnreadConversation, now: float, buffer: ShortTerm | None) -> bool:
        tried = self._unfilled.get(waiting.conversation)
        least = SEGMENT_CHARS if buffer is None else buffer.least_chars if tried is None else tried + RETRY_CHARS
        return waiting.chars >= least or _is_over(waiting, now, buffer)

    async def _write(self, writer: ItemWriter, waiting: store.UnreadConversation, is_over: bool) -> int:
        """Write the next segment of a conversation, unless another process reads it."""
        conversation, now = waiting.conversation, self.clock()
        mine = partial(store.claim, conversation=conversation, worker=self._worker, now=now, until=now + LEASE_SECONDS)
        if not await self.database.transact(mine, nobody):
            return 0
        buffer = writer.short_term
        segment = await self.database.ask(partial(store.unread, conversation=conversation))
        segment = segment if buffer else _first_segment(segment)
        if not segment:
            return 0
        statistics = await self.database.ask(partial(_statistics, tenant=waiting.tenant, segment=segment))
        vectors = None
        if buffer is not None:
            vectors = await self.database.ask(partial(_turn_vectors, segment=segment, model=self.model))
            size = await asyncio.to_thread(buffer.filled, segment, statistics, vectors)
            if not size and not is_over and len(segment) < store.SEGMENT_MESSAGES:
                self._unfilled[conversation] = waiting.chars
                await self.database.transact(
                    partial(store.release, conversation=conversation, worker=self._worker), nobody
                )
                return 0
            self._unfilled.pop(conversation, None)
            segment = segment[:size] if size else segment
            vectors = None if vectors is None else vectors[: len(lightmem3.turns(segment))]
        items = await writer.write(segment, statistics, waiting.tenant_name, vectors)
        keep = partial(
            store.write_items,
            conversation=conversation,
            worker=self._worker,
            through=segment[-1].occurrence,
            items=items,
            writer=writer.name,
            now=self.clock(),
        )
        kept = await self.database.transact(keep, lambda _ask: (waiting.tenant_name,))
        self.counts.add("items_written", len(kept))
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


def _is_over(waiting: store.UnreadConversation, now: float, buffer: ShortTerm | None) -> bool:
    """Whether nothing was said for so long that a stretch is complete as it is."""
    return now - waiting.newest_at >= (IDLE_SECONDS if buffer is None else OVER_SECONDS)


def _turn_vectors(ask: Ask, segment: Sequence[SourceMessage], model: str) -> Floats | None:
    """Unit vectors of the turns, (n, d), from those of their passages; None: some have none yet."""
    held = store.vectors_of_messages(ask, [said.occurrence for said in segment], model) if model else {}
    sums = []
    for turn in lightmem3.turns(segment):
        own = [held[segment[at].occurrence] for at in turn if segment[at].occurrence in held]
        if not own:
            return None
        sums.append(np.sum(own, axis=0))
    if not sums:
        return None
    vectors = np.array(sums)
    unit: Floats = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    return unit


def _statistics(ask: Ask, tenant: int, segment: Sequence[SourceMessage]) -> TermStatistics:
    """How many of the tenant's passages hold each word of a segment, the segment included."""
    found = dict.fromkeys(term for said in segment for term in terms(said.text))
    return TermStatistics(store.passages_in(ask, tenant), counted(ask, tenant, [*found]))


def _tokens(text: str) -> int:
    return -(-len(text) // CHARS_PER_TOKEN)


def _budget_tokens(segment: Sequence[SourceMessage]) -> int:
    return round(BUDGET_FACTOR * sqrt(sum(len(said.text) for said in segment) / CHARS_PER_TOKEN))


def writer_of(
    policy: ConsolidationPolicy, assistants: Assistants | None = None, compress: Compress | None = None
) -> ItemWriter | None:
    """
    The writer that the policy names, with the model in that role if there is one; None: none.

    Args:
        compress: before LightMem-3 cuts topics; None: by the self-information of words.
    """
    if policy.writer == "off":
        return None
    model = assistants.of("writer") if assistants else None
    buffer = None
    if policy.writer == "lightmem3":
        buffer = ShortTerm(Buffers(short_term_tokens=policy.buffer_tokens, keep=policy.keep), compress)
    return ModelWriter(policy.writer, model, buffer) if model else RuleWriter(policy.writer, buffer)
