"""The look-up of updates: each statement that will be quoted, asked once more with its own words."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from palimpsest.core.archive.chunking import query_terms
from palimpsest.core.recall.ranking import PROBABILITY, Bools, PassageTable, RankedRows, Rows
from palimpsest.core.recall.relevance import term_weight
from palimpsest.core.recall.updates import LEAST_ALIKE, later_statements, shared_share, statements
from palimpsest.memory.index.full_text import find
from palimpsest.store.engine import Ask
from palimpsest.store.search.passages import texts_of
from palimpsest.store.search.scope import Scope

UPDATE = "update"  # the signal of what was said later about the same thing: how much alike they are


def with_updates(
    ask: Ask, scope: Scope, tenant: str, table: PassageTable, best: RankedRows, eligible: Bools
) -> RankedRows:
    """A ranking with the newest later statement on the same thing inserted after each statement, equally probable."""
    rows = statements(table, best)
    texts = _texts(ask, tenant, table, rows)
    updates: dict[int, tuple[int, float]] = {}
    for row in rows.tolist():
        if (text := texts.get(row)) and (update := _update(ask, scope, tenant, table, row, text, eligible)):
            updates[row] = update
    return _with_updates(best, updates) if updates else best


def _update(
    ask: Ask, scope: Scope, tenant: str, table: PassageTable, row: int, text: str, eligible: Bools
) -> tuple[int, float] | None:
    """The newest of the later statements that are alike enough, and how much; None: there is none."""
    terms = query_terms(text)
    found = find(ask, scope, table, terms).rows
    weights = {term: term_weight(len(holding), len(table)) for term, holding in found.items()}
    rows, cosines = later_statements(table, row, found, weights, eligible)
    texts = _texts(ask, tenant, table, rows)
    rare = term_weight(1, len(table))
    alike = {
        one: float(cosine) + shared_share(terms, query_terms(texts[one]), weights, rare)
        for one, cosine in zip(rows.tolist(), cosines, strict=True)
        if one in texts
    }
    return max(((one, much) for one, much in alike.items() if much >= LEAST_ALIKE), default=None)


def _with_updates(best: RankedRows, updates: Mapping[int, tuple[int, float]]) -> RankedRows:
    """The ranking with each update behind its statement; where it was ranked itself, it keeps its signals."""
    place = {row: at for at, row in enumerate(best.rows.tolist())}
    order: list[tuple[int, int, float]] = []  # the row, the place of its signals, how much it is an update
    for row in best.rows.tolist():
        order.append((row, place[row], 0.0))
        if row in updates:
            update, much = updates[row]
            order.append((update, place.get(update, -1), much))
    first: dict[int, tuple[int, float]] = {}
    probable = dict(zip(best.rows.tolist(), best.signals[PROBABILITY].tolist(), strict=True))
    for statement, (update, _) in updates.items():
        probable[update] = max(probable.get(update, 0.0), probable[statement])
    for row, at, much in order:
        first.setdefault(row, (at, much))
    rows = np.array([*first], np.int64)
    known = np.array([at for at, _ in first.values()])
    signals = {name: np.where(known >= 0, values[known], 0.0) for name, values in best.signals.items()}
    signals[PROBABILITY] = np.array([probable[row] for row in first])
    signals[UPDATE] = np.array([much for _, much in first.values()])
    return RankedRows(rows, np.where(known >= 0, best.scores[known], 0.0), signals)


def _texts(ask: Ask, tenant: str, table: PassageTable, rows: Rows) -> dict[int, str]:
    """The texts of rows; what was forgotten meanwhile is left out."""
    by_id = dict(zip(table.ids[rows].tolist(), rows.tolist(), strict=True))
    return {by_id[id]: text for id, _, _, _, text, *_ in texts_of(ask, tenant, [*by_id])}
