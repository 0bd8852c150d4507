"""Items and edges as what recall goes by: which passages items were made of, and what may be seen of a graph."""

from __future__ import annotations

from collections.abc import Iterable

from palimpsest.domain.frozen import frozen
from palimpsest.store.engine import Ask, Row, ids
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
    """Counters that change whenever items, or what hides them, change."""
    return ask(STATE, (counter,))[0]


def keys_of(ask: Ask, scope: Scope) -> list[Row]:
    """Rows of item and passage: the items of a scope, with the passages that each was made of."""
    condition, args = scope.condition
    return ask(KEYS.format(condition=condition), (scope.tenant, *args))


@frozen
class KeptItem:
    """An item with what a model may be told of it: where it was said, rising, and when, Unix seconds."""

    id: int
    text: str
    said_at: float
    conversation: str
    occurrences: tuple[int, ...]


def kept_items(ask: Ask, items: Iterable[int]) -> dict[int, KeptItem]:
    """Those of these items that are in use, by id."""
    rows = ask(
        "SELECT item.id, item.text, item.said_at, conversation.public, item_source.occurrence"
        " FROM numbers(?) AS asked INNER JOIN item ON item.id = asked.value AND item.state = 'current'"
        " INNER JOIN conversation ON conversation.id = item.conversation"
        " INNER JOIN item_source ON item_source.item = item.id ORDER BY item.id, item_source.occurrence",
        (ids(items),),
    )
    found: dict[int, KeptItem] = {}
    for id, text, said_at, conversation, occurrence in rows:
        before = found[id].occurrences if id in found else ()
        found[id] = KeptItem(id, text, said_at, conversation, tuple(dict.fromkeys((*before, occurrence))))
    return found
