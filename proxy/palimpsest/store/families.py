"""
The families of tables, in the order in which they follow from each other, and what is done with all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from palimpsest.store.blocks import BLOCKS
from palimpsest.store.engine import Transaction
from palimpsest.store.fact_erasure import FACTS
from palimpsest.store.family import Family
from palimpsest.store.item_erasure import ITEMS
from palimpsest.store.messages import contents_of, forget_unused, ids
from palimpsest.store.passage_rows import PASSAGES

FAMILIES: tuple[Family, ...] = (ITEMS, PASSAGES, FACTS, BLOCKS)


def remove_derived(transaction: Transaction, tenant: int, which: str) -> None:
    """Remove all that follows from these occurrences (a JSON list) of a tenant."""
    for family in FAMILIES:
        family.remove(transaction, tenant, which)


def forget_occurrences(transaction: Transaction, tenant: int, occurrences: Sequence[int]) -> None:
    """Remove messages from where they stand, with all that was derived; their content where nothing else holds it."""
    if not occurrences:
        return
    which = ids(occurrences)
    remove_derived(transaction, tenant, which)
    contents = contents_of(transaction, which)
    transaction.write("DELETE FROM occurrence WHERE id IN (SELECT value FROM numbers(?))", [(which,)])
    forget_unused(transaction, contents)
