"""The look-up of related statements: each one that will be quoted, asked once more with its own words and names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from palimpsest.core.archive.chunking import query_terms, word_terms
from palimpsest.core.recall.known_things import TOLD, is_about, known_things, told_of
from palimpsest.core.recall.ranking import PROBABILITY, Bools, PassageTable, QueryMatches, RankedRows, Rows
from palimpsest.core.recall.relevance import term_weight
from palimpsest.core.recall.updates import (
    LEAST_ALIKE,
    MOST_NAMED,
    NAMESAKES,
    all_names,
    has_name,
    later_statements,
    likeness,
    namesakes,
    nearest_first,
    next_statement,
    statements,
    union,
)
from palimpsest.core.recall.utterance import language
from palimpsest.memory.index.full_text import find, find_each
from palimpsest.store.engine import Ask
from palimpsest.store.search.passages import PassageTexts
from palimpsest.store.search.scope import Scope

UPDATE = "update"  # the signal of what was said later about the same thing: how much alike they are


def with_related(
    ask: Ask,
    scope: Scope,
    texts: PassageTexts,
    table: PassageTable,
    best: RankedRows,
    eligible: Bools,
    asked: QueryMatches,
) -> RankedRows:
    """
    A ranking with what was said of the same thing inserted behind each statement, equally probable: its newest update,
    and the statements that share a rare name with it; and behind all what the user said next.
    """
    stated = texts_of(texts, table, statements(table, best))
    said = {row: query_terms(text) for row, text in stated.items()}
    found = dict(zip(said, find_each(ask, scope, table, [*said.values()]), strict=True))
    weighed = {
        row: {term: term_weight(len(holding), len(table)) for term, holding in one.rows.items()}
        for row, one in found.items()
    }
    later = {row: later_statements(table, row, found[row].rows, weighed[row], eligible) for row in said}
    named = {row: _names_not_asked_for(text, asked) for row, text in stated.items()}
    others = {row: namesakes(table, row, found[row].rows, named[row], eligible, asked) for row in said}
    read = texts_of(texts, table, union([*(rows for rows, _ in later.values()), *others.values()]))
    behind: dict[int, list[tuple[int, float]]] = {}
    rare = term_weight(1, len(table))
    for row in said:
        alike = {
            one: float(cosine) + likeness(said[row], query_terms(read[one]), weighed[row], rare)
            for one, cosine in zip(*later[row], strict=True)
            if one in read
        }
        newest = max(((one, much) for one, much in alike.items() if much >= LEAST_ALIKE), default=None)
        named_too = [one for one in others[row].tolist() if one in read and has_name(read[one], named[row])]
        behind[row] = [*([newest] if newest else []), *((one, 0.0) for one in named_too[:NAMESAKES])]
    at_end = {row: next_statement(table, row, eligible, asked) for row in said}
    return _with_updates(best, behind, at_end) if any((*behind.values(), *at_end.values())) else best


def told_of_known_things(
    ask: Ask, scope: Scope, texts: PassageTexts, table: PassageTable, eligible: Bools, asked: QueryMatches
) -> Rows:
    """The user's statements about what a request speaks of as known, the nearest to the request first."""
    things = known_things(asked.text)
    unasked = {term for thing in things for terms in thing.terms.values() for term in terms} - {*asked.found}
    found = {**asked.found, **find(ask, scope, table, [*unasked.difference(asked.absent)]).rows}
    told = [told_of(table, thing, found, eligible, asked) for thing in things]
    read = texts_of(texts, table, union(told))
    weights = {term: term_weight(len(rows), len(table)) for term, rows in found.items()}
    rare = {term for term, rows in found.items() if len(rows) <= MOST_NAMED}
    about = {
        row
        for thing, rows in zip(things, told, strict=True)
        for row in rows.tolist()
        if row in read and is_about(read[row], thing, weights, rare)
    }
    return nearest_first(np.array(sorted(about), np.int64), asked)[:TOLD]


def _names_not_asked_for(text: str, asked: QueryMatches) -> dict[str, set[str]]:
    """The names of a statement that the question does not have itself, each with its terms."""
    code = language(text)
    return {name: {*word_terms(name, code)} - {*asked.found} for name in all_names(text)}


def _with_updates(
    best: RankedRows, updates: Mapping[int, Sequence[tuple[int, float]]], at_end: Mapping[int, Sequence[int]]
) -> RankedRows:
    """
    The ranking with each update behind its statement, and what is only said next behind all, if there is room left.

    What was ranked itself keeps its signals.
    """
    place = {row: at for at, row in enumerate(best.rows.tolist())}
    order: list[tuple[int, int, float]] = []  # the row, the place of its signals, how much it is an update
    for row in best.rows.tolist():
        order.append((row, place[row], 0.0))
        order += [(update, place.get(update, -1), much) for update, much in updates.get(row, ())]
    order += [(row, place.get(row, -1), 0.0) for rows in at_end.values() for row in rows]
    first: dict[int, tuple[int, float]] = {}
    probable = dict(zip(best.rows.tolist(), best.signals[PROBABILITY].tolist(), strict=True))
    for statement, each in updates.items():
        for update in (*(row for row, _ in each), *at_end[statement]):
            probable[update] = max(probable.get(update, 0.0), probable[statement])
    for row, at, much in order:
        first.setdefault(row, (at, much))
    rows = np.array([*first], np.int64)
    known = np.array([at for at, _ in first.values()])
    signals = {name: np.where(known >= 0, values[known], 0.0) for name, values in best.signals.items()}
    signals[PROBABILITY] = np.array([probable[row] for row in first])
    signals[UPDATE] = np.array([much for _, much in first.values()])
    return RankedRows(rows, np.where(known >= 0, best.scores[known], 0.0), signals)


def texts_of(texts: PassageTexts, table: PassageTable, rows: Rows) -> dict[int, str]:
    """The texts of rows, in their order; what was forgotten meanwhile is left out."""
    by_id = dict(zip(table.ids[rows].tolist(), rows.tolist(), strict=True))
    return {by_id[id]: text for id, _, _, _, text, *_ in texts.of([*by_id])}
