"""
Commands on a data folder: explain, search, numbers, indexing anew, forgetting. A proxy may run on it meanwhile.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from proxy.app import DATABASE_FILE
from proxy.core.recall.generosity import DEMANDS
from proxy.domain import TURN_PREFIX, BlockKind, Json, Query, Reach, Recalled
from proxy.embedding.embedder import MiniLM
from proxy.errors import MemoryFault, PolicyError
from proxy.index.passage_tables import PassageTables
from proxy.memory.forgetting import VACUUM_BYTES, Forgetting, Preview
from proxy.memory.recall import Recall
from proxy.metrics import Metrics
from proxy.settings.policy import Policy, RecallPolicy
from proxy.store.database import Database
from proxy.store.derived import Derived
from proxy.store.journal import Journal
from proxy.store.secret import load_secret
from proxy.store.selection import Target

LEASE_SECONDS = 120.0  # a batch takes seconds; if we are killed, others take it up after this
LOOK_SECONDS = 0.5  # between looks while a running proxy indexes the rest
TENANTS_NAMED = 10  # in a hint; there may be thousands


@dataclass(frozen=True, slots=True)
class Explained:
    """The record of a turn, and the texts of its candidates by occurrence."""

    turn: Mapping[str, Any]
    texts: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class Searched:
    """What recall would have answered, and, where its gate was shut, what stood behind it."""

    recalled: Recalled
    behind: Recalled | None = None


class Archive:
    """One data folder, opened by `opened`."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.database = Database(policy.data / DATABASE_FILE, policy.archive.synchronous)
        self._metrics = Metrics()
        self._embedder = MiniLM(policy.model, self._metrics)
        self._journal = Journal(self.database)
        self._derived = Derived(self.database, time.time)

    async def explain(self, named: str | None, number: int | None) -> Explained:
        """
        One turn.

        Args:
            named: a turn, or a conversation; None: the newest turn of all.
            number: of a conversation's turn, from 1; None: its newest.

        Raises:
            MemoryFault: there is no such turn.
        """
        if named is None or (number is None and named.startswith(TURN_PREFIX)):
            turn = await self._journal.turn_named(None, named)
        else:
            turn = await self._journal.turn(None, named, number)
        if turn is None:
            which = "the newest turn" if number is None else f"turn {number}"
            which = named if named and named.startswith(TURN_PREFIX) else f"{which} of {named or 'all'}"
            raise MemoryFault(f"looking for {which}: there is none in {self.database.path}")
        asked = [candidate["occurrence"] for candidate in turn["explain"].get("candidates", ())]
        stored = await self._journal.messages(turn["tenant"], asked)
        return Explained(turn, {occurrence: message.text for occurrence, message in stored.items()})

    async def search(self, text: str, tenant: str, conversation: str, limit: int) -> Searched:
        """
        Ask as recall would.

        Args:
            tenant: "": the conversation's, else the only one.
            conversation: "": all of the tenant.

        Raises:
            PolicyError: several tenants could be meant.
        """
        tenant = tenant or await self._tenant_of(conversation)
        query = Query(tenant, "", text, reach=Reach.TENANT)
        if conversation:
            all_of_it = await self._journal.occurrences(tenant, conversation)
            query = Query(tenant, conversation, text, reach=Reach.CONVERSATION, lost=all_of_it)
        await self._embedder.warm()
        recall = self._recall(self._policy.recall)
        demanded = DEMANDS[self._policy.memory.generosity][BlockKind.RECALL].least_help
        recalled = await recall.recall(replace(query, least_help=demanded), limit)
        return Searched(recalled, None if recalled.admitted else await recall.recall(query, limit))

    async def preview(self, target: Target) -> Preview | None:
        """What an erasure would take; None: nothing that is stored is meant."""
        return await self._forgetting().preview(target)

    async def erase(self, target: Target, vacuum: bool = False) -> Json | None:
        """
        Erase beside a proxy that may run on the same folder; the signed receipt. None: nothing that is stored is meant.

        Args:
            vacuum: write the whole file anew where something is left, however large it is.

        Raises:
            MemoryFault: it was not finished, and can be asked for again.
            PolicyError: several tenants could be meant, or the secret is not to be had.
        """
        return await self._forgetting(inf if vacuum else VACUUM_BYTES).erase(target)

    def _forgetting(self, vacuum_bytes: float = VACUUM_BYTES) -> Forgetting:
        return Forgetting(self.database, load_secret(self._policy.data, os.environ), time.time, vacuum_bytes)

    async def stats(self) -> Mapping[str, Any]:
        return await self._journal.stats()

    async def index(self, anew: bool, report: Callable[[int], None]) -> None:
        """
        Give every passage its vector.

        Args:
            anew: first drop all that is derived, and derive it from the journal again.
            report: told how many passages wait.

        Raises:
            MemoryFault: the model is missing; everything but the vectors is done then.
        """
        if anew:
            await self._derived.start_rebuild()
        while await self._derived.rebuild():
            report(await self._journal.pending())
        waiting = await self._journal.pending()
        if waiting and not await self._embedder.warm():
            raise MemoryFault(f"indexing {waiting} passages: no embedding model; run palimpsest model install")
        while waiting:
            report(waiting)
            if not await self._index_some():
                await asyncio.sleep(LOOK_SECONDS)  # the rest is a running proxy's, or a dead one's until its lease ends
            waiting = await self._journal.pending()

    async def close(self) -> None:
        await self._embedder.close()
        await self.database.close()

    async def _index_some(self) -> bool:
        name, batch = self._embedder.name, self._policy.archive.index_batch
        waiting = await self._derived.claim(batch, f"index-{os.getpid()}", LEASE_SECONDS, name)
        if waiting:
            vectors = await self._embedder.embed_passages([passage.text for passage in waiting])
            by_memory = {passage.memory: vector for passage, vector in zip(waiting, vectors, strict=True)}
            await self._derived.save_vectors(name, by_memory)
        return bool(waiting)

    def _recall(self, policy: RecallPolicy) -> Recall:
        shelves = PassageTables(self._embedder.name)
        return Recall(
            self.database,
            shelves,
            self._embedder,
            policy,
            self._metrics,
            time.time,
            reinforcement=self._policy.reinforcement,
        )

    async def _tenant_of(self, conversation: str) -> str:
        names = await self._journal.tenants(conversation)
        if not names:
            raise MemoryFault(f"searching {self.database.path}: nothing of {conversation or 'anybody'} is stored there")
        if len(names) > 1:
            newest = ", ".join(names[:TENANTS_NAMED])
            raise PolicyError(f"--tenant: must be given, as {len(names)} tenants are stored; the newest are: {newest}")
        return names[0]


@asynccontextmanager
async def opened(policy: Policy) -> AsyncIterator[Archive]:
    """
    The archive of `policy.data`.

    Raises:
        MemoryFault: nothing is stored there, or it cannot be opened.
    """
    archive = Archive(policy)
    try:
        if not archive.database.path.exists():
            raise MemoryFault(f"opening {archive.database.path}: it is not there yet; --data names another folder")
        await archive.database.open()
        yield archive
    finally:
        await archive.close()
