"""Relating: the long-term graph is brought into accord with the items that it follows from."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

from palimpsest.core.consolidation import relations
from palimpsest.core.consolidation.relations import Edge, names_of
from palimpsest.features.items.consolidation_batches import ASKED_ITEMS, Batches, Outcome
from palimpsest.features.items.model_consolidator import ModelConsolidator
from palimpsest.store.engine import Ask, Engine, Transaction
from palimpsest.store.knowledge import graph
from palimpsest.store.knowledge.consolidations import Action
from palimpsest.store.knowledge.items import Group, StoredItem, items_of, mark_related

RELATED_ITEMS = 64  # whose relations are written at a time: some 20 ms in which requests wait to be journalled


class Relater:
    """Takes relations from the items of one database."""

    def __init__(self, database: Engine, batches: Batches, judge: Callable[[], ModelConsolidator | None]) -> None:
        self._database = database
        self._batches = batches
        self._judge = judge

    async def relate(self, group: Group, outcome: Outcome, dry_run: bool) -> None:
        """Take relations from the items of a group, where one of them was not read yet."""
        items = await self._database.ask(partial(items_of, group=group))
        if all(item.related >= relations.VERSION for item in items):
            return
        people = await self._database.ask(partial(_people, tenant=group.tenant))
        kept_apart = {item for item, heir in await self._batches.undone(items) if not heir}
        stored = await self._database.ask(partial(graph.edges_of_items, items=[item.id for item in items]))
        found = await asyncio.to_thread(_relations, items, people)
        found = {item: edges for item, edges in found.items() if item not in kept_apart}
        unread = [item for item in items if item.related < relations.VERSION and item.id not in kept_apart]
        if not dry_run:
            named = people.union(*(relations.people_in(item.text) for item in items))
            for item, edges in (await self._by_model(unread, group.tenant_name, named)).items():
                found[item] = found.get(item, frozenset()) | edges
        # words get more common, so that they relate less; what a sentence or a model states stays
        stated = {item: frozenset(e for e in edges if e.relation != "related-to") for item, edges in stored.items()}
        whole = {item.id: found.get(item.id, frozenset()) | stated.get(item.id, frozenset()) for item in items}
        changed = [item for item, edges in whole.items() if edges != stored.get(item, frozenset())]
        if dry_run:
            outcome.done["related"] += len(changed)
            return
        for start in range(0, len(changed), RELATED_ITEMS):
            actions = [
                Action(item, 0, "related", f"{len(whole[item])} relations")
                for item in changed[start : start + RELATED_ITEMS]
            ]

            def work(transaction: Transaction, actions: Sequence[Action] = actions) -> None:
                done = self._batches.act(transaction, group, actions, outcome)
                graph.relate(transaction, group.tenant, {action.item: whole[action.item] for action in done})

            await self._batches.transact(work, group.tenant_name)
        if any(edges - whole[item] for item, edges in stored.items()):
            await self._batches.transact(partial(graph.forget_unused, tenant=group.tenant), group.tenant_name)
        new = [item.id for item in items if item.related < relations.VERSION]
        mark = partial(mark_related, items=new, version=relations.VERSION)
        await self._batches.transact(mark, group.tenant_name)

    async def _by_model(
        self, items: Sequence[StoredItem], tenant: str, people: frozenset[str]
    ) -> dict[int, frozenset[Edge]]:
        """The relations of items by a model, where the policy names one; without persons."""
        judge, found = self._judge(), dict[int, frozenset[Edge]]()
        if judge is None:
            return found
        parts = [items[start : start + ASKED_ITEMS] for start in range(0, len(items), ASKED_ITEMS)]
        asked = asyncio.gather(*(judge.relate(part, tenant) for part in parts))
        for related in await self._batches.run_beside(asked):
            for item, edges in related.items():
                found[item] = frozenset(
                    edge for edge in edges if not any(relations.is_hidden(node, people) for node in edge.nodes)
                )
        return found


def _people(ask: Ask, tenant: int) -> frozenset[str]:
    """Words that name a tenant's users, or anybody who speaks."""
    named = (*graph.users_of(ask, tenant), *graph.speakers_of(ask, tenant))
    return frozenset(part for name in named for part in names_of(name))


def _relations(items: Sequence[StoredItem], people: frozenset[str]) -> dict[int, frozenset[Edge]]:
    """The relations of a group's items, by rules."""
    frequencies = Counter(word for item in items for word in relations.words(item.text))
    named = people.union(*(relations.people_in(item.text) for item in items))
    things = frozenset().union(*(relations.things_in(item.text) for item in items)) - named
    return {
        item.id: frozenset(relations.relations(item.text, named, frequencies, len(items), things)) for item in items
    }
