"""
Removing items, and what follows from them: their sources, vectors, log and the edges that have no other evidence.

An item goes with the first of its sources; what it stood
for (older repeats, an older value) is in use again.
"""

from __future__ import annotations

import orjson

from palimpsest.store.engine import Ask, Row, Transaction
from palimpsest.store.families.family import Erased, Family, put_zeros
from palimpsest.store.operation import changes

GONE = "(SELECT value FROM numbers(?1))"
STEPS = f"item IN {GONE} OR heir IN {GONE}"

# Edges with no evidence but these items, and nodes that no other edge touches.
EDGES = f"""
SELECT DISTINCT edge FROM edge_evidence AS mine WHERE item IN {GONE}
    AND NOT EXISTS (SELECT 1 FROM edge_evidence WHERE edge = mine.edge AND item NOT IN {GONE})
"""
NODES = f"""
SELECT DISTINCT node.id FROM edge AS mine JOIN node ON node.id IN (mine.source, mine.target)
WHERE mine.id IN {GONE}
    AND NOT EXISTS (SELECT 1 FROM edge WHERE source = node.id AND id NOT IN {GONE})
    AND NOT EXISTS (SELECT 1 FROM edge WHERE target = node.id AND id NOT IN {GONE})
"""


def _words_that_go(ask: Ask, items: str) -> list[Row]:
    """Rows of the texts that are removed with these items (a JSON list)."""
    return [
        *ask(f"SELECT text, question, topic FROM item WHERE id IN {GONE}", (items,)),
        *ask(f"SELECT why FROM consolidation_step WHERE {STEPS}", (items,)),
        *ask(f"SELECT name FROM node WHERE id IN {GONE}", (_nodes(ask, _edges(ask, items)),)),
    ]


def forget_items(transaction: Transaction, items: str) -> None:
    """Remove these items (a JSON list) with all that follows from them alone."""
    if items == "[]":
        return
    changes.count(transaction, changes.ITEMS)
    write = transaction.write
    edges = _edges(transaction.read, items)
    nodes = _nodes(transaction.read, edges)
    for table, columns, where, listed in (
        ("item", ("text", "question", "topic"), f"id IN {GONE}", items),
        ("consolidation_step", ("why",), STEPS, items),
        ("node", ("name",), f"id IN {GONE}", nodes),
    ):
        put_zeros(transaction, table, columns, where, listed)
    write(f"UPDATE item SET state = 'current', heir = 0, judged = 0 WHERE heir IN {GONE}", [(items,)])
    write(f"DELETE FROM edge_evidence WHERE item IN {GONE}", [(items,)])
    write(f"DELETE FROM edge WHERE id IN {GONE}", [(edges,)])
    write(f"DELETE FROM node WHERE id IN {GONE}", [(nodes,)])
    write(f"DELETE FROM consolidation_step WHERE {STEPS}", [(items,)])
    write(
        f"DELETE FROM consolidation WHERE tenant IN (SELECT tenant FROM item WHERE id IN {GONE})"
        " AND NOT EXISTS (SELECT 1 FROM consolidation_step WHERE run = consolidation.id)",
        [(items,)],
    )
    for table in ("item_source", "item_vector"):
        write(f"DELETE FROM {table} WHERE item IN {GONE}", [(items,)])
    write(f"DELETE FROM item WHERE id IN {GONE}", [(items,)])


def _edges(ask: Ask, items: str) -> str:
    return _listed(ask, EDGES, items)


def _nodes(ask: Ask, edges: str) -> str:
    return _listed(ask, NODES, edges)


def _listed(ask: Ask, sql: str, of: str) -> str:
    """The first column of a query about a JSON list, as a JSON list."""
    return orjson.dumps([row[0] for row in ask(sql, (of,))]).decode()


def _items_from(ask: Ask, occurrences: str) -> str:
    """Items that have one of these occurrences as a source, both as JSON lists."""
    return _listed(ask, f"SELECT DISTINCT item FROM item_source WHERE occurrence IN {GONE}", occurrences)


def _collect_texts(ask: Ask, which: str, erased: Erased) -> None:
    items = _items_from(ask, which)
    if items != "[]":
        erased.counts["items"] += len(orjson.loads(items))
        erased.texts += [text for row in _words_that_go(ask, items) for text in row]


def _remove(transaction: Transaction, _tenant: int, which: str) -> None:
    forget_items(transaction, _items_from(transaction.read, which))


def _remove_conversation(transaction: Transaction, conversation: int, _erased: Erased) -> None:
    transaction.write("DELETE FROM item_progress WHERE conversation = ?", [(conversation,)])


ITEMS = Family(
    words={
        "item": ("text", "question", "topic"),
        "node": ("name",),
        "consolidation_step": ("why",),  # the slot whose value was superseded
    },
    numbers=frozenset({"item_vector", "edge", "edge_evidence"}),
    take=_collect_texts,
    remove=_remove,
    remove_conversation=_remove_conversation,
)
