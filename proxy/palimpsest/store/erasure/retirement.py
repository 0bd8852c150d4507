"""
Retired messages as rows: stored as before, but without passages, so that nothing recalls, finds or repeats them.

What takes a message out of use is kept with it (`retired`), so that it can be taken back exactly: its passages are cut
anew and get the ids that they had.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from palimpsest.core.archive.records import passages_of
from palimpsest.domain import HeadFlag, Role, frozen
from palimpsest.domain.errors import MemoryFault
from palimpsest.store.engine import Ask, Row, Transaction, ids
from palimpsest.store.erasure.erasure import conversations_of, mark_heads
from palimpsest.store.families.blocks import numbers_of, quoting, retire_blocks
from palimpsest.store.families.passages import OccurrencePassages, remove_passages, write_passages
from palimpsest.store.families.registry import FAMILIES
from palimpsest.store.search.derived import REBUILD

LISTED = """
SELECT retirement.key, coalesce(tenant.name, ''), retirement.at, retirement.until,
    (SELECT count(*) FROM retired WHERE retired.retirement = retirement.id)
FROM retirement LEFT JOIN tenant ON tenant.id = retirement.tenant
WHERE (?1 = '' OR tenant.name = ?1) AND retirement.until > ?2 ORDER BY retirement.id DESC
"""
NEXT = """
SELECT retired.occurrence, conversation.tenant, conversation.id, turn.role, occurrence.role, occurrence.flags,
    content.text, content.rest, retired.memory
FROM retired JOIN occurrence ON occurrence.id = retired.occurrence JOIN turn ON turn.id = occurrence.turn
JOIN conversation ON conversation.id = occurrence.conversation JOIN content ON content.id = occurrence.content
WHERE retired.retirement = ? ORDER BY retired.occurrence LIMIT ?
"""
DUE = "SELECT id FROM retirement WHERE until <= ? ORDER BY id LIMIT 1"


@frozen
class Retirement:
    """What was retired together. `tenant` "": of several tenants. Times in Unix seconds."""

    key: str
    tenant: str
    at: float
    until: float
    messages: int


def begin(transaction: Transaction, key: str, tenant: int, at: float, until: float) -> int:
    """Insert a retirement, and return its row. `tenant`: 0 where it is of several."""
    transaction.write("INSERT INTO erasure(at) VALUES (?)", [(at,)])  # every worker empties its caches
    transaction.write("INSERT INTO retirement(key, tenant, at, until) VALUES (?, ?, ?, ?)", [(key, tenant, at, until)])
    return int(transaction.read("SELECT id FROM retirement WHERE key = ?", (key,))[0][0])


def retire_scopes(transaction: Transaction, prints: Sequence[int], at: float, retirement: int) -> None:
    """Write tombstones for whole scopes: what belongs to one and came before `at` is stored as retired."""
    transaction.write(
        "INSERT INTO retired_scope(fingerprint, retirement, at) VALUES (?, ?, ?)"
        " ON CONFLICT (fingerprint) DO UPDATE SET retirement = excluded.retirement, at = excluded.at",
        [(fingerprint, retirement, at) for fingerprint in prints],
    )


def retire_quotes(transaction: Transaction, tenant: int, occurrences: Sequence[int], retirement: int) -> int:
    """Retire the blocks of a tenant that quote one of these; returns how many there are."""
    blocks = quoting(transaction.read, tenant, occurrences)
    retire_blocks(transaction, blocks, retirement)
    return len(blocks)


def retire_messages(transaction: Transaction, tenant: int, occurrences: Sequence[int], retirement: int) -> None:
    """Take these messages, of one tenant, out of use."""
    which = ids(occurrences)
    transaction.write(
        "INSERT INTO retired(occurrence, tenant, retirement, memory)"
        " SELECT value, ?, ?, coalesce((SELECT min(id) FROM memory WHERE occurrence = value), 0) FROM numbers(?)"
        " WHERE true ON CONFLICT DO NOTHING",
        [(tenant, retirement, which)],
    )
    remove_passages(transaction, tenant, which)  # zeros first: an erasure later would not know what is left of them
    _set_flags(transaction, occurrences, HeadFlag.RETIRED, 0)


def retirement_named(ask: Ask, key: str) -> tuple[int, str, float] | None:
    """The row of a retirement, the name of its tenant ("": several), and until when it may be taken back."""
    sql = (
        "SELECT retirement.id, coalesce(tenant.name, ''), until FROM retirement"
        " LEFT JOIN tenant ON tenant.id = retirement.tenant WHERE key = ?"
    )
    return next(((row[0], row[1], row[2]) for row in ask(sql, (key,))), None)


def retirements(ask: Ask, tenant: str, now: float) -> list[Retirement]:
    """Retirements that can still be undone, newest first; of one tenant, or with "" of all."""
    return [Retirement(*row) for row in ask(LISTED, (tenant, now))]


def next_retired(ask: Ask, retirement: int, limit: int) -> list[Row]:
    """The next messages of a retirement, as `retired_passages` takes them."""
    return ask(NEXT, (retirement, limit))


def retired_passages(rows: Sequence[Row]) -> Mapping[int, tuple[OccurrencePassages, int]]:
    """By occurrence, the passages of messages that are taken back, and the id that the first of them had."""
    found = {}
    for occurrence, tenant, conversation, request, role, flags, text, rest, memory in rows:
        passages = passages_of(Role(request), role, flags & ~HeadFlag.RETIRED, text, rest)
        found[occurrence] = OccurrencePassages(occurrence, tenant, conversation, passages), memory
    return found


def take_back(transaction: Transaction, retirement: int, cuts: Mapping[int, tuple[OccurrencePassages, int]]) -> int:
    """Bring messages back into use; returns how many. Raises `MemoryFault`: the index is being rebuilt."""
    if transaction.read("SELECT 1 FROM task WHERE name = ?", (REBUILD,)):
        raise MemoryFault("undoing a retirement: the index is being rebuilt; try again when that is done")
    still = [
        row[0]
        for row in transaction.read(
            "SELECT occurrence FROM retired WHERE retirement = ? AND occurrence IN (SELECT value FROM numbers(?))",
            (retirement, ids(cuts)),
        )
    ]
    for occurrence in still:
        passages, first = cuts[occurrence]
        memories: Sequence[int] = range(first, first + len(passages.passages))
        taken = "SELECT 1 FROM memory WHERE id IN (SELECT value FROM numbers(?))"
        if not first or transaction.read(taken, (ids(memories),)):
            memories = transaction.new_ids("memory", len(memories))
        write_passages(transaction, [passages], memories)
        # tables in memory have read past these
        transaction.write("INSERT INTO forgotten(memory) SELECT value FROM numbers(?)", [(ids(memories),)])
    transaction.write("DELETE FROM retired WHERE occurrence = ?", [(occurrence,) for occurrence in still])
    _set_flags(transaction, still, 0, HeadFlag.RETIRED)
    return len(still)


def forget_stones(transaction: Transaction, retirement: int) -> None:
    """Remove the tombstones of a retirement: what is sent again is new."""
    for table in ("erased", "retired_scope"):
        transaction.write(f"DELETE FROM {table} WHERE retirement = ?", [(retirement,)])


def end(transaction: Transaction, retirement: int) -> None:
    """End a retirement that was undone: its blocks are repeated again, unless another one holds them."""
    rows = transaction.read("SELECT occurrence, occurrences FROM block WHERE retired = ?", (retirement,))
    for anchor, quoted in rows:
        ((other,),) = transaction.read(
            "SELECT coalesce(max(retirement), 0) FROM retired WHERE occurrence IN (SELECT value FROM numbers(?))",
            (ids(numbers_of(quoted)),),
        )
        transaction.write("UPDATE block SET retired = ? WHERE occurrence = ?", [(other, anchor)])
    transaction.write("DELETE FROM retirement WHERE id = ?", [(retirement,)])


def expire(transaction: Transaction, retirement: int) -> None:
    """End a retirement whose messages are erased: its tombstones become those of an erasure."""
    transaction.write("UPDATE erased SET retirement = 0 WHERE retirement = ?", [(retirement,)])
    transaction.write("DELETE FROM retired_scope WHERE retirement = ?", [(retirement,)])
    end(transaction, retirement)


def due_retirement(ask: Ask, now: float) -> int:
    """The row of a retirement whose time is over; 0: there is none."""
    return next((row[0] for row in ask(DUE, (now,))), 0)


def _set_flags(transaction: Transaction, occurrences: Sequence[int], put: int, take: int) -> None:
    which = ids(occurrences)
    transaction.write(
        "UPDATE occurrence SET flags = (flags | ?) & ~CAST(? AS BIGINT) WHERE id IN (SELECT value FROM numbers(?))",
        [(put, take, which)],
    )
    for family in FAMILIES:
        family.retire(transaction, which, bool(put & HeadFlag.RETIRED))
    mark_heads(transaction, conversations_of(transaction, which), set(occurrences), put, take)
