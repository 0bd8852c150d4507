"""The families of tables, in the order in which they follow from each other, and what is done with all of them."""

from __future__ import annotations

from palimpsest.store.engine import Transaction
from palimpsest.store.families.blocks import BLOCKS
from palimpsest.store.families.facts import FACTS
from palimpsest.store.families.family import Family
from palimpsest.store.families.items import ITEMS
from palimpsest.store.families.passages import PASSAGES

FAMILIES: tuple[Family, ...] = (ITEMS, PASSAGES, FACTS, BLOCKS)


def remove_derived(transaction: Transaction, tenant: int, which: str) -> None:
    """Remove all that follows from these occurrences (a JSON list) of a tenant."""
    for family in FAMILIES:
        family.remove(transaction, tenant, which)
