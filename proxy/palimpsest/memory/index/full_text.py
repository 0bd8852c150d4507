"""
Search by words: the passages of a scope that hold each term of a question.

Each term's own list of passages, not one ranked list for all: the ranking counts the words of a passage's surroundings
too, with the statistics of the scope, so that nobody else's text can reorder a result. What others said is not in the
scope's table, and so left out; where they said most of what is stored, the scope's token stands next to the term, and
it is not even read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from palimpsest.core.recall.ranking import PassageTable, Rows
from palimpsest.domain import Reach, frozen
from palimpsest.store.engine import Ask, ask_ahead
from palimpsest.store.engine.full_text import found
from palimpsest.store.search.scope import Scope

MAX_TERMS = 16  # the rarest of a question: more only repeat what it is about; `ranking.nearby` takes 32 at most
MAX_HITS = 20_000  # of all terms outside one conversation, 1 ms: the commonest words of a large scope say nothing
ALL_HITS = 1 << 62
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
    return find_each(ask, scope, table, [terms])[0]


def find_each(ask: Ask, scope: Scope, table: PassageTable, questions: Sequence[Sequence[str]]) -> list[TermRows]:
    """The same of the terms of several questions, without waiting for each."""
    known = [{term: table.known.get(term, UNKNOWN) for term in terms} for terms in questions]
    looking = [partial(_look_up, scope=scope, table=table, known=one) for one in known]
    ask_ahead(ask, lambda: looking)
    return [_found(table, one, look(ask)) for one, look in zip(known, looking, strict=True)]


def find_ahead(scope: Scope, table: PassageTable, questions: Sequence[Sequence[str]]) -> list[Callable[[Ask], object]]:
    """What `find_each` is going to ask if the table has not changed."""
    known = [{term: table.known.get(term, UNKNOWN) for term in terms} for terms in questions]
    return [partial(_look_up, scope=scope, table=table, known=one) for one in known]


def _look_up(
    ask: Ask, scope: Scope, table: PassageTable, known: Mapping[str, tuple[int, Rows]]
) -> list[tuple[str, int, str | None]]:
    """Of terms what is not known: of a common one that was asked before, only what is new is looked up."""
    wanted = [(term, _last_id(table, upto)) for term, (upto, _) in known.items()]
    most = (MAX_TERMS, ALL_HITS if scope.reach is Reach.CONVERSATION else MAX_HITS)
    return found(ask, scope.tenant, wanted, most, scope.terms, len(table))


def _found(
    table: PassageTable, known: Mapping[str, tuple[int, Rows]], listed: Sequence[tuple[str, int, str | None]]
) -> TermRows:
    """Rows of the table that hold each term."""
    held: dict[str, Rows] = {}
    for term, _, ids in listed:
        if ids is None:
            continue
        rows = np.concatenate([known[term][1], table.rows_of(np.fromstring(ids, np.int64, sep=","))])
        if len(rows) >= COMMON_PASSAGES:
            if len(table.known) >= KNOWN_TERMS or _count(table) + len(rows) > KNOWN_ROWS:
                table.known.clear()
            table.known[term] = max(len(table), known[term][0]), rows
        held[term] = rows[: np.searchsorted(rows, len(table))]
    rows_of = {term: rows for term, rows in held.items() if len(rows)}
    unasked = {term for term, _, ids in listed if ids is None}
    return TermRows(rows_of, tuple(term for term in known if term not in rows_of and term not in unasked))


def _count(table: PassageTable) -> int:
    """How many rows are remembered of terms."""
    return sum(len(rows) for _, rows in [*table.known.values()])  # a copy: other threads remember terms, too


def _last_id(table: PassageTable, upto: int) -> int:
    return int(table.ids[min(upto, len(table)) - 1]) if upto else 0
