"""
Facts as rows: how they are moved and removed, and how those that messages state go with them.

Of what is said about one thing, `place`, the newest stands, and the others are marked as superseded. The mark is set
only where a newer statement holds at any time, and never on what has times of its own: what is not marked is judged by
who reads it. Whoever writes facts calls `settle`, or a function here that does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from palimpsest.store.engine import Ask, Row, Transaction, ids
from palimpsest.store.families.family import OF_MESSAGES, Erased, Family, put_zeros

WORDS = ("subject", "slot", "value")
NAMES = ("user_id", "scope", "who")
THESE = "id IN (SELECT value FROM numbers(?1))"

NEWER = """
(retirement = 0 AND valid_from IS NULL AND valid_until IS NULL AND EXISTS (
    SELECT 1 FROM fact AS newer WHERE newer.tenant = fact.tenant AND newer.user_id = fact.user_id
        AND newer.scope = fact.scope AND newer.place = fact.place AND newer.retirement = 0
        AND newer.valid_from IS NULL AND newer.valid_until IS NULL
        AND newer.said_at >= fact.said_at AND (newer.said_at, newer.id) > (fact.said_at, fact.id)))
"""
"""Whether a newer statement stands in the place of a fact."""

MARK = f"UPDATE fact SET superseded = CASE WHEN {NEWER} THEN 1 ELSE 0 END WHERE {THESE}"
ANY_TIME = "retirement = 0 AND valid_from IS NULL AND valid_until IS NULL"
PLACES = f"""
SELECT tenant, user_id, scope, place, count(*) FROM fact WHERE {{where}} AND {ANY_TIME}
GROUP BY tenant, user_id, scope, place
"""
NEWEST = f"""
SELECT id FROM fact WHERE tenant = ?1 AND user_id = ?2 AND scope = ?3 AND place = ?4 AND {ANY_TIME}
ORDER BY said_at DESC, id DESC
"""
RAISE = f"UPDATE fact SET superseded = 0 WHERE superseded = 1 AND id = ({NEWEST} LIMIT 1)"
COVER = f"UPDATE fact SET superseded = 1 WHERE superseded = 0 AND id IN ({NEWEST} LIMIT ?5 OFFSET 1)"


def settle(transaction: Transaction, facts: str, left: Sequence[Row] = ()) -> None:
    """
    Mark facts as superseded or current, after some of the same places were written.

    Args:
        facts: their rows, as a JSON list.
        left: places in which a fact stood and may not stand any more, as `PLACES` reads them.
    """
    transaction.write(MARK, [(facts,)])
    transaction.write(RAISE, [place[:4] for place in left])
    transaction.write(COVER, transaction.read(PLACES.format(where=THESE), (facts,)))


def move_facts(transaction: Transaction, rows: Iterable[int], change: str, *args: object) -> None:
    """
    Change columns of facts that decide where they stand, and settle those places.

    Args:
        change: what an UPDATE sets, with arguments from ?2 on.
    """
    facts = ids(rows)
    left = transaction.read(PLACES.format(where=THESE), (facts,))
    transaction.write(f"UPDATE fact SET {change} WHERE {THESE}", [(facts, *args)])
    settle(transaction, facts, left)


def remove_facts(transaction: Transaction, rows: Iterable[int]) -> None:
    remove_facts_where(transaction, THESE, ids(rows))


def remove_facts_where(transaction: Transaction, where: str, *args: object) -> None:
    """Remove facts; the condition is in SQL. Zeros first, so that no word of them stays on the disk."""
    left = transaction.read(PLACES.format(where=where), args)
    put_zeros(transaction, "fact", (*WORDS, *NAMES), where, *args)
    transaction.write(f"DELETE FROM fact WHERE {where}", [args])
    transaction.write(RAISE, [place[:4] for place in left])


def _collect_texts(ask: Ask, which: str, erased: Erased) -> None:
    erased.take("facts", ask(f"SELECT {', '.join(WORDS)} FROM fact WHERE {OF_MESSAGES}", (which,)))


def _remove(transaction: Transaction, _tenant: int, which: str) -> None:
    remove_facts_where(transaction, OF_MESSAGES, which)


def _retire(transaction: Transaction, which: str, is_retired: bool) -> None:
    rows = transaction.read(f"SELECT id FROM fact WHERE {OF_MESSAGES}", (which,))
    move_facts(transaction, (id for (id,) in rows), "retirement = ?2", int(is_retired))


FACTS = Family(
    words={"fact": (*NAMES, *WORDS)}, numbers=frozenset(), take=_collect_texts, remove=_remove, retire=_retire
)
