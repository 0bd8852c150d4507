"""
What is remembered of this? Ask the indexes, gate, rank, and fetch the texts of the best.

The gate comes first and looks at the question alone: nothing relevant means no block, the normal case. "Could not look"
is a `MemoryFault`; "nothing found" is an answer.
"""

from __future__ import annotations

import asyncio
import re
from time import perf_counter

import numpy as np
import orjson
import structlog

from proxy.core.digest import identifiers, query_terms
from proxy.core.gate import admits
from proxy.core.ranking import Asked, Bools, Ranked, Rows, Shelf, diversified, rank, ranks
from proxy.domain import Candidate, Memory, Query, Reach, Recalled
from proxy.errors import MemoryFault
from proxy.index.text import Words
from proxy.index.vector import Shelves, rows_of
from proxy.policy import RecallPolicy
from proxy.ports import Clock, Counts, Embedder, Sql, Vectors

INLINE_PASSAGES = 5_000  # ranking more takes milliseconds: off the event loop

TEXTS = """
SELECT memory.id, memory.occurrence, conversation.public, occurrence.role,
    substr(content.text, memory.start + 1, memory.stop - memory.start), occurrence.created_at,
    memory.start, memory.stop, memory.tags
FROM json_each(?) AS asked JOIN memory ON memory.id = asked.value
JOIN conversation ON conversation.id = memory.conversation
JOIN occurrence ON occurrence.id = memory.occurrence JOIN content ON content.id = occurrence.content
WHERE memory.tenant = ?
"""

log = structlog.get_logger()


class Recall:
    """Implements `proxy.ports.Remembering`."""

    def __init__(
        self,
        sql: Sql,
        shelves: Shelves,
        words: Words,
        embedder: Embedder,
        policy: RecallPolicy,
        counts: Counts,
        clock: Clock,
    ) -> None:
        self._sql = sql
        self._shelves = shelves
        self._words = words
        self._embedder = embedder
        self._policy = policy
        self._counts = counts
        self._clock = clock

    async def recall(self, query: Query, limit: int) -> Recalled:
        """Best candidates first, visible and excluded ones left out."""
        started = perf_counter()
        recalled = await self._recall(query, limit, started)
        self._counts.observe("recall", perf_counter() - started)
        return recalled

    async def _recall(self, query: Query, limit: int, started: float) -> Recalled:
        def nothing(reason: str, lexical_only: bool = False) -> Recalled:
            return Recalled((), False, reason, lexical_only, (perf_counter() - started) * 1000)

        scope = await self._scope(query)
        if scope is None:
            return nothing("nothing is stored for this tenant")
        tenant, own, conversations = scope
        shelf = await self._shelves.shelf(tenant, conversations)
        eligible = _eligible(shelf, query, own)
        if not eligible.any():
            return nothing("nothing that may come")
        vector = await self._vector(query.text)
        asked = await self._asked(query.text, shelf, vector, tenant, own if query.reach is Reach.CONVERSATION else None)
        if len(shelf) <= INLINE_PASSAGES:
            judged = self._judge(shelf, asked, eligible, limit)
        else:
            judged = await asyncio.to_thread(self._judge, shelf, asked, eligible, limit)
        if isinstance(judged, str):
            return nothing(judged, vector is None)
        reason, best = judged
        candidates = await self._texts(query, shelf, best, tenant)
        return Recalled(candidates, True, reason, vector is None, (perf_counter() - started) * 1000)

    def _judge(self, shelf: Shelf, asked: Asked, eligible: Bools, limit: int) -> str | tuple[str, Ranked]:
        """Why nothing comes, or why something does and what, best first."""
        policy = self._policy
        admitted, reason = admits(
            shelf, asked, eligible, gate_cosine=policy.gate_cosine, gate_rare_terms=policy.gate_rare_terms
        )
        if not admitted:
            return reason
        ranked = rank(shelf, asked, self._clock(), pool=policy.candidates)
        may = eligible[ranked.rows]
        best = Ranked(ranked.rows[may], ranked.scores[may], {k: v[may] for k, v in ranked.signals.items()})
        best = diversified(best, shelf.vectors[best.rows], policy.mmr_lambda)
        return reason, Ranked(best.rows[:limit], best.scores[:limit], {k: v[:limit] for k, v in best.signals.items()})

    async def _scope(self, query: Query) -> tuple[int, int, list[int] | None] | None:
        """Row ids of the tenant, of this conversation (0: not stored yet), and of all in reach (None: all)."""
        rows = await self._sql.read(
            "SELECT tenant.id, ifnull((SELECT id FROM conversation WHERE public = ?2 AND tenant = tenant.id), 0)"
            " FROM tenant WHERE tenant.name = ?1",
            (query.tenant, query.conversation),
        )
        if not rows:
            return None
        tenant, own = rows[0]
        if query.reach is Reach.CONVERSATION:
            return tenant, own, [own]
        if query.reach is Reach.TENANT and not query.scope:
            return tenant, own, None
        found = await self._sql.read(
            "SELECT id FROM conversation WHERE tenant = ?1 AND (?2 = '' OR user = ?2) AND (?3 = '' OR scope = ?3)",
            (tenant, query.user if query.reach is Reach.USER else "", query.scope),
        )
        return tenant, own, sorted({own, *(row[0] for row in found)})

    async def _vector(self, text: str) -> Vectors | None:
        """None while the model is missing: recall is lexical then."""
        if not self._embedder.ready:
            return None
        try:
            return await self._embedder.embed_query(text)
        except MemoryFault as fault:
            self._counts.fault("embed_query")
            log.warning("recall is lexical only", reason=str(fault))
            return None

    async def _asked(
        self, text: str, shelf: Shelf, vector: Vectors | None, tenant: int, conversation: int | None
    ) -> Asked:
        wanted = tuple(dict.fromkeys((*query_terms(text), *identifiers(text))))
        holding = await self._words.holding(wanted, tenant, conversation)
        found = {term: rows for term, ids in holding.items() if len(rows := rows_of(shelf, ids))}
        return Asked(
            vector=vector,
            found=found,
            absent=tuple(term for term in holding if term not in found),
            identifiers=tuple(name for name in identifiers(text) if name in found),
            names=frozenset(re.findall(r"\w+", text.lower())),
        )

    async def _texts(self, query: Query, shelf: Shelf, best: Ranked, tenant: int) -> tuple[Candidate, ...]:
        ids = shelf.ids[best.rows]
        rows = await self._sql.read(TEXTS, (orjson.dumps(ids.tolist()).decode(), tenant))
        by_id = {row[0]: row for row in rows}
        placed = {name: (ranks(values), values) for name, values in best.signals.items()}
        found = []
        for at, id in enumerate(ids.tolist()):
            if (row := by_id.get(id)) is None:  # forgotten since the shelf was read
                continue
            _, occurrence, conversation, role, text, created_at, start, stop, tags = row
            memory = Memory(
                id=id,
                occurrence=occurrence,
                conversation=conversation,
                position=occurrence,
                role=role,
                text=text,
                created_at=created_at,
                start=start,
                stop=stop,
                tags=tuple(tags.split(" ")) if tags else (),
            )
            signals = {name: (int(rank[at]), float(values[at])) for name, (rank, values) in placed.items()}
            found.append(Candidate(memory, float(best.scores[at]), signals))
        return tuple(found)


def _eligible(shelf: Shelf, query: Query, own: int) -> Bools:
    """What may come: lost by this conversation, or said in another one in reach; neither visible nor said already."""
    mine = shelf.conversations == own
    lost = np.isin(shelf.occurrences, _array(query.lost))
    visible = np.isin(shelf.fulls, _array(query.visible_fulls))
    said = np.isin(shelf.occurrences, _array(query.excluded))
    allowed: Bools = np.where(mine, lost, query.reach is not Reach.CONVERSATION) & ~visible & ~said
    return allowed


def _array(values: frozenset[int]) -> Rows:
    return np.fromiter(values, np.int64, len(values))
