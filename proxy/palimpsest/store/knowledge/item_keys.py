"""
Items and edges as what recall goes by: which passages items were made of, and what may be seen of a graph.
"""

from __future__ import annotations

from palimpsest.store.engine import Ask, Row
from palimpsest.store.knowledge.items import HIDDEN
from palimpsest.store.search.scope import Scope

# What an item stands for leads to its passages too: it says the same.
KEYS = f"""
SELECT item.id, memory.id FROM item INNER JOIN item_source ON item_source.item = item.id
INNER JOIN memory ON memory.occurrence = item_source.occurrence
    AND memory.start < item_source.stop AND memory.stop > item_source.start
WHERE item.tenant = ? AND item.state IN ('current', 'merged') AND NOT {HIDDEN.format(item="item.id")} AND {{condition}}
ORDER BY item.id, memory.id
"""
STATE = """
SELECT coalesce((SELECT number FROM change WHERE name = ?), 0), (SELECT count(*) FROM retired),
    (SELECT coalesce(max(id), 0) FROM erasure)
"""


def item_state(ask: Ask, counter: str) -> Row:
    """What changes whenever items, or what hides them, change."""
    return ask(STATE, (counter,))[0]


def keys_of(ask: Ask, scope: Scope) -> list[Row]:
    """Rows of item and passage: the items of a scope, with the passages that each was made of."""
    condition, args = scope.condition
    return ask(KEYS.format(condition=condition), (scope.tenant, *args))
