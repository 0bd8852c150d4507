"""
The writing of facts: those that programs add, pins, and the removal of facts that are forgotten or erased.

An added fact needs no message and survives re-extraction. It belongs to a user and a project and is erased with them.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence

import orjson

from palimpsest.core.facts.marks import Statement, added_mark, marks, marks_left, place_print
from palimpsest.domain import Fact, FactCategory, Reach, frozen
from palimpsest.domain.facts import by_tool
from palimpsest.store.engine import Ask, Row, Transaction, ids
from palimpsest.store.families.blocks import erase_blocks, retire_blocks
from palimpsest.store.families.facts import NAMES, WORDS, move_facts, remove_facts, settle
from palimpsest.store.families.family import Erased
from palimpsest.store.knowledge.facts import OWNER
from palimpsest.store.turns.transcript import Selection

KeyOf = Callable[[str], bytes]
"""The key of a tenant, by its name."""

PAGE = 500  # of an export, some 100 KB
THESE = "id IN (SELECT value FROM numbers(?))"

FORBID = """
INSERT INTO fact_forgotten(mark, at) VALUES (?, ?)
ON CONFLICT (mark) DO UPDATE SET at = greatest(fact_forgotten.at, excluded.at)
"""
STORE = """
INSERT INTO fact(tenant, public, user_id, scope, tool, who, subject, slot, value, category, single, confidence, said_at,
    valid_from, valid_until, pinned, place)
SELECT tenant.id, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1.0, ?, ?, ?, ?, ? FROM tenant WHERE tenant.name = ?
"""
STANDS = "SELECT fact.id FROM fact JOIN tenant ON tenant.id = fact.tenant WHERE tenant.name = ? AND public = ?"
AGAIN = """
SELECT fact.id, public FROM fact JOIN tenant ON tenant.id = fact.tenant
WHERE occurrence IS NULL AND retirement = 0 AND tenant.name = ? AND user_id = ? AND scope = ? AND place = ?
    AND subject = ? AND slot = ? AND value = ? AND category = ? AND single = ?
    AND valid_from IS NOT DISTINCT FROM ? AND valid_until IS NOT DISTINCT FROM ?
LIMIT 1
"""
TOLD = """
SELECT fact.id, public, tenant.name, user_id, scope, subject, slot, value, category, said_at, tool, who, single, pinned,
    valid_from, valid_until
FROM fact JOIN tenant ON tenant.id = fact.tenant
WHERE fact.id > ?1 AND occurrence IS NULL AND retirement = 0 AND (?2 = '' OR tenant.name = ?2)
    AND (?3 = '' OR user_id = ?3) AND (?4 = '' OR scope = ?4) ORDER BY fact.id LIMIT ?5
"""
# All that says the same for the same person, retired sources too; with `same_value` 0 whatever the slot holds.
SAME = """
WITH stated AS (
    SELECT fact.id, fact.tenant, fact.public, fact.user_id, fact.scope,
        coalesce(conversation.public, '') AS conversation, fact.subject, fact.slot, fact.value, fact.single,
        coalesce(occurrence.fingerprint, 0) AS fingerprint, fact.occurrence
    FROM fact AS one JOIN fact USING (tenant, user_id, scope)
    LEFT JOIN conversation ON conversation.id = fact.conversation
    LEFT JOIN occurrence ON occurrence.id = fact.occurrence
    WHERE one.tenant = (SELECT id FROM tenant WHERE name = :tenant) AND one.public = :id AND fact.place = one.place
), owned AS (SELECT *, {owner} AS owner FROM stated), named AS (SELECT * FROM owned WHERE public = :id)
SELECT DISTINCT owned.id, owned.public, owned.user_id, owned.scope, owned.conversation, owned.subject, owned.slot,
    owned.value, owned.single, owned.fingerprint, owned.occurrence
FROM named JOIN owned USING (user_id, scope, owner, subject, slot, single)
WHERE :same_value = 0 OR lower(owned.value) = lower(named.value)
"""
OF_TOOLS = """
SELECT fact.id FROM fact WHERE occurrence IS NULL AND tenant = ?1 AND (?2 = '' OR user_id = ?2)
    AND (?3 = '' OR scope = ?3) AND said_at <= ?4 AND (?5 <> 0 OR retirement = 0) ORDER BY id
"""


TELLING = """
SELECT DISTINCT block.occurrence FROM block JOIN conversation ON conversation.id = block.conversation
INNER JOIN arrays(block.facts) AS told ON true
WHERE conversation.tenant = ? AND block.facts <> '[]'
    AND item(told.value, 0) IN (SELECT value FROM texts(?))
"""
STATED = """
SELECT fact.id, fact.public, coalesce(conversation.user_id, fact.user_id), coalesce(conversation.scope, fact.scope),
    coalesce(conversation.public, ''), coalesce(occurrence.fingerprint, 0), fact.occurrence, said_at, subject, slot,
    value, single
FROM fact LEFT JOIN conversation ON conversation.id = fact.conversation
LEFT JOIN occurrence ON occurrence.id = fact.occurrence WHERE fact.tenant = ?
"""


@frozen
class FactRow:
    """One row that states a fact: of a message (`occurrence`), or told (None)."""

    number: int
    public: str
    user: str
    scope: str
    conversation: str
    statement: Statement
    occurrence: int | None


def add_facts(transaction: Transaction, facts: Sequence[Fact], key_of: KeyOf) -> list[str]:
    """
    Store facts that programs added. Returns the id of each, "" for one that was forgotten before.

    A fact that is stored already is not stored twice: only its time, tool and pin are updated.
    """
    stored_ids = []
    for one in facts:
        if is_forgotten(transaction.read, key_of(one.tenant), one.id):
            stored_ids.append("")
            continue
        lookup = (STANDS, (one.tenant, one.id))
        if transaction.read(*lookup):
            stored_ids.append(one.id)
            continue
        transaction.write("INSERT INTO tenant(name) VALUES (?) ON CONFLICT DO NOTHING", [(one.tenant,)])
        stated = (one.subject, one.slot, one.value, one.category.value)
        valid, by = (one.valid_from, one.valid_until), (one.source.tool, one.source.who)
        place = place_print(key_of(one.tenant), one.subject, one.slot, one.value, one.is_single)
        existing = transaction.read(AGAIN, (one.tenant, one.user, one.scope, place, *stated, one.is_single, *valid))
        if existing:
            ((number, public),) = existing
            change = "said_at = greatest(said_at, ?2), tool = ?3, who = ?4, pinned = greatest(pinned, ?5)"
            move_facts(transaction, [number], change, one.said_at, *by, one.is_pinned)
            stored_ids.append(public)
            continue
        row = (one.id, one.user, one.scope, *by, *stated, one.is_single, one.said_at, *valid)
        transaction.write(STORE, [(*row, one.is_pinned, place, one.tenant)])
        settle(transaction, ids(row[0] for row in transaction.read(*lookup)))
        stored_ids.append(one.id)
    return stored_ids


def added_facts(ask: Ask, selection: Selection, after: int) -> list[tuple[int, Fact]]:
    """
    The next page of facts that tools were told, for an export, by row.

    Args:
        selection: of turns; the tenant, user and project of it count.
        after: the row that was read last; 0: none.
    """
    rows = ask(TOLD, (after, selection.tenant, selection.user, selection.scope, PAGE))
    found = []
    for number, *said, category, said_at, tool, who, single, pinned, since, until in rows:
        fact = Fact(
            **dict(zip(("id", "tenant", "user", "scope", "subject", "slot", "value"), said, strict=True)),
            category=FactCategory(category),
            source=by_tool(tool, who),
            said_at=said_at,
            is_single=bool(single),
            is_pinned=bool(pinned),
            valid_from=since,
            valid_until=until,
        )
        found.append((number, fact))
    return found


def is_forgotten(ask: Ask, key: bytes, id: str) -> bool:
    """Whether an added fact of this id was forgotten."""
    return bool(ask("SELECT 1 FROM fact_forgotten WHERE mark = ?", (added_mark(key, id),)))


def equal_facts(ask: Ask, tenant: str, id: str, reach: Reach, has_same_value: bool = True) -> list[FactRow]:
    """All rows that state the same as a fact, or (`has_same_value` False) fill its slot; none: there is no fact."""
    asked = {"tenant": tenant, "id": id, "same_value": has_same_value}
    return [
        FactRow(number, public, user, scope, said_in, Statement(full, subject, slot, value, bool(single)), occurrence)
        for number, public, user, scope, said_in, subject, slot, value, single, full, occurrence in ask(
            SAME.format(owner=OWNER[reach]), asked
        )
    ]


def forget(transaction: Transaction, tenant: str, id: str, reach: Reach, key: bytes, now: float) -> int:
    """
    Remove a fact wherever it was stated, and keep messages from stating it again; how many rows went.

    Args:
        key: of the tenant.
        now: Unix seconds.
    """
    rows = equal_facts(transaction.read, tenant, id, reach)
    left: set[int] = set()
    for one in rows:
        if one.occurrence is None:
            left.add(added_mark(key, one.public))
        else:
            is_shared = reach is Reach.TENANT
            left.update(marks_left(key, one.conversation, one.user, one.scope, one.statement, is_shared))
    leave_marks(transaction, left, now)
    for number in {row[0] for row in transaction.read("SELECT id FROM tenant WHERE name = ?", (tenant,))}:
        erase_blocks_with(transaction, number, [one.number for one in rows], Erased())
    remove_facts(transaction, [one.number for one in rows])
    if rows:
        transaction.write("INSERT INTO erasure(at) VALUES (?)", [(now,)])  # every worker empties its caches
    return len(rows)


def tenants_of(ask: Ask, id: str) -> list[str]:
    sql = "SELECT DISTINCT tenant.name FROM fact JOIN tenant ON tenant.id = fact.tenant WHERE public = ? ORDER BY 1"
    return [row[0] for row in ask(sql, (id,))]


def pin(transaction: Transaction, tenant: str, id: str, reach: Reach, is_pinned: bool) -> bool:
    """
    Pin or unpin a fact; for a slot with one value, all its values. False: there is no such fact.

    Every row is marked, so that the pin survives the erasure of any one source.
    """
    rows = equal_facts(transaction.read, tenant, id, reach)
    if rows and rows[0].statement.is_single:
        rows = equal_facts(transaction.read, tenant, id, reach, has_same_value=False)
    transaction.write("UPDATE fact SET pinned = ? WHERE id = ?", [(is_pinned, one.number) for one in rows])
    return bool(rows)


def added_by(
    ask: Ask, tenant: int, user: str, scope: str, until: float, matching: str = "", with_retired: bool = True
) -> list[int]:
    """
    Rows of facts that tools were told. `user`, `scope` "": of all.

    Args:
        until: said no later, Unix seconds.
        matching: words that they contain, in any case.
    """
    found = [row[0] for row in ask(OF_TOOLS, (tenant, user, scope, until, with_retired))]
    if not matching:
        return found
    words = " ".join(matching.casefold().split())
    rows = ask(f"SELECT id, {', '.join(WORDS)} FROM fact WHERE {THESE}", (ids(found),))
    return [id for id, *said in rows if words in " ".join(" ".join(said).casefold().split())]


def erase_blocks_with(transaction: Transaction, tenant: int, rows: Sequence[int], erased: Erased) -> None:
    """Remove every block of the tenant that tells one of these facts (by row), wherever it was said."""
    erase_blocks(transaction, _blocks_telling(transaction.read, tenant, rows), erased)


def retire_blocks_with(transaction: Transaction, tenant: int, rows: Sequence[int], retirement: int) -> None:
    """Retire the blocks of a tenant that tell one of these facts, by row."""
    retire_blocks(transaction, _blocks_telling(transaction.read, tenant, rows), retirement)


def erase_added(
    transaction: Transaction, key: bytes, tenant: int, rows: Sequence[int], at: float, erased: Erased
) -> None:
    """Erase facts by row, and leave marks of told ones, so that no import brings them back."""
    erase_blocks_with(transaction, tenant, rows, erased)
    which = ids(rows)
    named = transaction.read(f"SELECT public FROM fact WHERE {THESE} AND occurrence IS NULL", (which,))
    leave_marks(transaction, (added_mark(key, id) for (id,) in named), at)
    erased.take("facts", transaction.read(f"SELECT {', '.join((*WORDS, *NAMES))} FROM fact WHERE {THESE}", (which,)))
    remove_facts(transaction, rows)


def retire_added(transaction: Transaction, rows: Sequence[int], retirement: int) -> None:
    move_facts(transaction, rows, "retirement = ?2", retirement)


def unretire_added(transaction: Transaction, retirement: int) -> None:
    rows = transaction.read("SELECT id FROM fact WHERE retirement = ? AND occurrence IS NULL", (retirement,))
    move_facts(transaction, (id for (id,) in rows), "retirement = 0")


def added_of_retirement(ask: Ask, retirement: int) -> list[Row]:
    """Tenant, its name, and row of each added fact that a retirement holds."""
    return ask(
        "SELECT tenant.id, tenant.name, fact.id FROM fact JOIN tenant ON tenant.id = fact.tenant"
        " WHERE retirement = ? AND occurrence IS NULL",
        (retirement,),
    )


def added_until(ask: Ask, cutoff_of: Callable[[str], float], limit: int) -> list[Row]:
    """Some added facts that are past their tenant's retention, as tenant, its name, and row."""
    found: list[Row] = []
    for tenant, name in ask(
        "SELECT id, name FROM tenant WHERE id IN (SELECT tenant FROM fact WHERE occurrence IS NULL)"
    ):
        if cutoff := cutoff_of(name):
            found += ((tenant, name, row) for row in added_by(ask, tenant, "", "", cutoff))
    return found[:limit]


def covered_facts(
    ask: Ask, tenant: int, key: bytes, marked: Container[int], until: Callable[[str, str], float]
) -> list[int]:
    """
    Rows of a tenant's facts that were forgotten or erased elsewhere.

    Args:
        marked: the marks that were left there.
        until: what was told of a user and project by then was erased there, Unix seconds.
    """
    found = []
    for row in ask(STATED, (tenant,)):
        number, public, user, scope, conversation, full, occurrence, said_at, subject, slot, value, single = row
        if occurrence is None:
            is_gone = added_mark(key, public) in marked or said_at <= until(user, scope)
        else:
            statement = Statement(full, subject, slot, value, bool(single))
            is_gone = any(mark in marked for mark in marks(key, conversation, user, scope, statement))
        if is_gone:
            found.append(number)
    return found


def _blocks_telling(ask: Ask, tenant: int, rows: Sequence[int]) -> list[int]:
    """The blocks, by occurrence, that tell any of these facts."""
    named = [row[0] for row in ask(f"SELECT public FROM fact WHERE {THESE}", (ids(rows),))] if rows else []
    if not named:
        return []
    return [row[0] for row in ask(TELLING, (tenant, orjson.dumps(named).decode()))]


def leave_marks(transaction: Transaction, left: Iterable[int], at: float) -> None:
    """Store marks of erased facts, so that what they stand for is never stored again."""
    transaction.write(FORBID, [(mark, at) for mark in left])
