"""The look-up of related statements: each one that will be quoted, asked once more with its own words and names."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import chain, zip_longest

import numpy as np

from palimpsest.core.archive.chunking import names, query_terms, word_terms
from palimpsest.core.recall import updates
from palimpsest.core.recall.asking_back import asks_back
from palimpsest.core.recall.known_things import TOLD, is_about, known_things, possible_names, told_of
from palimpsest.core.recall.ranking import PROBABILITY, Bools, Floats, PassageTable, QueryMatches, RankedRows, Rows
from palimpsest.core.recall.relevance import term_weight
from palimpsest.core.recall.updates import UPDATE
from palimpsest.core.recall.utterance import language
from palimpsest.core.work.project_notes import is_note
from palimpsest.domain import frozen
from palimpsest.memory.recall.scope_reader import ScopeReader


@frozen
class _Statement:
    """A statement that a block will quote, and the user's later ones that share words with it, with their cosines."""

    text: str
    terms: Sequence[str]
    found: Mapping[str, Rows]  # which rows hold each of its terms
    weights: Mapping[str, float]
    later_rows: Rows
    cosines: Floats


def with_related(
    reader: ScopeReader,
    best: RankedRows,
    eligible: Bools,
    told: Bools,
    asked: QueryMatches,
) -> RankedRows:
    """
    A ranking with what was said of the same thing inserted behind each statement, and behind a first answer, equally
    probable: the newest update, and what shares a rare name with it. Behind an answer stands the message in which its
    user rejected it, behind a brief one what it answers, behind a task what came of it and how its user corrected
    that, behind whatever is asked back its answer, and behind all what the user said next. An update comes even if it
    is one of the `told` rows, of which an earlier block quotes something: without it, the older statement would stand
    beside the question as what was said last.
    """
    table = reader.table
    first = best.rows[: updates.STATEMENTS]
    said = _statements(reader, updates.statements(table, best), eligible | told)
    named = {row: _names_not_asked_for(one.text, asked) for row, one in said.items()}
    others = {row: updates.namesakes(table, row, one.found, named[row], eligible, asked) for row, one in said.items()}
    asked_back: Collection[int] = ()
    if asks_back(asked.text):  # what asked back itself was answered from memory, or not at all
        asked_back = {row for row, text in reader.texts_of(first[table.users[first]]).items() if not asks_back(text)}
    replies = {row: _reply(table, row, asked, row in asked_back) for row in first.tolist()}
    replies = {row: at for row, at in replies.items() if at >= 0 and eligible[at]}
    remarks = {row: updates.next_said(table, at) for row, at in replies.items() if table.users[row]}
    remarks = {row: at for row, at in remarks.items() if at >= 0 and eligible[at]}
    replied = np.array([*replies.values(), *remarks.values()], np.int64)
    read = reader.texts_of(updates.union([*(one.later_rows for one in said.values()), *others.values(), replied]))
    reports = {id for id, _, _, role, *_ in reader.passages_of(replied) if role == "assistant"}
    changes = _changes(table, read)
    behind: dict[int, list[tuple[int, float]]] = {}
    for row, one in said.items():
        named_too = [at for at in others[row].tolist() if at in read and _shares_name(one.text, read[at], named[row])]
        updating = _updates_of(one, table, read, changes, first)
        behind[row] = [*updating, *((at, 0.0) for at in named_too[: updates.NAMESAKES])]
    for row in first.tolist():
        if (at := updates.answered(table, row)) >= 0 and eligible[at]:
            behind[row] = [(at, 0.0), *behind.get(row, ())]
    for row, at in replies.items():  # without it a rejected answer would stand as true, and a task as one to do
        if at in read and (table.ids[at] in reports if table.users[row] else updates.REJECTION.match(read[at])):
            corrected = [(remarks[row], 0.0)] if row in remarks and _corrects(read.get(remarks[row], "")) else []
            behind[row] = [(at, 0.0), *corrected, *behind.get(row, ())]
    at_end = {row: updates.next_statement(table, row, eligible, asked) for row in said}
    return _with_updates(best, behind, at_end) if any((*behind.values(), *at_end.values())) else best


def _reply(table: PassageTable, row: int, asked: QueryMatches, is_asked_back: bool) -> int:
    """
    The row of what followed a passage: on an answer what its user said, on a task what came of it, and on whatever is
    asked back the answer; -1: nothing.
    """
    if not table.users[row]:
        return updates.next_said(table, row)
    outcome = updates.outcome(table, row)
    return updates.answer_to(table, row, asked) if outcome < 0 and is_asked_back else outcome


def _corrects(remark: str) -> bool:
    """Whether what a user says to a report takes it back, or says how it is to be done: "Migrate first next time!"."""
    is_brief = 0 < len(remark) <= updates.FOLLOWING_CHARS
    return is_brief and (updates.REJECTION.match(remark) is not None or is_note(remark))


def _statements(reader: ScopeReader, rows: Rows, may_update: Bools) -> dict[int, _Statement]:
    """The statements of some rows, each looked up once more."""
    table, texts = reader.table, reader.texts_of(rows)
    terms = {row: query_terms(text) for row, text in texts.items()}
    found: dict[int, _Statement] = {}
    for (row, text), held in zip(texts.items(), reader.holding([*terms.values()]), strict=True):
        weights = {term: term_weight(len(holding), len(table)) for term, holding in held.rows.items()}
        later = updates.later_statements(table, row, held.rows, weights, may_update)
        found[row] = _Statement(text, terms[row], held.rows, weights, *later)
    return found


def _changes(table: PassageTable, read: Mapping[int, str]) -> dict[int, list[tuple[str, ...]]]:
    """The clauses of each of the read messages that tells of a change, and does not only ask."""
    telling = np.array([row for row, text in read.items() if updates.tells_of_change(text)], np.int64)
    return {row: updates.clauses(read[row]) for row in telling[~table.only_asks(telling)].tolist()}


def _updates_of(
    said: _Statement,
    table: PassageTable,
    read: Mapping[int, str],
    changes: Mapping[int, Sequence[tuple[str, ...]]],
    first: Rows,
) -> list[tuple[int, float]]:
    """
    The later messages that update a statement, and how much alike they are: the newest that is much alike, that which
    changes each clause, that which tells of a change, and that which the question leads to itself.
    """
    rare = term_weight(1, len(table))
    cosines = dict(zip(said.later_rows.tolist(), said.cosines.tolist(), strict=True))
    alike = {
        row: cosine + updates.likeness(said.terms, query_terms(read[row]), said.weights, rare)
        for row, cosine in cosines.items()
        if row in read
        and (
            updates.states(table, np.array([row])) or row in changes or updates.gives_other_number(said.text, read[row])
        )
    }
    changing = {row: much for row, much in alike.items() if row in changes}
    newest = _newest(alike, updates.LEAST_ALIKE)
    for clause in updates.clauses(said.text) if changing else ():
        most = {
            row: cosines[row] + max(updates.likeness(clause, part, said.weights, rare) for part in changes[row])
            for row in changing
        }
        newest += _newest(most, updates.LEAST_ALIKE_CLAUSES)
    newest += _newest(changing, updates.LEAST_ALIKE_CHANGED)
    newest += _newest({row: alike[row] for row in first.tolist() if row in alike}, updates.LEAST_ALIKE_RANKED)
    return [(row, alike[row]) for row in newest]


def _newest(alike: Mapping[int, float], least: float) -> list[int]:
    """The newest of the rows that are as much alike, in a list; an empty one where none is."""
    return sorted(row for row, much in alike.items() if much >= least)[-1:]


def told_of_known_things(reader: ScopeReader, eligible: Bools, asked: QueryMatches) -> Rows:
    """
    The user's statements about what a request speaks of as known: the nearest one of each thing, then the next of each.
    The thing of which least was told comes first.
    """
    table, known = reader.table, known_things(asked.text)
    things = [*known, *possible_names(asked.text)]
    unasked = {term for thing in things for terms in thing.terms.values() for term in terms} - {*asked.found}
    (more,) = reader.holding([[*unasked.difference(asked.absent)]])
    found = {**asked.found, **more.rows}
    found_of = [told_of(table, thing, found, eligible, asked) for thing in things]
    read = reader.texts_of(updates.union(found_of))
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
    """The names of a statement that the question does not have itself, and its opening words, each with its terms."""
    code, named = language(text), (*updates.all_names(text), *updates.opening_words(text))
    return {name: {*word_terms(name, code)} - {*asked.found} for name in named}


def _shares_name(said: str, other: str, named: Collection[str]) -> bool:
    """Whether another text holds one of these names or opening words of a statement."""
    sure = {*named} & {*updates.all_names(said)}
    return updates.has_name(other, sure, {*named} - sure)


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
