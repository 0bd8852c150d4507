"""
Search by words: the passages of a scope that hold each term of a question.

Each term's own list of passages, not one ranked list for all: the ranking counts the words of a passage's surroundings
too, with the statistics of the scope, so that nobody else's text can reorder a result. What others said is not in the
scope's table, and so left out; where they said most of what is stored, the scope's token stands next to the term, and
it is not even read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from palimpsest.core.recall.ranking import PassageTable, Rows
from palimpsest.domain import Reach
from palimpsest.domain.frozen import frozen
from palimpsest.store.engine import Ask
from palimpsest.store.engine.full_text import counted, postings
from palimpsest.store.search.passages import last_passage
from palimpsest.store.search.scope import Scope

MAX_TERMS = 16  # the rarest of a question: more only repeat what it is about; `ranking.nearby` takes 32 at most
MAX_HITS = 20_000  # of all terms outside one conversation, 1 ms: the commonest words of a large scope say nothing
CONFINED_SHARE = 0.5  # of all passages: of a larger scope the token's list is so long that it takes 2 ms to follow
COMMON_PASSAGES = 100  # that hold a term: rarer ones are looked up in microseconds
KNOWN_TERMS = 1_000  # of one scope: a conversation asks about some hundreds; more, and all are looked up anew
KNOWN_ROWS = 1_000_000  # of these terms together, 8 MB
UNKNOWN: tuple[int, Rows] = (0, np.empty(0, np.int64))


@frozen
class TermRows:
    """Terms with the rows of the table that hold them; and the terms that nothing on the table holds."""

    rows: Mapping[str, Rows]
    absent: tuple[str, ...]


def find(ask: Ask, scope: Scope, table: PassageTable, terms: Sequence[str]) -> TermRows:
    """Look up different terms; those too common to tell anything are left out of the answer."""
    memories = counted(ask, scope.tenant, terms)
    chosen = []
    room = MAX_HITS
    for term in sorted(memories, key=lambda term: (memories[term], term))[:MAX_TERMS]:
        room -= memories[term]
        if scope.reach is Reach.CONVERSATION or room >= 0:
            chosen.append(term)
    if not chosen:
        return TermRows({}, tuple(term for term in terms if term not in memories))
    held = _rows(ask, scope, table, chosen)
    found = {term: held[term] for term in chosen if len(held[term])}
    unasked = {*memories} - {*chosen}
    return TermRows(found, tuple(term for term in terms if term not in found and term not in unasked))


def _rows(ask: Ask, scope: Scope, table: PassageTable, terms: Sequence[str]) -> dict[str, Rows]:
    """Rows of the table that hold each term. Of a common one that was asked before, only what is new is looked up."""
    known = {term: table.known.get(term, UNKNOWN) for term in terms}
    fresh = [term for term, (upto, _) in known.items() if upto < len(table)]
    is_confined = len(table) < CONFINED_SHARE * last_passage(ask)
    wanted = [(term, _last_id(table, known[term][0])) for term in fresh]
    for term, ids in postings(ask, scope.tenant, wanted, scope.terms if is_confined else ()):
        new = table.rows_of(np.fromstring(ids, np.int64, sep=","))
        known[term] = len(table), np.concatenate([known[term][1], new])
        if len(known[term][1]) >= COMMON_PASSAGES:
            if len(table.known) >= KNOWN_TERMS or _count(table) + len(known[term][1]) > KNOWN_ROWS:
                table.known.clear()
            table.known[term] = known[term]
    return {term: rows[: np.searchsorted(rows, len(table))] for term, (_, rows) in known.items()}


def _count(table: PassageTable) -> int:
    """How many rows are remembered of terms."""
    return sum(len(rows) for _, rows in [*table.known.values()])  # a copy: other threads remember terms, too


def _last_id(table: PassageTable, upto: int) -> int:
    return int(table.ids[upto - 1]) if upto else 0
