"""
Fresh passages: vectors for what was said last, in the time of the request that asks for it.

The index gives passages their vectors a moment later. Where few of those in question have none yet, they get one from
the model for questions, the newest first, which counts until the stored one is there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog

from palimpsest.domain.errors import MemoryFault
from palimpsest.domain.ports import Vectors
from palimpsest.memory.index.passage_tables import PassageTables
from palimpsest.memory.timeouts import await_for
from palimpsest.store.engine import Engine
from palimpsest.store.search.passages import texts_of
from palimpsest.store.search.scope import Scope

MOST_PASSAGES = 32  # a conversation that a script holds in a few seconds; where more wait, the index is behind
AT_ONCE = 4  # some 20 ms: the question of another request waits behind them
SECONDS = 0.08  # of a request, at most: a third of the default deadline

log = structlog.get_logger()

EmbedAside = Callable[[Sequence[str]], Awaitable[Vectors]]
"""Unit vectors of texts, shape (n, dimensions), computed beside the questions of requests."""


class FreshPassages:
    """Embeds what a table of passages lacks; one scope at a time, as all share one thread."""

    def __init__(self, database: Engine, tables: PassageTables, embed: EmbedAside) -> None:
        self._database = database
        self._tables = tables
        self._embed = embed
        self._working: asyncio.Task[None] | None = None

    async def provide(self, tenant: str, scope: Scope, passages: Sequence[int]) -> None:
        """
        Vectors for passages of a scope that have none, where they are few. Returns when they are there, or after
        `SECONDS`; what has begun goes on.

        Args:
            passages: ids, the newest first.
        """
        if not passages or len(passages) > MOST_PASSAGES or self._working is not None:
            return
        self._working = asyncio.create_task(self._provide(tenant, scope, passages))
        await await_for(self._working, SECONDS)

    async def _provide(self, tenant: str, scope: Scope, passages: Sequence[int]) -> None:
        """Embed passages that have no vector yet, and put the vectors into the table."""
        try:
            rows = await self._database.ask(lambda ask: texts_of(ask, tenant, passages), tenant)
            texts = {id: text for id, _, _, _, text, *_ in rows}
            there = [id for id in passages if id in texts]
            for start in range(0, len(there), AT_ONCE):
                some = there[start : start + AT_ONCE]
                vectors = await self._embed([texts[id] for id in some])
                await asyncio.to_thread(self._tables.provide, scope, some, vectors)
        except MemoryFault as fault:  # they are found by their words
            log.debug("passages get their vectors later", reason=str(fault))
        finally:
            self._working = None
