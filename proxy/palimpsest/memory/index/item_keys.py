"""
Keys of items in memory: vectors and passages of the items of a scope, and the relations that its user may see.

They are read when a scope is asked about, and again when items have changed.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np

from palimpsest.core.archive.chunking import terms
from palimpsest.core.consolidation.strength import Viewer, visible
from palimpsest.core.recall.keys import ItemVectors, by_items, by_relations, related_terms
from palimpsest.core.recall.ranking import Bools, Floats, PassageTable, Rows
from palimpsest.domain import Candidate, Reach, frozen
from palimpsest.memory.index.full_text import find
from palimpsest.store.engine import Ask, Row
from palimpsest.store.knowledge.graph import edges_of_tenant
from palimpsest.store.knowledge.item_keys import item_state, keys_of
from palimpsest.store.knowledge.items import vectors_of_items
from palimpsest.store.operation.changes import ITEMS
from palimpsest.store.search.scope import Scope

KEPT_SCOPES = 16  # those asked about last; of 10,000 items each some 15 MB

Which = Literal["off", "items", "graph", "both", "tier"]


@frozen
class Keys:
    """What leads to the passages of a scope; `relations` by word."""

    state: Row
    items: ItemVectors
    relations: Mapping[str, Mapping[str, float]]


class ItemKeys:
    """
    Keys by scope. Threads may ask at once.

    Args:
        model: name of the model whose vectors count.
        dimensions: of its vectors.
        which: what recall goes by, as the policy in force has it, and whether users see what others spoke of.
    """

    def __init__(self, model: str, dimensions: int, which: Callable[[], tuple[Which, bool]]) -> None:
        self._model = model
        self._dimensions = dimensions
        self._which = which
        self._choosing = threading.Lock()
        self._kept: OrderedDict[tuple[Scope, str, bool], Keys] = OrderedDict()
        self._used: set[int] = set()

    def __repr__(self) -> str:
        return f"<ItemKeys [{len(self._kept)} scopes]>"

    def forget(self) -> None:
        """Drop the words that are kept."""
        with self._choosing:
            self._kept.clear()

    def take_used(self) -> set[int]:
        """Items that led to what was recalled since this was asked last."""
        with self._choosing:
            used, self._used = self._used, set()
        return used

    def note(self, boosted_by: Rows, rows: Rows) -> None:
        """
        Note which items led to what was recalled.

        Args:
            boosted_by: as `boost` returns it.
            rows: of the passages that were recalled.
        """
        with self._choosing:
            self._used.update(item for item in boosted_by[rows].tolist() if item)

    def boost(
        self,
        ask: Ask,
        scope: Scope,
        table: PassageTable,
        question: Sequence[str],
        vector: Floats,
        cosines: Floats,
        now: float,
    ) -> tuple[Floats, Rows] | None:
        """
        How much nearer keys make each of n passages, (n,) in cosine, and by which item, (n,). None: none is nearer.

        Args:
            question: its terms.
            vector: of the question, (d,).
            cosines: of the passages to it, (n,).
            now: Unix seconds; relations fade.
        """
        which, is_shared = self._which()
        if which in ("off", "tier"):
            return None
        keys = self._keys(ask, scope, which, is_shared, now)
        boost, items = np.zeros(len(table)), np.zeros(len(table), np.int64)
        if len(keys.items.ids):
            found = by_items(keys.items, vector, cosines, table.ids)
            boost, items = boost + found.cosines, found.items
        if keys.relations:
            strengths = related_terms(question, keys.relations)
            boost = boost + by_relations(find(ask, scope, table, [*strengths]).rows, strengths, len(table))
        return (boost, items) if boost.any() else None

    def tier(
        self,
        ask: Ask,
        scope: Scope,
        table: PassageTable,
        eligible: Bools,
        question: Sequence[str],
        vector: Floats,
        now: float,
    ) -> list[Candidate]:
        """Items and knowledge to be told besides passages; see `item_tier.tier`. None where the policy does not."""
        which, is_shared = self._which()
        if which != "tier":
            return []
        from palimpsest.memory.index.item_tier import tier  # few policies want it

        found = tier(ask, self._keys(ask, scope, which, is_shared, now).items, table, eligible, question, vector, now)
        with self._choosing:
            self._used.update(-one.memory.id for one in found)
        return found

    def _keys(self, ask: Ask, scope: Scope, which: Which, is_shared: bool, now: float) -> Keys:
        """The items and relations of a scope, read again only when the items changed."""
        name, state = (scope, which, is_shared), item_state(ask, ITEMS)
        with self._choosing:
            kept = self._kept.get(name)
            if kept is not None and kept.state == state:
                self._kept.move_to_end(name)
                return kept
        items = self._items(ask, scope) if which != "graph" else _NO_ITEMS
        relations = self._relations(ask, scope, is_shared, now) if which not in ("items", "tier") else {}
        read = Keys(state, items, relations)
        with self._choosing:
            self._kept[name] = read
            while len(self._kept) > KEPT_SCOPES:
                self._kept.popitem(last=False)
        return read

    def _items(self, ask: Ask, scope: Scope) -> ItemVectors:
        """The vectors of a scope's items, with the passages that each leads to."""
        pairs = keys_of(ask, scope)
        vectors = vectors_of_items(ask, dict.fromkeys(item for item, _ in pairs), self._model)
        place = {item: at for at, item in enumerate(vectors)}
        led = [(place[item], memory) for item, memory in pairs if item in place]
        return ItemVectors(
            np.fromiter(vectors, np.int64, len(vectors)),
            np.array([*vectors.values()], np.float32).reshape(len(vectors), self._dimensions),
            np.array([at for at, _ in led], np.int64),
            np.array([memory for _, memory in led], np.int64),
        )

    def _relations(self, ask: Ask, scope: Scope, is_shared: bool, now: float) -> Mapping[str, Mapping[str, float]]:
        """Related terms by the terms of each name, both ways, with strengths."""
        viewer = None if scope.reach is Reach.TENANT else Viewer(scope.user, scope.conversation)
        found: defaultdict[str, dict[str, float]] = defaultdict(dict)
        for stored in edges_of_tenant(ask, scope.tenant):
            edge = stored.edge
            if strength := visible(edge.relation, stored.evidence, viewer, is_shared, now):
                ends = terms(edge.source.name), terms(edge.target.name)
                for one, others in (ends, ends[::-1]):
                    for term in one:
                        for other in others:
                            found[term][other] = max(strength, found[term].get(other, 0.0))
        return dict(found)


_NO_ITEMS = ItemVectors(
    np.empty(0, np.int64), np.empty((0, 0), np.float32), np.empty(0, np.int64), np.empty(0, np.int64)
)
