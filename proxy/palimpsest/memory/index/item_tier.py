"""
Items and knowledge as a tier of their own: what a model may be told besides passages, where the policy wants it.

LightMem-SLM (sections 3.3 and 3.4) shares a fixed number of results between mid-term memory, here items, and long-term
memory, here what the graph states about what the question names. A model is told each with the messages that it is
from, so that it goes with them, and nothing that one of the others in the tenant said.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from palimpsest.core.archive.chunking import terms
from palimpsest.core.consolidation.relations import Edge
from palimpsest.core.consolidation.strength import LEAST_STRENGTH, Evidence, strength
from palimpsest.core.recall.keys import ItemVectors, split_by_score
from palimpsest.core.recall.ranking import Bools, Floats, PassageTable
from palimpsest.domain import Candidate, Memory
from palimpsest.store.engine import Ask
from palimpsest.store.knowledge.graph import edges_of_items
from palimpsest.store.knowledge.item_keys import KeptItem, kept_items

TIER_RESULTS = 6  # of items and knowledge together: they stand beside passages, which hold what was said
LEAST_COSINE = 0.4  # of an item; CALMem's floor for chunks
WORDED = {"is-a": "is a kind of", "has-property": "has", "implies": "implies", "related-to": "goes with"}


def tier(
    ask: Ask,
    items: ItemVectors,
    table: PassageTable,
    eligible: Bools,
    question: Sequence[str],
    vector: Floats,
    now: float,
) -> list[Candidate]:
    """
    The items nearest to a question, and what is known of what it names, the best first; each as probable as the best.

    Args:
        items: of the scope.
        eligible: (n,), which passages of the table may come; an item comes only where all that it is from may.
        question: its terms.
        vector: of the question, (d,).
        now: Unix seconds; knowledge fades.
    """
    if not len(items.ids):
        return []
    rows = np.searchsorted(table.ids, items.memories).clip(max=max(len(table) - 1, 0))
    barred = ~(eligible[rows] & (table.ids[rows] == items.memories))
    may_come = np.ones(len(items.ids), np.bool_)
    may_come[items.at[barred]] = False
    kept = kept_items(ask, items.ids[may_come].tolist())
    may_come &= np.isin(items.ids, [*kept])  # not what was merged into another item
    cosines = np.where(may_come, items.vectors @ vector, -1.0)
    near = [int(at) for at in np.argsort(-cosines, kind="stable")[:TIER_RESULTS] if cosines[at] >= LEAST_COSINE]
    known = _graph_statements(edges_of_items(ask, kept), kept, frozenset(question), now)
    mid, long = split_by_score(TIER_RESULTS, [float(cosines[at]) for at in near], [score for score, _, _ in known])
    told = [(float(cosines[at]), kept[int(items.ids[at])].text, [kept[int(items.ids[at])]]) for at in near[:mid]]
    return [_candidate(score, text, sources) for score, text, sources in (*told, *known[:long])]


def _graph_statements(
    edges: Mapping[int, frozenset[Edge]], kept: Mapping[int, KeptItem], question: frozenset[str], now: float
) -> list[tuple[float, str, list[KeptItem]]]:
    """What the graph states about the nodes that a question names whole: score, words, and the items that say so."""
    saying: defaultdict[Edge, list[KeptItem]] = defaultdict(list)
    for item, some in edges.items():
        for edge in some:
            saying[edge].append(kept[item])
    found = []
    for edge, sources in saying.items():
        anchors = [named for node in edge.nodes if (named := set(terms(node.name))) and named <= question]
        force = strength([Evidence("", 0, one.said_at) for one in sources], now)
        if anchors and force >= LEAST_STRENGTH[edge.relation]:
            score = min(force, 1.0) * max(map(len, anchors)) / len(question)
            found.append((score, f"{edge.source.name} {WORDED[edge.relation]} {edge.target.name}", sources))
    return sorted(found, key=lambda one: (-one[0], one[1]))


def _candidate(score: float, text: str, sources: Sequence[KeptItem]) -> Candidate:
    """An item as a candidate of recall, dated and placed by its newest source."""
    newest = max(sources, key=lambda one: one.said_at)
    occurrences = tuple(sorted({at for one in sources for at in one.occurrences}))
    memory = Memory(
        id=-newest.id,
        occurrence=newest.occurrences[-1],
        conversation=newest.conversation,
        position=newest.occurrences[-1],
        role="noted",
        text=text,
        created_at=newest.said_at,
        stop=len(text),
        also=occurrences,
    )
    return Candidate(memory, score, {"tier": (1, score)})
