"""
Counters of changes that every process must learn of: one for each kind, which rises with every change.

A change and its counter are written in one transaction. Who follows reads all counters at once, some 0.1 ms.
"""

from __future__ import annotations

from collections.abc import Mapping

from palimpsest.store.engine import Ask, Transaction

ERASURES = "erasures"
KEYS = "keys"
SWITCHES = "switches"
POLICY = "policy"
ITEMS = "items"  # of mid-term memory, or the relations between them

COUNTERS = f"""
SELECT name, number FROM change
UNION ALL SELECT '{ERASURES}', coalesce(max(id), 0) FROM erasure
UNION ALL SELECT '{POLICY}', coalesce(max(generation), 0) FROM policy
"""
COUNT = "INSERT INTO change(name, number) VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET number = change.number + 1"


def counters(ask: Ask) -> Mapping[str, int]:
    """The counters by name; one that never rose is missing."""
    return dict(ask(COUNTERS))


def count(transaction: Transaction, name: str) -> None:
    """Say that something of this kind changes in this transaction. Erasures and policies count themselves."""
    transaction.write(COUNT, [(name,)])
