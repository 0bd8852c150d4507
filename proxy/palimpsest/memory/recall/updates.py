"""The look-up of related statements: each one that will be quoted, asked once more with its own words and names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest

import numpy as np

from palimpsest.core.archive.chunking import names, query_terms, word_terms
from palimpsest.core.recall import updates
from palimpsest.core.recall.known_things import TOLD, is_about, known_things, possible_names, told_of
from palimpsest.core.recall.ranking import PROBABILITY, Bools, PassageTable, QueryMatches, RankedRows, Rows
from palimpsest.core.recall.relevance import term_weight
from palimpsest.core.recall.updates import UPDATE
from palimpsest.core.recall.utterance import language
from palimpsest.memory.index.full_text import find, find_each
from palimpsest.store.engine import Ask
from palimpsest.store.search.passages import PassageTexts
from palimpsest.store.search.scope import Scope


def with_related(
    ask: Ask,
    scope: Scope,
    texts: PassageTexts,
    table: PassageTable,
    best: RankedRows,
    eligible: Bools,
    told: Bools,
    asked: QueryMatches,
) -> RankedRows:
    """
    A ranking with what was said of the same thing inserted behind each statement, and behind a first answer, equally
    probable: the newest update, and what shares a rare name with it. Behind an answer stands the message in which its
    user rejected it, behind a brief one what it answers, behind a task what came of it, and behind all what the user
    said next. An update comes even if it is one of the `told` rows, of which an earlier block quotes something:
    without it, the older statement would stand beside the question as what was said last.
    """
    stated = texts_of(texts, table, updates.statements(table, best))
    said = {row: query_terms(text) for row, text in stated.items()}
    found = dict(zip(said, find_each(ask, scope, table, [*said.values()]), strict=True))
    weighed = {
        row: {term: term_weight(len(holding), len(table)) for term, holding in one.rows.items()}
        for row, one in found.items()
    }
    may_update = eligible | told
    later = {row: updates.later_statements(table, row, found[row].rows, weighed[row], may_update) for row in said}
    named = {row: _names_not_asked_for(text, asked) for row, text in stated.items()}
    others = {row: updates.namesakes(table, row, found[row].rows, named[row], eligible, asked) for row in said}
    first = best.rows[: updates.STATEMENTS]
    replies = {row: (updates.outcome if table.users[row] else updates.next_said)(table, row) for row in first.tolist()}
    replies = {row: at for row, at in replies.items() if at >= 0 and eligible[at]}
    looked_at = [*(rows for rows, _ in later.values()), *others.values(), np.array([*replies.values()], np.int64)]
    read = texts_of(texts, table, updates.union(looked_at))
    reports = {id for id, _, _, role, *_ in texts.of(table.ids[[*replies.values()]].tolist()) if role == "assistant"}
    telling = np.array([row for row, text in read.items() if updates.tells_of_change(text)], np.int64)
    changing = {*telling[~table.only_asks(telling)].tolist()}
    parts = {row: updates.clauses(read[row]) for row in changing}
    behind: dict[int, list[tuple[int, float]]] = {}
    rare = term_weight(1, len(table))
    for row in said:
        cosines = dict(zip(later[row][0].tolist(), later[row][1].tolist(), strict=True))
        alike = {
            one: cosine + updates.likeness(said[row], query_terms(read[one]), weighed[row], rare)
            for one, cosine in cosines.items()
            if one in read
            and (
                updates.states(table, np.array([one]))
                or one in changing
                or updates.gives_other_number(stated[row], read[one])
            )
        }
        newest = sorted(one for one in alike.items() if one[1] >= updates.LEAST_ALIKE)[-1:]
        may_change = alike.keys() & changing
        for clause in updates.clauses(stated[row]) if may_change else ():
            most = {
                one: cosines[one] + max(updates.likeness(clause, part, weighed[row], rare) for part in parts[one])
                for one in may_change
            }
            near = sorted(one for one in most if most[one] >= updates.LEAST_ALIKE_CLAUSES)
            newest += [(one, alike[one]) for one in near[-1:]]
        changed = [(one, alike[one]) for one in may_change if alike[one] >= updates.LEAST_ALIKE_CHANGED]
        ranked = sorted(one for one in alike.items() if one[0] in first and one[1] >= updates.LEAST_ALIKE_RANKED)[-1:]
        named_too = [one for one in others[row].tolist() if one in read and updates.has_name(read[one], named[row])]
        behind[row] = [*newest, *sorted(changed)[-1:], *ranked, *((one, 0.0) for one in named_too[: updates.NAMESAKES])]
    for row in first.tolist():
        if (at := updates.answered(table, row)) >= 0 and eligible[at]:
            behind[row] = [(at, 0.0), *behind.get(row, ())]
    for row, at in replies.items():  # without it a rejected answer would stand as true, and a task as one to do
        if at in read and (table.ids[at] in reports if table.users[row] else updates.REJECTION.match(read[at])):
            behind[row] = [(at, 0.0), *behind.get(row, ())]
    at_end = {row: updates.next_statement(table, row, eligible, asked) for row in said}
    return _with_updates(best, behind, at_end) if any((*behind.values(), *at_end.values())) else best


def told_of_known_things(
    ask: Ask, scope: Scope, texts: PassageTexts, table: PassageTable, eligible: Bools, asked: QueryMatches
) -> Rows:
    """
    The user's statements about what a request speaks of as known: the nearest one of each thing, then the next of each.
    The thing of which least was told comes first.
    """
    known = known_things(asked.text)
    things = [*known, *possible_names(asked.text)]
    unasked = {term for thing in things for terms in thing.terms.values() for term in terms} - {*asked.found}
    found = {**asked.found, **find(ask, scope, table, [*unasked.difference(asked.absent)]).rows}
    found_of = [told_of(table, thing, found, eligible, asked) for thing in things]
    read = texts_of(texts, table, updates.union(found_of))
    weights = {term: term_weight(len(rows), len(table)) for term, rows in found.items()}
    rare = {term for term, rows in found.items() if len(rows) <= updates.MOST_NAMED}
    near = np.ones(len(table)) if asked.cosines is None else asked.cosines
    states = dict(zip(read, updates.states(table, np.array([*read], np.int64)).tolist(), strict=True))
    told = {row: text for row, text in read.items() if states[row] or re.search(r"\d", text)}
    about = [
        [row for row in rows.tolist() if row in told and is_about(told[row], thing, weights, rare, near[row])]
        for thing, rows in zip(things, found_of, strict=True)
        if thing in known or any(thing.terms.keys() & {*names(read[row])} for row in rows.tolist() if row in read)
    ]
    nearest = (row for rows in zip_longest(*sorted(about, key=len)) for row in rows if row is not None)
    return np.array([*dict.fromkeys(nearest)][:TOLD], np.int64)


def _names_not_asked_for(text: str, asked: QueryMatches) -> dict[str, set[str]]:
    """The names of a statement that the question does not have itself, each with its terms."""
    code = language(text)
    return {name: {*word_terms(name, code)} - {*asked.found} for name in updates.all_names(text)}


def _with_updates(
    best: RankedRows, behind: Mapping[int, Sequence[tuple[int, float]]], at_end: Mapping[int, Sequence[int]]
) -> RankedRows:
    """
    The ranking with each update behind its statement, and what is only said next behind all, if there is room left.

    What was ranked itself keeps its signals.
    """
    place = {row: at for at, row in enumerate(best.rows.tolist())}
    alike: dict[int, float] = {}  # of each row once, in order, how much it is an update
    for row in (*place, *chain(*at_end.values())):
        for one, much in ((row, 0.0), *behind.get(row, ())):
            alike[one] = max(alike.get(one, 0.0), much)
    probable = dict(zip(best.rows.tolist(), best.signals[PROBABILITY].tolist(), strict=True))
    for statement, each in behind.items():
        for update in (*(row for row, _ in each), *at_end.get(statement, ())):
            probable[update] = max(probable.get(update, 0.0), probable[statement])
    rows = np.array([*alike], np.int64)
    known = np.array([place.get(row, -1) for row in alike])
    signals = {name: np.where(known >= 0, values[known], 0.0) for name, values in best.signals.items()}
    signals[PROBABILITY] = np.array([probable[row] for row in alike])
    signals[UPDATE] = np.array([*alike.values()])
    return RankedRows(rows, np.where(known >= 0, best.scores[known], 0.0), signals)


def texts_of(texts: PassageTexts, table: PassageTable, rows: Rows) -> dict[int, str]:
    """The texts of rows, in their order; what was forgotten meanwhile is left out."""
    by_id = dict(zip(table.ids[rows].tolist(), rows.tolist(), strict=True))
    return {by_id[id]: text for id, _, _, _, text, *_ in texts.of([*by_id])}
