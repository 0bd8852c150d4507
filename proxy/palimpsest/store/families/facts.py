"""
Removing facts, and how those that messages state go with them.
"""

from __future__ import annotations

from collections.abc import Iterable

from palimpsest.store.engine import Ask, Transaction
from palimpsest.store.engine.keys import ids
from palimpsest.store.families.family import Erased, Family, put_zeros

WORDS = ("subject", "slot", "value")
NAMES = ("user_id", "scope", "who")
OF_MESSAGES = "occurrence IN (SELECT value FROM numbers(?1))"


def remove_facts(transaction: Transaction, rows: Iterable[int]) -> None:
    """Remove facts, by row."""
    remove_facts_where(transaction, "id IN (SELECT value FROM numbers(?))", ids(rows))


def remove_facts_where(transaction: Transaction, where: str, *args: object) -> None:
    """Remove facts; the condition is in SQL. Zeros first, so that no word of them stays on the disk."""
    put_zeros(transaction, "fact", (*WORDS, *NAMES), where, *args)
    transaction.write(f"DELETE FROM fact WHERE {where}", [args])


def _take(ask: Ask, which: str, erased: Erased) -> None:
    erased.take("facts", ask(f"SELECT {', '.join(WORDS)} FROM fact WHERE {OF_MESSAGES}", (which,)))


def _remove(transaction: Transaction, _tenant: int, which: str) -> None:
    remove_facts_where(transaction, OF_MESSAGES, which)


def _retire(transaction: Transaction, which: str, is_retired: bool) -> None:
    sql = "UPDATE fact SET retirement = ? WHERE occurrence IN (SELECT value FROM numbers(?))"
    transaction.write(sql, [(int(is_retired), which)])


FACTS = Family(words={"fact": (*NAMES, *WORDS)}, numbers=frozenset(), take=_take, remove=_remove, retire=_retire)
