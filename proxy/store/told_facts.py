"""
Facts as they are written: those that a tool is told, pins, and what becomes of facts that are forgotten or erased.

A told fact stands on its own and survives what is made again. It belongs to a user and a project, and goes with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from proxy.core.facts.marks import Statement, marks_left, told_mark
from proxy.domain import Reach, ToldFact
from proxy.store.connection import Ask, Row, Transaction
from proxy.store.erasure import Erased, put_zeros
from proxy.store.facts import OWNER
from proxy.store.messages import ids

KeyOf = Callable[[str], bytes]
"""The key of a tenant, by its name."""

THESE = "id IN (SELECT value FROM json_each(?))"
WORDS = ("subject", "slot", "value")
NAMES = ("user", "scope", "who")

STORE = """
INSERT INTO fact(tenant, public, user, scope, tool, who, subject, slot, value, category, single, confidence, said_at,
    valid_from, valid_until, pinned)
SELECT tenant.id, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1.0, ?, ?, ?, ? FROM tenant WHERE tenant.name = ?
"""
AGAIN = """
SELECT fact.id, public FROM fact JOIN tenant ON tenant.id = fact.tenant
WHERE occurrence IS NULL AND retirement = 0 AND tenant.name = ? AND user = ? AND scope = ? AND subject = ? AND slot = ?
    AND value = ? AND category = ? AND valid_from IS ? AND valid_until IS ? AND single = ? LIMIT 1
"""
# All that says the same for the same person, retired sources too; with `same_value` 0 whatever the slot holds.
SAME = """
WITH stated AS (
    SELECT fact.id, fact.tenant, fact.public, ifnull(conversation.user, fact.user) AS user,
        ifnull(conversation.scope, fact.scope) AS scope, ifnull(conversation.public, '') AS conversation,
        subject, slot, value, single, ifnull(occurrence.full, 0) AS full, fact.occurrence
    FROM fact LEFT JOIN conversation ON conversation.id = fact.conversation
    LEFT JOIN occurrence ON occurrence.id = fact.occurrence
    WHERE fact.tenant = (SELECT id FROM tenant WHERE name = :tenant)
), owned AS (SELECT *, {owner} AS owner FROM stated), named AS (SELECT * FROM owned WHERE public = :id)
SELECT DISTINCT owned.id, owned.public, owned.user, owned.scope, owned.conversation, owned.subject, owned.slot,
    owned.value, owned.single, owned.full, owned.occurrence
FROM named JOIN owned USING (user, scope, owner, subject, slot, single)
WHERE :same_value = 0 OR lower(owned.value) = lower(named.value)
"""
OF_TOOLS = """
SELECT fact.id FROM fact WHERE occurrence IS NULL AND tenant = ?1 AND (?2 = '' OR user = ?2) AND (?3 = '' OR scope = ?3)
    AND said_at <= ?4 AND (?5 OR retirement = 0) ORDER BY id
"""


@dataclass(frozen=True, slots=True)
class Same:
    """One row that states a fact: of a message (`occurrence`), or told (None)."""

    number: int
    public: str
    user: str
    scope: str
    conversation: str
    statement: Statement
    occurrence: int | None


def tell(transaction: Transaction, told: Sequence[ToldFact], key_of: KeyOf) -> list[str]:
    """
    Store facts that tools were told; the id of each, "" of one that was forgotten before.

    What is told again as it stands is the fact that is there, said now.
    """
    found = []
    for one in told:
        if is_forgotten(transaction.read, key_of(one.tenant), one.id):
            found.append("")
            continue
        stored = transaction.read(
            "SELECT fact.id FROM fact JOIN tenant ON tenant.id = fact.tenant WHERE tenant.name = ? AND public = ?",
            (one.tenant, one.id),
        )
        if stored:
            found.append(one.id)
            continue
        transaction.write("INSERT INTO tenant(name) VALUES (?) ON CONFLICT DO NOTHING", [(one.tenant,)])
        stated = (one.subject, one.slot, one.value, one.category.value)
        valid = (one.valid_from, one.valid_until)
        again = transaction.read(AGAIN, (one.tenant, one.user, one.scope, *stated, *valid, one.is_single))
        if again:
            ((number, public),) = again
            transaction.write(
                "UPDATE fact SET said_at = max(said_at, ?), tool = ?, who = ?, pinned = max(pinned, ?) WHERE id = ?",
                [(one.said_at, one.tool, one.who, one.is_pinned, number)],
            )
            found.append(public)
            continue
        row = (one.id, one.user, one.scope, one.tool, one.who, *stated, one.is_single, one.said_at, *valid)
        transaction.write(STORE, [(*row, one.is_pinned, one.tenant)])
        found.append(one.id)
    return found


def is_forgotten(ask: Ask, key: bytes, id: str) -> bool:
    """Whether a told fact of this id was forgotten."""
    return bool(ask("SELECT 1 FROM fact_forgotten WHERE mark = ?", (told_mark(key, id),)))


def same(ask: Ask, tenant: str, id: str, reach: Reach, has_same_value: bool = True) -> list[Same]:
    """
    All rows that state what the fact of this id states; none: there is no such fact.

    Args:
        has_same_value: False: all that its slot holds.
    """
    asked = {"tenant": tenant, "id": id, "same_value": has_same_value}
    return [
        Same(number, public, user, scope, said_in, Statement(full, subject, slot, value, bool(single)), occurrence)
        for number, public, user, scope, said_in, subject, slot, value, single, full, occurrence in ask(
            SAME.format(owner=OWNER[reach]), asked
        )
    ]


def forget(transaction: Transaction, tenant: str, id: str, reach: Reach, key: bytes, now: float) -> int:
    """
    Remove a fact wherever it was stated, and see to it that no message states it again; how many rows went.

    Args:
        key: of the tenant.
        now: Unix seconds.
    """
    rows = same(transaction.read, tenant, id, reach)
    left: set[int] = set()
    for one in rows:
        if one.occurrence is None:
            left.add(told_mark(key, one.public))
        else:
            is_shared = reach is Reach.TENANT
            left.update(marks_left(key, one.conversation, one.user, one.scope, one.statement, is_shared))
    _mark(transaction, left, now)
    _remove(transaction, [one.number for one in rows])
    if rows:
        transaction.write("INSERT INTO erasure(at) VALUES (?)", [(now,)])  # every worker empties its caches
    return len(rows)


def pin(transaction: Transaction, tenant: str, id: str, reach: Reach, is_pinned: bool) -> bool:
    """
    Pin a fact, or take the pin off: of a slot of one value whatever it holds. False: there is no such fact.

    A pin stands in every row, so that it outlives each single source.
    """
    rows = same(transaction.read, tenant, id, reach)
    if rows and rows[0].statement.is_single:
        rows = same(transaction.read, tenant, id, reach, has_same_value=False)
    transaction.write("UPDATE fact SET pinned = ? WHERE id = ?", [(is_pinned, one.number) for one in rows])
    return bool(rows)


def told_by(
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


def erase_told(transaction: Transaction, key: bytes, rows: Sequence[int], at: float, erased: Erased) -> None:
    """Take away facts by row, with marks of those that were told: an import does not bring them back."""
    which = ids(rows)
    named = transaction.read(f"SELECT public FROM fact WHERE {THESE} AND occurrence IS NULL", (which,))
    _mark(transaction, (told_mark(key, id) for (id,) in named), at)
    erased.take("facts", transaction.read(f"SELECT {', '.join((*WORDS, *NAMES))} FROM fact WHERE {THESE}", (which,)))
    _remove(transaction, rows)


def retire_told(transaction: Transaction, rows: Sequence[int], retirement: int) -> None:
    """Take told facts out of use; 0 brings them back."""
    transaction.write("UPDATE fact SET retirement = ? WHERE id = ?", [(retirement, row) for row in rows])


def told_of_retirement(ask: Ask, retirement: int) -> list[Row]:
    """Row and tenant's name of the told facts that a retirement holds."""
    return ask(
        "SELECT fact.id, tenant.name FROM fact JOIN tenant ON tenant.id = fact.tenant WHERE retirement = ?",
        (retirement,),
    )


def _mark(transaction: Transaction, left: Iterable[int], at: float) -> None:
    transaction.write(
        "INSERT INTO fact_forgotten(mark, at) VALUES (?, ?) ON CONFLICT DO UPDATE SET at = max(at, excluded.at)",
        [(mark, at) for mark in left],
    )


def _remove(transaction: Transaction, rows: Sequence[int]) -> None:
    """Remove rows; zeros first, so that no word of them stays on the disk."""
    put_zeros(transaction, "fact", (*WORDS, *NAMES), THESE, ids(rows))
    transaction.write("DELETE FROM fact WHERE id = ?", [(row,) for row in rows])
