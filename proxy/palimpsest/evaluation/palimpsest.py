"""
Palimpsest as a system to be measured: a real store on disk, written and queried by the code that the proxy runs.

A conversation is journalled as a client would bring it, a session at a time, redacted, cut into passages and indexed;
a question goes through recall, gate and packing. Only the HTTP around it is left out.
"""

from __future__ import annotations

import asyncio
import functools
import os
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from palimpsest.core.archive.chunking import WINDOW_CHARS, split_into_passages
from palimpsest.core.archive.records import record_of
from palimpsest.core.block.account_lines import beside_account, with_account
from palimpsest.core.block.packing import pack
from palimpsest.core.block.pressure import PASSAGE_CHARS
from palimpsest.core.caller.identity import tenant_key
from palimpsest.core.history.link_keys import flags_of
from palimpsest.core.recall.ranking import RECIPE, Recipe
from palimpsest.core.redaction.redaction import redact
from palimpsest.domain import (
    Block,
    BlockKind,
    Budget,
    Candidate,
    Entry,
    Event,
    NewMessage,
    Query,
    Reach,
    Recalled,
    Record,
    Role,
    Shape,
    Turn,
)
from palimpsest.domain.ports import Embedder
from palimpsest.evaluation.datasets import Conversation, DatasetMessage
from palimpsest.evaluation.systems import Pack
from palimpsest.features.assist.assistants import ModelAssistants
from palimpsest.features.assist.query_controller import QueryController
from palimpsest.features.assist.selector import Selector
from palimpsest.features.items.consolidation import Consolidator
from palimpsest.features.items.writing import ItemKeeper, writer_of
from palimpsest.memory.archive import Archive
from palimpsest.memory.request.decider import RECALL_LIMIT
from palimpsest.settings.policy import Policy, RecallPolicy
from palimpsest.store.engine import Ask, Row
from palimpsest.store.operation.assist_usage import AssistUsage, newest_use
from palimpsest.store.search.passages import passages_of, texts_of
from palimpsest.store.search.scope import scope_of
from palimpsest.store.turns.messages import messages_of
from palimpsest.telemetry.metrics import Metrics
from palimpsest.wire.fingerprint import fingerprint_of
from palimpsest.wire.message import read_message

OURS = "palimpsest"
KINDS = RecallPolicy().kinds
OPTIONS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    **{
        f"{OURS}-{recall}": {"consolidation": {"writer": "epc", "recall": recall}}
        for recall in ("items", "graph", "both", "tier")
    },
    f"{OURS}-rrf": {"recall": {"fusion": "rrf"}},
    f"{OURS}-cosine": {"recall": {"fusion": "cosine"}},
    f"{OURS}-floor": {"recall": {"floor": 0.4}},
    **{f"{OURS}-not-{kind}": {"recall": {"kinds": [other for other in KINDS if other != kind]}} for kind in KINDS},
    f"{OURS}-reinforced": {"recall": {"reinforcement": True}},
}
"""Systems that take one of the papers' options, and the policy that says so."""

TENANT = "bench"
SECRET = b"the same in every run"  # so that fingerprints are
LEASE_SECONDS = 3600.0  # nobody else is there to take over
INDEX_BATCH = 2048  # passages claimed at a time
DAY_SECONDS = 86_400.0


class Store:
    """One data folder with one tenant, and any number of conversations. Open it with `opened`."""

    def __init__(
        self, embedder: Embedder, policy: Policy, window_chars: int = WINDOW_CHARS, dropped: float = 0.0
    ) -> None:
        self._window_chars = window_chars
        self._dropped = dropped
        self._chance = Random(0)
        self.unindexed: set[int] = set()  # messages that were stored without their passages, by row
        self.policy = policy
        self.embedder = embedder
        self.metrics = Metrics()
        self.archive = Archive(policy, self.metrics, embedder)
        self.database = self.archive.database
        self.tables = self.archive.tables
        self._journal = self.archive.journal
        self.assistants = ModelAssistants(self.database, self.metrics, time.time, os.environ)
        self.controller = QueryController(lambda: policy.recall, self.assistants, time.time)
        self.selector = Selector(lambda: policy, self.assistants, self.metrics)
        self._key = tenant_key(SECRET, TENANT)
        self._occurrences: dict[str, tuple[int, ...]] = {}
        self._fulls: dict[str, tuple[int, ...]] = {}
        self._told = 0  # blocks of `tell`

    async def write(self, conversations: Sequence[Conversation]) -> None:
        """Journal conversations, each whole, in this order; index them, and keep items where the policy says so."""
        await self.journal(conversations)
        indexer = self.archive.indexer(INDEX_BATCH, LEASE_SECONDS)
        while await indexer.index_batch():
            pass
        await ItemKeeper.of(self.archive, lambda: writer_of(self.policy.consolidation)).catch_up(may_be_open=True)
        if self.policy.consolidation.writer != "off":
            await Consolidator.of(self.archive).run()

    async def journal(self, conversations: Sequence[Conversation]) -> None:
        """Journal conversations, each whole, in this order."""
        await self._journal.write([record for each in conversations for record in self._records(each)])
        await self.know(conversations)

    async def know(self, conversations: Sequence[Conversation]) -> None:
        """Take up conversations that were written, now or in an earlier run."""
        for conversation in conversations:
            rows = await self.database.ask(functools.partial(messages_of, tenant=TENANT, conversation=conversation.id))
            self._occurrences[conversation.id] = tuple(id for id, _ in rows)
            self._fulls[conversation.id] = tuple(full for _, full in rows)
            passages = await self.database.ask(functools.partial(_passages, conversation=conversation.id))
            self.unindexed |= {id for id, _ in rows} - {occurrence for _, occurrence, *_ in passages}

    async def tell(self, conversation: Conversation, block: Block) -> None:
        """Journal that a request was told a block, which is a round of reinforcement."""
        self._told += 1
        said = replace(conversation.messages[-1], raw={"role": "user", "content": "."})
        turn = _turn(conversation, f"told-{self._told}", (self._new(said, 0),), said.at)
        await self._journal.write([record_of(replace(turn, block=block, anchor=0), self._key, str)])

    def occurrences(self, conversation: Conversation) -> tuple[int, ...]:
        """The row of each message."""
        return self._occurrences[conversation.id]

    def fulls(self, conversation: Conversation) -> tuple[int, ...]:
        """The fingerprint of each message."""
        return self._fulls[conversation.id]

    def reader(
        self,
        conversation: Conversation,
        reach: Reach = Reach.CONVERSATION,
        recipe: Recipe = RECIPE,
        embedder: Embedder | None = None,
    ) -> StoreReader:
        """
        A reader of one of the conversations.

        Args:
            reach: how far to look.
            recipe: what to rank by.
            embedder: of questions, where it differs from the store's.
        """
        return StoreReader(self, conversation, reach, recipe, embedder or self.embedder)

    def _records(self, conversation: Conversation) -> Iterator[Record]:
        """One request for each stretch of messages of one date: a row carries the date of its request."""
        for at, stretch in groupby(conversation.messages, key=lambda said: said.at):
            said = tuple(stretch)
            new = tuple(self._new(message, position) for position, message in enumerate(said))
            turn = _turn(conversation, said[0].id, new, at)
            record = record_of(turn, self._key, redact if self.policy.archive.redact else str)
            yield replace(record, entries=tuple(map(self._cut, record.entries)))

    def _cut(self, entry: Entry) -> Entry:
        """An entry cut into other passages, or none, where these are to be measured."""
        if self._chance.random() < self._dropped:
            return replace(entry, passages=())
        if self._window_chars == WINDOW_CHARS or not entry.passages:
            return entry
        passages = split_into_passages(entry.text, entry.new.message.role, window_chars=self._window_chars)
        return replace(entry, passages=passages)

    def _new(self, said: DatasetMessage, position: int) -> NewMessage:
        message = read_message(said.raw)
        return NewMessage(message, fingerprint_of(message, self._key), position, flags_of(message))


def _passages(ask: Ask, conversation: str) -> list[Row]:
    """The passages of a conversation, by its public id; see `passages_of`."""
    found = scope_of(ask, Query(TENANT, conversation, ""))
    return passages_of(ask, found[0].tenant, found[1]) if found else []


def _turn(conversation: Conversation, name: str, new: tuple[NewMessage, ...], at: float) -> Turn:
    """A request that brings messages and stands for itself. `name` tells it from others of its conversation."""
    return Turn(
        id=f"{conversation.id}/{name}",
        tenant=TENANT,
        conversation=conversation.id,
        role=Role.MAIN,
        event=Event.START,
        kept=(),
        new=new,
        parent_turn=None,
        parent_conversation="",
        shape=Shape(),
        links=(),
        model="",
        user=TENANT,
        scope="",
        created_at=at,
    )


class StoreReader:
    """One conversation of a store. Implements `systems.Reader`."""

    def __init__(
        self,
        store: Store,
        conversation: Conversation,
        reach: Reach,
        recipe: Recipe,
        embedder: Embedder,
    ) -> None:
        self._store = store
        self._conversation = conversation
        self._reach = reach
        self._occurrences = store.occurrences(conversation)
        self._fulls = store.fulls(conversation)
        self._index = {occurrence: at for at, occurrence in enumerate(self._occurrences)}
        asked_at = conversation.messages[-1].at + DAY_SECONDS
        self._recall = store.archive.recall(recipe, embedder, lambda: asked_at)

    async def recall(self, query: str, limit: int = RECALL_LIMIT) -> Recalled:
        """What the indexes answer, however little it may help; all of the conversation was lost."""
        return await self._recall.recall(self._within(Query("", "", query), None), limit)

    async def pack(self, query: str, budget_chars: int, dropped: int | None = None) -> Pack:
        """See `systems.Reader`."""
        return await self.restore(Query("", "", query), budget_chars, dropped)

    async def restore(self, query: Query, budget_chars: int, dropped: int | None = None) -> Pack:
        """As `pack`, for a query of `core/recall/diagnosis.py`; its texts and names count, its scope is this one."""
        started = perf_counter()
        deadline = asyncio.get_running_loop().time() + self._store.policy.memory.deadline_ms / 1000
        query = replace(query, account_chars=min(query.account_chars, budget_chars // 2))
        sought = await self._store.controller.planned(self._within(query, dropped), deadline)
        recalled = await self._recall.recall(sought, RECALL_LIMIT)
        recalled = await self._store.selector.selected(sought, recalled, deadline)
        budget = beside_account(Budget(budget_chars, PASSAGE_CHARS), recalled.account, sought)
        block = pack(recalled.candidates, budget, BlockKind.RESTORE, query.text)[0]
        if recalled.account is not None:
            block = with_account(block, recalled.account)
        elapsed_ms = (perf_counter() - started) * 1000
        if block is not None and self._store.policy.recall.reinforcement:
            await self._store.tell(self._conversation, block)
        ranked = self.ranked(recalled.candidates)
        held = set(block.occurrences) if block else set()
        return Pack(
            text=block.text if block else "",
            messages=tuple(at for at in ranked if self._occurrences[at] in held),
            ranked=ranked,
            elapsed_ms=elapsed_ms,
            admitted=recalled.admitted,
        )

    def _within(self, query: Query, dropped: int | None) -> Query:
        count = len(self._occurrences) if dropped is None else dropped
        return replace(
            query,
            tenant=TENANT,
            conversation=self._conversation.id,
            reach=self._reach,
            user=TENANT,
            lost=frozenset(self._occurrences[:count]),
            visible_fulls=frozenset(self._fulls[count:]),
            excluded=frozenset(),
        )

    async def stored(self) -> Sequence[str]:
        """The passages of the conversation, which overlap where a message has several."""

        def texts(ask: Ask) -> list[str]:
            passages = [id for id, *_ in _passages(ask, self._conversation.id)]
            return [text for _, _, _, _, text, *_ in sorted(texts_of(ask, TENANT, passages))]

        return await self._store.database.ask(texts)

    def block(self, recalled: Recalled, query: str, budget_chars: int) -> Block | None:
        """The block that the proxy would add after a compaction."""
        budget = Budget(budget_chars, PASSAGE_CHARS)
        return pack(recalled.candidates, budget, BlockKind.RESTORE, query)[0]

    def ranked(self, candidates: Sequence[Candidate]) -> tuple[int, ...]:
        """Indexes of this conversation's messages among the candidates, best first, each once."""
        found = (self._index.get(candidate.memory.occurrence, -1) for candidate in candidates)
        return tuple(dict.fromkeys(at for at in found if at >= 0))


class Palimpsest:
    """Implements `systems.System`: a store for each conversation."""

    name = OURS

    def __init__(
        self, embedder: Embedder, policy: Policy | None = None, *, asked: bool = True, name: str = OURS
    ) -> None:
        """
        Args:
            asked: False: nobody will ask anything, only restore what was lost by what it names; that takes no vectors.
            name: in tables, where another policy is beside the usual one.
        """
        self.name = name
        self._embedder = embedder
        self._policy = policy or Policy()
        self._asked = asked
        self.used = AssistUsage()  # by language models, for all conversations that were closed

    @asynccontextmanager
    async def opened(self, conversation: Conversation) -> AsyncIterator[StoreReader]:
        async with opened(self._embedder, self._policy) as store:
            await (store.write if self._asked else store.journal)([conversation])
            yield store.reader(conversation)
            if self._policy.models:
                _, by_role = await store.database.ask(newest_use)
                self.used = sum(by_role.values(), self.used)


def with_option(embedder: Embedder, policy: Policy | None, name: str) -> Palimpsest:
    """Palimpsest with one of `OPTIONS`."""
    base = (policy or Policy()).model_dump()
    parts = {part: base[part] | changed for part, changed in OPTIONS[name].items()}
    return Palimpsest(embedder, Policy.model_validate(base | parts), name=name)


@asynccontextmanager
async def opened(
    embedder: Embedder,
    policy: Policy | None = None,
    folder: Path | None = None,
    window_chars: int = WINDOW_CHARS,
    dropped: float = 0.0,
) -> AsyncIterator[Store]:
    """
    A store.

    Args:
        folder: where it is; None: an empty one in a folder of its own, which is gone afterwards.
        window_chars: what it writes is cut into passages of so many.
        dropped: share of the messages that are written without passages, by chance.
    """
    policy = policy or Policy()
    with ExitStack() as temporary:
        folder = folder or Path(temporary.enter_context(TemporaryDirectory(prefix="palimpsest-bench-")))
        store = Store(embedder, policy.model_copy(update={"data": folder}), window_chars, dropped)
        try:
            await store.database.open()
            await store.assistants.apply(policy)
            store.selector.prepare()
            yield store
        finally:
            await store.selector.close()
            await store.assistants.close()
            await store.archive.close()
