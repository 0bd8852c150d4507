"""Commands on a data folder: explain, search, numbers, indexing anew, forgetting. A proxy may run on it meanwhile."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any, TypeVar

from palimpsest.core.caller.identity import tenant_of
from palimpsest.core.recall.generosity import demanded
from palimpsest.core.recall.trail import Trace
from palimpsest.domain import TURN_PREFIX, BlockKind, Json, Query, Reach, Recalled
from palimpsest.domain.errors import MemoryFault, PolicyError
from palimpsest.domain.ports import Retriever
from palimpsest.memory.archive import Archive
from palimpsest.memory.embedding.embedder import LocalEmbedder
from palimpsest.memory.erasure.forgetting import Forgetting
from palimpsest.memory.extension import Extension, ExtensionSource
from palimpsest.memory.recall.assisted import AssistedRecall
from palimpsest.memory.recall.trails import Trails
from palimpsest.settings.policy import Policy
from palimpsest.store.data_dir import make_folder
from palimpsest.store.engine import Engine
from palimpsest.store.erasure.selection import Target
from palimpsest.store.operation.secret import load_secret
from palimpsest.telemetry.metrics import Metrics

T = TypeVar("T")

LEASE_SECONDS = 120.0  # a batch takes seconds; if we are killed, others take it up after this
LOOK_SECONDS = 0.5  # between looks while a running proxy indexes the rest
NOTHING_YET = (
    "nothing is archived yet in {}; requests that pass through palimpsest serve and are answered are, and palimpsest "
    "import reads files; --data names another folder"
)
TENANTS_NAMED = 10  # in a hint; there may be thousands


@dataclass(frozen=True, slots=True)
class Explanation:
    """The record of a turn, and the texts of its candidates by occurrence."""

    turn: Mapping[str, Any]
    texts: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What recall would return, and if its gate is shut, what else it would have chosen from."""

    recalled: Recalled
    behind: Recalled | None = None

    def as_json(self) -> Json:
        """All that was found, named as by `GET /memory/v1/search`; `recalled`: a request would have received it."""
        return {
            "admitted": self.recalled.admitted,
            "reason": self.recalled.reason,
            "results": [
                {name: getattr(one.memory, name) for name in ("conversation", "role", "created_at", "text")}
                | {"probability": one.probability, "signals": one.signals, "recalled": part is self.recalled}
                for part in (self.recalled, self.behind)
                if part is not None
                for one in part.candidates
            ],
        }


class Commands:
    """The commands on one data folder, opened by `opened`."""

    litellm_thread = None

    def __init__(
        self,
        policy: Policy,
        assistance: ExtensionSource | None = None,  # what plans and selects for recall, where the policy wants it
        asks_models: bool = False,  # whether it asks the language models that the policy names
        keeps_to_secret: bool = True,  # see `opened`
    ) -> None:
        self.policy = policy if asks_models else policy.model_copy(update={"models": {}})
        self.counts, self.clock, self.environment = Metrics(), time.time, os.environ
        self.embedder = LocalEmbedder(policy.model, self.counts)
        self.archive = Archive(policy, self.counts, self.embedder, secret=self.secret, keeps_to_secret=keeps_to_secret)
        self._journal = self.archive.journal
        self.database = self.archive.database
        wants = assistance is not None and assistance.extends(policy)
        self._assistance = assistance.extension(self) if assistance and wants else Extension()  # type: ignore[arg-type]

    async def recall(self) -> AssistedRecall:
        """Recall as requests have it, with all that it needs loaded."""
        await self.embedder.warm()
        await self._assistance.apply(self.policy)
        await self._assistance.open()
        return self.assist(self.archive.recall())

    def assist(self, recall: Retriever) -> AssistedRecall:
        """A recall with planner and selector in front of and behind it."""
        return AssistedRecall(recall, self._assistance, lambda: self.policy.memory.deadline_ms / 1000)

    async def explain(self, named: str | None, number: int | None) -> Explanation:
        """Look up one turn, by its id or a request's, or by conversation and number from 1; None: the newest."""
        if named is None or (number is None and named.startswith(TURN_PREFIX)):
            turn = await self._journal.turn_named(None, named)
        else:
            turn = await self._journal.turn(None, named, number)
            if turn is None and number is None:
                turn = await self._journal.turn_named(None, named)
        if turn is None:
            raise MemoryFault(await self._missing(named, number))
        asked = [candidate["occurrence"] for candidate in turn["explain"].get("candidates", ())]
        stored = await self._journal.messages(turn["tenant"], asked)
        return Explanation(turn, {occurrence: message.text for occurrence, message in stored.items()})

    async def newest_conversation(self) -> str:
        """The one with the newest turn."""
        turn = await self._journal.turn_named(None, None)
        if turn is None:
            raise MemoryFault(f"looking for the newest conversation: {NOTHING_YET.format(self.database.place)}")
        newest: str = turn["conversation"]
        return newest

    async def trail(self, statement: str, conversation: str, named: str | None) -> Trace:
        """Trace a statement through one turn, `named` or the newest that asked this, else the conversation's newest."""
        trails = Trails(self._journal, self.database, await self.recall(), self.policy)
        found = await trails.find(statement, None, conversation, named)
        if found is None:
            where = f"{named} of {conversation}" if named else conversation
            raise MemoryFault(f"looking for {where}: not found in {self.database.place}")
        return found

    async def _missing(self, named: str | None, number: int | None) -> str:
        """Why `explain` has nothing to show."""
        if await self._journal.turn_named(None, None) is None:
            return f"explaining a request: {NOTHING_YET.format(self.database.place)}"
        if named and named.startswith(TURN_PREFIX):
            return (
                f"looking for {named}: not archived in {self.database.place}; a request that the provider refused with "
                "401 or 403, or of a tenant that it never answered, leaves nothing there: the log line with this turn "
                "has its status"
            )
        which = "the newest turn" if number is None else f"turn {number}"
        return f"looking for {which} of {named}: not found in {self.database.place}"

    async def search(self, text: str, tenant: str, conversation: str, limit: int) -> Mapping[str, SearchResult]:
        """
        Search as recall would, and if its gate is shut also without, for each tenant alone.

        Args:
            tenant: "": each that the conversation, or any, belongs to; with `tenants.static` only that.
        """
        names = await self._tenants_of(conversation)
        if tenant and tenant not in (stored := await self._journal.tenants(conversation)):
            raise PolicyError(f"--tenant: {tenant} has nothing there; the newest are: {_newest(stored)}")
        if not tenant and len(names) > TENANTS_NAMED:
            raise PolicyError(f"--tenant: required, because there are {len(names)}; the newest are: {_newest(names)}")
        recall = await self.recall()
        chosen = [tenant] if tenant else names
        return {name: await self._search(recall, text, name, conversation, limit) for name in chosen}

    async def _search(
        self, recall: AssistedRecall, text: str, tenant: str, conversation: str, limit: int
    ) -> SearchResult:
        query = Query(tenant, "", text, reach=Reach.TENANT)
        if conversation:
            all_of_it = await self._journal.occurrences(tenant, conversation)
            query = Query(tenant, conversation, text, reach=Reach.CONVERSATION, lost=all_of_it)
        demand = demanded(self.policy.memory.generosity, BlockKind.RECALL)
        recalled = await recall.recall(replace(query, least_help=demand.least_help), limit)
        if recalled.helps >= demand.least_help:
            return SearchResult(recalled, None)
        told = {one.memory.id for one in recalled.candidates}  # what comes though the gate is shut
        found = await recall.recall(query, limit)
        behind = tuple(one for one in found.candidates if one.memory.id not in told)
        return SearchResult(recalled, replace(found, candidates=behind))

    async def erase(self, target: Target, vacuum: bool = False) -> Json | None:
        """Erase, beside a proxy that may run, and return the signed receipt; None: nothing stored matches."""
        forgetting = self.archive.forgetting
        if vacuum:
            backups = self.policy.retention.backups
            forgetting = Forgetting(self.database, self.secret(), time.time, inf, lambda: backups)
        return await forgetting.erase(target)

    async def only_tenant(self, named: str | None) -> str:
        """The tenant of this name, or else the only one (`_tenants_of`); raises `PolicyError`: there are several."""
        names = [named] if named else await self._tenants_of("")
        if len(names) > 1:
            raise PolicyError(f"--tenant: required, because there are {len(names)}; the newest are: {_newest(names)}")
        return names[0]

    def tenant_of(self, credential: bytes) -> str:
        """The tenant of requests with this credential; "" where it names none."""
        return tenant_of([credential], self.policy.tenants, self.secret(), None)

    def secret(self) -> bytes:
        return load_secret(self.policy.data, os.environ)

    async def index(self, anew: bool, report: Callable[[int], None]) -> None:
        """Embed every passage that has no vector; `anew`: first derive everything from the journal again."""
        derived, indexer = self.archive.derived, self.archive.indexer(lease_seconds=LEASE_SECONDS)
        if anew:
            await derived.start_rebuild()
        while await derived.rebuild_step():
            report(await self._journal.pending())
        waiting = await self._journal.pending()
        if waiting and not await self.embedder.warm():
            raise MemoryFault(f"indexing {waiting} passages: no embedding model; run palimpsest model install")
        while waiting:
            report(waiting)
            if not await indexer.index_batch():
                await asyncio.sleep(LOOK_SECONDS)  # the rest is a running proxy's, or a dead one's until its lease ends
            waiting = await self._journal.pending()

    async def close(self) -> None:
        await self._assistance.close()
        await self.embedder.close()
        await self.archive.close()

    async def _tenants_of(self, conversation: str) -> Sequence[str]:
        """The tenants of a conversation, or of all, the newest first; only that of `tenants.static` if it is there."""
        names = await self._journal.tenants(conversation)
        if not names and not await self._journal.tenants():
            raise MemoryFault(f"searching: {NOTHING_YET.format(self.database.place)}")
        if not names:
            raise MemoryFault(f"searching {self.database.place}: {conversation} is not stored there")
        own = f"static:{self.policy.tenants.static}"
        return [own] if own in names else names


def _newest(names: Sequence[str]) -> str:
    return ", ".join(names[:TENANTS_NAMED])


def _is_there(database: Engine, data: Path) -> bool:
    """Whether there is a database to open; raises `PolicyError`: nobody can look there."""
    try:
        if not (is_there := database.is_there) and data.exists() and not data.is_dir():
            raise PolicyError(f"data: {data}: is not a folder")
    except OSError as cause:
        raise PolicyError(f"data: {data}: cannot be looked into: {cause.strerror}") from cause
    return is_there


@asynccontextmanager
async def opened(
    policy: Policy,
    is_new: bool = False,
    assistance: ExtensionSource | None = None,
    asks_models: bool = False,
    keeps_to_secret: bool = True,
) -> AsyncIterator[Commands]:
    """
    Open the archive of `policy.data` for the time of this context.

    Args:
        is_new: it is made where there is none.
        assistance, asks_models: see `Commands`.
        keeps_to_secret: whether to refuse an archive that was written with another secret; False: it is only read.

    Raises:
        MemoryFault: nothing is stored there, or it cannot be opened.
        PolicyError: that is no folder that can be looked into.
    """
    if is_new:
        make_folder(policy.data)
    commands = Commands(policy, assistance, asks_models, keeps_to_secret)
    try:
        if is_new:
            commands.secret()  # before the database is made: beside one, no secret is
        elif not _is_there(commands.database, policy.data):
            raise MemoryFault(f"opening the archive: {NOTHING_YET.format(commands.database.place)}")
        await commands.database.open()
        yield commands
    finally:
        await commands.close()


def run(
    policy: Policy,
    work: Callable[[Commands], Awaitable[T]],
    *,
    is_new: bool = False,
    assistance: ExtensionSource | None = None,
    asks_models: bool = False,
    keeps_to_secret: bool = True,
) -> T:
    """Open the archive of `policy.data`, run work on it, and return the result; see `opened`."""

    async def working() -> T:
        async with opened(policy, is_new, assistance, asks_models, keeps_to_secret) as commands:
            return await work(commands)

    return asyncio.run(working())
