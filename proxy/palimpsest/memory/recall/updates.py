"""The look-up of updates: each statement that will be quoted, asked once more with its own words."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from palimpsest.core.archive.chunking import query_terms
from palimpsest.core.recall.ranking import PROBABILITY, Bools, PassageTable, RankedRows, Rows
from palimpsest.core.recall.relevance import term_weight
from palimpsest.core.recall.updates import LEAST_ALIKE, later_statements, shared_share, statements
from palimpsest.memory.index.full_text import find_each
from palimpsest.store.engine import Ask
from palimpsest.store.search.passages import PassageTexts
from palimpsest.store.search.scope import Scope

UPDATE = "update"  # the signal of what was said later about the same thing: how much alike they are


def with_updates(
    ask: Ask, scope: Scope, texts: PassageTexts, table: PassageTable, best: RankedRows, eligible: Bools
) -> RankedRows:
    """A ranking with the newest later statement on the same thing inserted after each statement, equally probable."""
    said = {row: query_terms(text) for row, text in _texts(texts, table, statements(table, best)).items()}
    found = dict(zip(said, find_each(ask, scope, table, [*said.values()]), strict=True))
    weighed = {
        row: {term: term_weight(len(holding), len(table)) for term, holding in one.rows.items()}
        for row, one in found.items()
    }
    later = {row: later_statements(table, row, found[row].rows, weighed[row], eligible) for row in said}
    read = _texts(texts, table, np.concatenate([np.empty(0, np.int64), *(rows for rows, _ in later.values())]))
    updates: dict[int, tuple[int, float]] = {}
    rare = term_weight(1, len(table))
    for row, (rows, cosines) in later.items():
        alike = {
            one: float(cosine) + shared_share(said[row], query_terms(read[one]), weighed[row], rare)
            for one, cosine in zip(rows.tolist(), cosines, strict=True)
            if one in read
        }
        newest = max(((one, much) for one, much in alike.items() if much >= LEAST_ALIKE), default=None)
        if newest is not None:
            updates[row] = newest
    return _with_updates(best, updates) if updates else best


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


def _texts(texts: PassageTexts, table: PassageTable, rows: Rows) -> dict[int, str]:
    """The texts of rows, in their order; what was forgotten meanwhile is left out."""
    by_id = dict(zip(table.ids[rows].tolist(), rows.tolist(), strict=True))
    return {by_id[id]: text for id, _, _, _, text, *_ in texts.of([*by_id])}
