"""
Derived data: what follows from the journal and can be made again, and the work on it that is still to be done.

Work is claimed by lease, so that several workers share it and one that dies holds it up for no longer than that.
Rebuilding makes memories, full text, term counts and vectors from the journal. Heads and links are no part of it: they
are made of fingerprints of the unredacted texts, which nobody has any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import structlog

from palimpsest.core.archive.records import passages_of
from palimpsest.domain import HeadFlag, Role, frozen
from palimpsest.domain.errors import DataFault
from palimpsest.domain.ports import Clock, Vectors
from palimpsest.store.engine import Engine, Row, Transaction, each, full_text, ids, nobody
from palimpsest.store.families.passages import OccurrencePassages, write_passages
from palimpsest.store.search.passages import trim_changes

REBUILD_BATCH = 200  # messages digested and written at a time: some 100 ms, so that requests are written in between
REBUILD = "rebuild"  # name of the task

OTHERS_BATCH = 5_000  # vectors of another model dropped at a time: some 50 ms, so that requests are written in between

# Two ranges of the index: `<>` would read every vector there is.
OTHERS = """
SELECT tenant, memory FROM (SELECT tenant, memory, model FROM vector /*+ INDEX(vector_by_model) */ WHERE model < ?1
    UNION ALL SELECT tenant, memory, model FROM vector /*+ INDEX(vector_by_model) */ WHERE model > ?1) AS other LIMIT ?2
"""

COPY = """
INSERT INTO vector(tenant, memory, model, own)
SELECT mine.tenant, mine.id, vector.model, vector.own
FROM memory AS mine JOIN occurrence AS here ON here.id = mine.occurrence
INNER JOIN occurrence AS there ON there.content = here.content
INNER JOIN memory AS other ON other.occurrence = there.id AND other.start = mine.start AND other.stop = mine.stop
INNER JOIN vector ON vector.memory = other.id AND vector.model = ?
WHERE mine.id = ? LIMIT 1 FOR KEY SHARE OF mine
"""
SAVE = """
INSERT INTO vector(tenant, memory, model, own) SELECT tenant, id, ?, ? FROM memory WHERE id = ? FOR KEY SHARE
ON CONFLICT (tenant, memory) DO UPDATE SET model = excluded.model, own = excluded.own
"""
INDEXED = "DELETE FROM unindexed WHERE memory IN (SELECT value FROM numbers(?))"
COPIED = "DELETE FROM unindexed WHERE memory = ? AND memory IN (SELECT memory FROM vector)"
# The rows are chosen before any is changed: a plan may ask a subquery again
CLAIM = """
WITH free AS MATERIALIZED (
    SELECT memory FROM unindexed WHERE leased_until <= ?3 OR leased_until > ?4
    ORDER BY memory DESC LIMIT ?5 FOR UPDATE SKIP LOCKED)
UPDATE unindexed SET worker = ?1, leased_until = ?2 WHERE memory IN (SELECT memory FROM free) RETURNING memory
"""
CLAIMED = """
SELECT memory.id, substr(content.text, start + 1, stop - start)
FROM numbers(?) AS claimed JOIN unindexed ON unindexed.memory = claimed.value
JOIN memory ON memory.id = unindexed.memory JOIN occurrence ON occurrence.id = memory.occurrence
JOIN content ON content.id = occurrence.content ORDER BY memory.id DESC
"""

# The message's fingerprint, a keyed hash, tells it from others.
BEGIN = """
INSERT INTO task(name, next, stop) SELECT ?, 0, coalesce(max(id), 0) FROM occurrence WHERE true
ON CONFLICT (name) DO UPDATE SET next = excluded.next, stop = excluded.stop
"""
SET_ASIDE = """
INSERT INTO quarantine(turn, part, reason, chars, digest, created_at)
SELECT turn.key, 'passage', ?, memory.stop - memory.start, bytes_of(occurrence.fingerprint), ?
FROM memory JOIN occurrence ON occurrence.id = memory.occurrence JOIN turn ON turn.id = occurrence.turn
WHERE memory.id = ?
"""
SET_ASIDE_MESSAGE = """
INSERT INTO quarantine(turn, part, reason, chars, digest, created_at)
SELECT turn.key, 'message', ?, length(content.text), bytes_of(occurrence.fingerprint), ?
FROM occurrence JOIN turn ON turn.id = occurrence.turn JOIN content ON content.id = occurrence.content
WHERE occurrence.id = ?
"""

log = structlog.get_logger()


@frozen
class WaitingPassage:
    """A passage that waits for its vector."""

    memory: int
    text: str


class Derived:
    """The part of the database that can be rebuilt."""

    def __init__(self, database: Engine, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._only_model = ""  # no vectors of other models are there

    async def claim(self, limit: int, worker: str, lease_seconds: float, model: str) -> tuple[WaitingPassage, ...]:
        """
        Claim passages without a vector of this model, newest first.

        They are this worker's until the lease ends; `save_vectors` ends the work. What was embedded before, in another
        place of the same tenant, takes its vector from there and is not among them.
        """
        while True:
            now = self._clock()
            # an end that no lease of now can have was written while the clock was wrong
            lease = (worker, now + lease_seconds, now, now + 2 * lease_seconds, limit)
            has_others = model != self._only_model and bool(await self._database.read(OTHERS, (model, 1)))
            self._only_model = "" if has_others else model
            if has_others:
                await self._database.transact(partial(_drop_others, model=model))
            claimed, rows = await self._database.transact(partial(_claim, model, lease), nobody)
            if rows or not (claimed or has_others):
                return tuple(WaitingPassage(*row) for row in rows)

    async def save_vectors(self, model: str, vectors: Mapping[int, Vectors]) -> None:
        """Store unit vectors by memory; forgotten memories are left out."""
        rows = [(model, np.asarray(v, np.float16).tobytes(), memory) for memory, v in sorted(vectors.items())]
        await self._database.transact(each(((SAVE, rows), (INDEXED, [(ids(vectors),)]))), nobody)

    async def set_aside(self, memory: int, reason: str) -> None:
        """Give up on the vector of a memory, and list that in the quarantine; a rebuild tries it again."""
        await self._database.transact(
            each(((SET_ASIDE, [(reason, self._clock(), memory)]), (INDEXED, [(ids([memory]),)]))), nobody
        )

    async def start_rebuild(self) -> None:
        """Drop all derived data; `rebuild_step` makes it again, step by step, in any process."""
        await self._database.write(
            (
                ("INSERT INTO forgotten(memory) SELECT memory FROM vector", [()]),
                *((f"DELETE FROM {table}", [()]) for table in ("unindexed", "vector", "memory", "term")),
                *full_text.CLEAR,
                (BEGIN, [(REBUILD,)]),
            )
        )

    async def rebuild_step(self) -> bool:
        """
        Take one step of a rebuild that any process has started; returns whether more is to be done.

        Opens the database where that has failed before, so that asking from time to time brings it back.
        """
        await self._database.open()
        task = await self._database.read("SELECT next, stop FROM task WHERE name = ?", (REBUILD,))
        if not task:
            return False
        following, stop = task[0]
        rows = await self._database.read(
            "SELECT occurrence.id, conversation.tenant, conversation.id, turn.role, occurrence.role, flags, text, rest"
            " FROM occurrence JOIN turn ON turn.id = occurrence.turn"
            " JOIN conversation ON conversation.id = occurrence.conversation"
            " JOIN content ON content.id = occurrence.content"
            " WHERE occurrence.id > ? AND occurrence.id <= ? ORDER BY occurrence.id LIMIT ?",
            (following, stop, REBUILD_BATCH),
        )
        findable, broken = await asyncio.to_thread(_digest, rows)
        while True:
            done = rows[-1][0] if rows else None
            step = partial(_rebuild, task, findable, done, broken, self._clock())
            try:
                is_more = await self._database.transact(step)
            except DataFault as failure:  # of one message: the others are written, step by step
                if len(rows) == 1 and findable:
                    findable, broken = [], {rows[0][0]: str(failure)}
                elif len(rows) > 1:
                    rows = rows[: len(rows) // 2]
                    findable = [one for one in findable if one.occurrence <= rows[-1][0]]
                    broken = {occurrence: why for occurrence, why in broken.items() if occurrence <= rows[-1][0]}
                else:
                    raise
            else:
                for reason in broken.values():
                    log.error("a message cannot be made findable and is set aside", reason=reason)
                return is_more


def _drop_others(transaction: Transaction, model: str) -> None:
    """Drop some vectors of other models; their passages wait for new ones."""
    rows = transaction.read(OTHERS, (model, OTHERS_BATCH))
    transaction.write("INSERT INTO unindexed(tenant, memory) VALUES (?, ?) ON CONFLICT DO NOTHING", rows)
    others = ids(memory for _, memory in rows)
    transaction.write("INSERT INTO forgotten(memory) SELECT value FROM numbers(?)", [(others,)])
    transaction.write("DELETE FROM vector WHERE memory IN (SELECT value FROM numbers(?))", [(others,)])


def _claim(
    model: str, lease: tuple[str, float, float, float, int], transaction: Transaction
) -> tuple[list[Row], list[Row]]:
    """Ids that were claimed, and what of them is to be embedded."""
    trim_changes(transaction)
    claimed = transaction.read(CLAIM, lease)
    transaction.write(COPY, [(model, memory) for (memory,) in claimed])
    transaction.write(COPIED, claimed)
    return claimed, transaction.read(CLAIMED, (ids(memory for (memory,) in claimed),))


def _rebuild(
    task: list[Row],
    findable: Sequence[OccurrencePassages],
    done: int | None,
    broken: Mapping[int, str],
    at: float,
    transaction: Transaction,
) -> bool:
    """
    Write one step up to occurrence `done` (None: all is done), unless another worker took it.

    Args:
        broken: occurrences that are set aside, and why.
    """
    if transaction.read("SELECT next, stop FROM task WHERE name = ?", (REBUILD,)) != task:
        return True
    if done is None:
        transaction.write("DELETE FROM task WHERE name = ?", [(REBUILD,)])
        return False
    # what was taken back, erased or retired since it was read finds nothing to stand on
    still = transaction.read(
        "SELECT occurrence.id FROM numbers(?) AS asked JOIN occurrence ON occurrence.id = asked.value"
        f" WHERE occurrence.flags & {HeadFlag.ERASED | HeadFlag.RETIRED} = 0",
        (ids(f.occurrence for f in findable),),
    )
    there = {row[0] for row in still}
    write_passages(transaction, [f for f in findable if f.occurrence in there])
    transaction.write(SET_ASIDE_MESSAGE, [(reason, at, occurrence) for occurrence, reason in broken.items()])
    transaction.write("UPDATE task SET next = ? WHERE name = ?", [(done, REBUILD)])
    return True


def _digest(rows: Sequence[Row]) -> tuple[list[OccurrencePassages], dict[int, str]]:
    """Cut messages into passages; those that cannot be read by occurrence, with the reason."""
    findable, broken = [], {}
    for occurrence, tenant, conversation, request, *said in rows:
        try:
            if passages := passages_of(Role(request), *said):  # the text tells the tool calls already
                findable.append(OccurrencePassages(occurrence, tenant, conversation, passages))
        except Exception as failure:  # a guard: one message must not hold up all that come behind it
            broken[occurrence] = f"rebuilding: {type(failure).__name__}"
    return findable, broken
