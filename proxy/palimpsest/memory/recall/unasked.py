"""Passages that come without being asked for: the user's lasting wishes, what may harm somebody, notes of a project."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import islice

import numpy as np

from palimpsest.core.recall.needs import LEAST_NEAR, PRECAUTIONS_TOLD, Need, concerns, is_about_form
from palimpsest.core.recall.ranking import (
    PROBABILITY,
    Bools,
    Floats,
    PassageTable,
    QueryMatches,
    RankedRows,
    Rows,
    sum_term_weights,
)
from palimpsest.core.recall.relevance import term_weight
from palimpsest.core.recall.updates import UPDATE, nearest_first
from palimpsest.core.recall.wishes import NOTE, WISH, is_sure_wish
from palimpsest.core.work.project_notes import is_note, noted_part, urgency
from palimpsest.core.work.rules import rules
from palimpsest.domain import Query, Reach
from palimpsest.memory.recall import eligibility
from palimpsest.memory.recall.scope_reader import Looked, ScopeReader
from palimpsest.memory.recall.updates import with_related

Needs = Mapping[Need, Floats]
WISH_ABOVE = 0.12  # cosine over the mean of the scope: of three wishes that come to unrelated prompts, one is below
STANDING_CHARS = 400  # of messages with rules that come whatever is asked: some six; of more, the newest
_HERE = re.compile(r"(?i)\bin this (?:repo|project|codebase)")  # a rule of another one, where none is named
# Of the weight of a request's words, in a rule told elsewhere: "commit this" has all of them in "no emojis in commits".
# Of 720 pairs of a BEAM question and a rule of its author's, 8 share as much, 7 of them rightly; at .2, 16 do.
LEAST_CONCERN = 0.3
NOTES_CHARS = 800  # of what was told of a project, rules included, where one in its folder begins or was compacted
READ_FOR_NOTES, MOST_NOTES = 200, 24  # messages, the newest, some 25 ms; and notes of them, of which some six fit
MOST_STANDING = 64  # wishes that are looked at for them, the newest: whoever has more has too many rules


def unasked(
    reader: ScopeReader, found: Looked, query: Query, asked: QueryMatches, eligible: Bools, told: Bools, needs: Needs
) -> RankedRows:
    """
    What comes whatever the gate says: precautions and notes of the project with their updates, rules, and wishes near
    the request.

    Args:
        asked: the request with its meaning, where a model gave one.
        eligible: what may answer it; the rules and notes may also be what repeats its words.
        told: rows of which an earlier block quotes something.
    """
    table = reader.table
    certain = _wishes(table, asked, eligible, query.wishes)
    if query.told is not None:
        standing = _standing(reader, found, query, asked, needs)
        certain = prepended(unranked(standing, WISH), certain)
        if found.here.any():
            room = NOTES_CHARS - table.lengths[standing].sum()
            certain = prepended(_notes(reader, found, query, asked, eligible, told, room), certain)
    warned = _precautions(reader, query, asked, eligible, needs)
    return prepended(_told_with_updates(reader, unranked(warned, WISH), eligible, told, asked), certain)


def _told_with_updates(
    reader: ScopeReader, certain: RankedRows, eligible: Bools, told: Bools, asked: QueryMatches
) -> RankedRows:
    """What comes for certain, each with what the user said later of it: a knee that is fine again, another port."""
    if not len(certain.rows):
        return certain
    related = with_related(reader, certain, eligible, told, asked)
    is_update = related.signals.get(UPDATE, np.zeros(len(related.rows))) > 0
    return related.part(is_update | np.isin(related.rows, certain.rows))


def _wishes(table: PassageTable, asked: QueryMatches, eligible: Bools, count: int) -> RankedRows:
    """The user's lasting wishes that are near to the question, the nearest first, the newer of equals."""
    rows = np.flatnonzero(table.wishes & eligible & _near(asked, eligible))[::-1] if count else table.ids[:0]
    near = np.zeros(len(rows)) if asked.cosines is None else asked.cosines[rows]
    order = np.argsort(-near, kind="stable")[:count]
    return RankedRows(rows[order], near[order], {PROBABILITY: np.ones(len(order)), WISH: near[order]})


def _standing(reader: ScopeReader, found: Looked, query: Query, asked: QueryMatches, needs: Needs) -> Rows:
    """
    The rules that hold always, are not visible and were not replaced, the newest that fit: first what this conversation
    lost, then what its user told in others of its scope or folder, or anywhere of what the request is about. Who asks
    for a text gets all wishes about the form of texts, before others, those nearest to the request first.
    """
    table, may_come = reader.table, found.eligible
    is_own = table.conversations == asked.own
    is_here = about = np.ones(len(table), np.bool_)
    holds = table.wishes & (_of_user(table, query, asked) | found.here)
    if not query.scope and (holds & ~is_own).any():
        is_here = is_own | found.here
        about = is_here | (_concerned(table, asked) & _near(asked, may_come))
        holds &= about | (Need.TEXT in needs)
    of_both = np.flatnonzero(holds & ~is_own)[-MOST_STANDING:], np.flatnonzero(holds & is_own)[-MOST_STANDING:]
    wishes = np.sort(np.concatenate(of_both))
    told = eligibility.among(table.occurrences[wishes], query.excluded)
    seen = eligibility.among(table.fulls[wishes], query.visible_fulls) | told
    room = STANDING_CHARS - table.lengths[wishes[told]].sum()
    new = may_come[wishes] & ~seen
    if not new.any():
        return wishes[:0]
    said = reader.texts_of(wishes[new | seen])
    may_hold = {row for row in wishes[new].tolist() if row in said}
    may_hold = {row for row in may_hold if is_here[row] or not _HERE.search(said[row])}
    shown = "\n".join((*(query.told or ()), *(said[row] for row in wishes[seen].tolist() if row in said)))
    of_form = {row for row in may_hold if Need.TEXT in needs and is_about_form(said[row])}
    sure = {row for row in may_hold if about[row] and is_sure_wish(said[row])}
    rows = {
        row
        for one in rules(((row, said[row]) for row in said if row in sure | of_form), shown)
        for row in one.occurrences
    }
    rows |= {row for row in of_form | sure if not rules([(row, said[row])], "")}  # none that a later one could replace
    first = nearest_first(np.array(sorted(rows & of_form), np.int64), asked).tolist()
    order = [*first, *sorted(rows - of_form, key=lambda row: (is_own[row], row), reverse=True)]
    return _fitting(table.lengths, order, room)


def _precautions(reader: ScopeReader, query: Query, asked: QueryMatches, eligible: Bools, needs: Needs) -> Rows:
    """What the user told that may harm somebody: the nearest to the request of what fits, what asks behind the rest."""
    table = reader.table
    if query.warned is None or asked.cosines is None or not needs:
        return table.ids[:0]
    warns = np.flatnonzero(table.warns & _of_user(table, query, asked))
    room = STANDING_CHARS - table.lengths[warns[eligibility.among(table.occurrences[warns], query.excluded)]].sum()
    is_due = eligible[warns] & ~eligibility.among(table.occurrences[warns], query.warned)
    is_due &= asked.cosines[warns] >= LEAST_NEAR[query.told is None]
    said = reader.texts_of(nearest_first(warns[is_due], asked)[:MOST_STANDING])
    told = [row for row, text in said.items() if concerns(text, table.vectors[row], needs)]
    told.sort(key=lambda row: bool(table.only_asks(np.array([row]))[0]))
    return _fitting(table.lengths, told[:PRECAUTIONS_TOLD], room)


def _notes(
    reader: ScopeReader, found: Looked, query: Query, asked: QueryMatches, eligible: Bools, told: Bools, room: float
) -> RankedRows:
    """
    What the user told of the project in other conversations in its folder, each note with its updates, as many as fit:
    the most urgent first, of these the newest. They come once, where a conversation begins, and again with the next
    question where a compaction took them away with the block that told them.
    """
    table = reader.table
    here = found.here & table.users & (table.conversations != asked.own)
    if eligibility.among(table.occurrences[here], query.excluded).any():
        return unranked(table.ids[:0])
    rows = np.flatnonzero(here & found.eligible & ~table.only_asks(slice(None)))[: -READ_FOR_NOTES - 1 : -1]
    said = reader.texts_of(rows)
    urgent = sorted(said, key=lambda row: urgency(said[row]))
    notes = [*islice((row for row in urgent if is_note(said[row])), MOST_NOTES)]
    chars = table.lengths.copy()
    for row in notes:
        start, stop = noted_part(said[row])
        chars[row] = stop - start
    fitting = _fitting(chars, notes, room)
    ranked = _told_with_updates(reader, unranked(fitting, NOTE), eligible, told, asked)
    with_updates: dict[int, list[int]] = {}
    note = -1
    for row in ranked.rows.tolist():
        note = row if row in fitting else note
        with_updates.setdefault(note, []).append(row)
    kept: list[int] = []
    for row in filter(with_updates.get, notes):
        if chars[[*kept, *with_updates[row]]].sum() <= room:
            kept += with_updates[row]
    return ranked.part(np.isin(ranked.rows, kept))


def _fitting(chars: Floats, rows: Iterable[int], room: float) -> Rows:
    """The first of the rows that fit into so many characters, in order; one that does not keeps no other away."""
    fitting: list[int] = []
    for row in rows:
        if chars[[row, *fitting]].sum() <= room:
            fitting.append(row)
    return np.array(sorted(fitting), int)


def _of_user(table: PassageTable, query: Query, asked: QueryMatches) -> Bools:
    """Which passages may tell of the request's user, (n,): where others share the scope, only this conversation's."""
    is_shared = bool(query.user) and query.reach is not Reach.USER
    return table.conversations == asked.own if is_shared else np.ones(len(table), np.bool_)


def _near(asked: QueryMatches, eligible: Bools) -> Bools:
    """Which passages are nearer to the question than others are, (n,); without a model all."""
    if asked.cosines is None or not eligible.any():
        return np.ones(len(eligible), np.bool_)
    near: Bools = asked.cosines >= asked.cosines[eligible].mean() + WISH_ABOVE
    return near


def _concerned(table: PassageTable, asked: QueryMatches) -> Bools:
    """Which passages hold so many of the request's words, by weight, that it may be about them: (n,)."""
    weights = {term: term_weight(len(rows), len(table)) for term, rows in asked.found.items()}
    whole = sum(weights.values()) + len(asked.absent) * term_weight(0, len(table))
    concerned: Bools = sum_term_weights(asked.found, weights, len(table)) >= max(LEAST_CONCERN * whole, 1e-9)
    return concerned


def unranked(rows: Rows, signal: str = "whole") -> RankedRows:
    """Passages that come for certain as a ranking in which none is more probable than the rest."""
    ones = np.ones(len(rows))
    return RankedRows(rows, ones, {PROBABILITY: ones, signal: ones})


def prepended(certain: RankedRows, best: RankedRows) -> RankedRows:
    """A ranking with certain passages before those that answer the question, each once."""
    if not len(certain.rows):
        return best
    rest = best.part(~np.isin(best.rows, certain.rows))
    signals = {
        name: np.concatenate([one.signals.get(name, np.zeros(len(one.rows))) for one in (certain, rest)])
        for name in {**certain.signals, **best.signals}
    }
    return RankedRows(np.concatenate([certain.rows, rest.rows]), np.concatenate([certain.scores, rest.scores]), signals)
