"""
Which passages hold a question's words? SQLite's full-text index, asked one term at a time inside one scope.

Each term's own list of passages, not one ranked list for all: the ranking counts the words of a passage's surroundings
too, with the statistics of the scope, so that nobody else's text can reorder a result. User text never reaches MATCH
raw: it comes as terms of `core/archive/chunking.py`, quoted. What others said is not on the
scope's shelf, and so left out; where they said most of what is stored,
the scope's token stands next to the term, and it is not even read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import orjson

from proxy.core.recall.ranking import PassageTable, Rows
from proxy.domain import Reach
from proxy.index.scope import Scope
from proxy.store.connection import Ask

MAX_TERMS = 16  # the rarest of a question: more only repeat what it is about
MAX_HITS = 20_000  # of all terms outside one conversation, 1 ms: the commonest words of a large scope say nothing
CONFINED_SHARE = 0.5  # of all passages: of a larger scope the token's list is so long that it takes 2 ms to follow
COMMON_PASSAGES = 100  # that hold a term: rarer ones are looked up in microseconds
KNOWN_TERMS = 200  # of one scope, some 10 MB of rows; more, and all are looked up anew
UNKNOWN: tuple[int, Rows] = (0, np.empty(0, np.int64))
LISTED = "SELECT ?, group_concat(rowid) FROM memory_text WHERE memory_text MATCH ? AND rowid > ?"


@dataclass(frozen=True, slots=True)
class Found:
    """Terms with the rows of the shelf that hold them; and the terms that nothing on the shelf holds."""

    rows: Mapping[str, Rows]
    absent: tuple[str, ...]


def find(ask: Ask, scope: Scope, shelf: PassageTable, terms: Sequence[str]) -> Found:
    """Look up different terms; those too common to tell anything are left out of the answer."""
    counted: dict[str, int] = {
        term: memories
        for term, memories in ask(
            "SELECT term, memories FROM term WHERE tenant = ? AND term IN (SELECT value FROM json_each(?))",
            (scope.tenant, _json(terms)),
        )
    }
    chosen = []
    room = MAX_HITS
    for term in sorted(counted, key=lambda term: (counted[term], term))[:MAX_TERMS]:
        room -= counted[term]
        if scope.reach is Reach.CONVERSATION or room >= 0:
            chosen.append(term)
    if not chosen:
        return Found({}, tuple(term for term in terms if term not in counted))
    held = _rows(ask, scope, shelf, chosen)
    found = {term: held[term] for term in chosen if len(held[term])}
    unasked = {*counted} - {*chosen}
    return Found(found, tuple(term for term in terms if term not in found and term not in unasked))


def _rows(ask: Ask, scope: Scope, shelf: PassageTable, terms: Sequence[str]) -> dict[str, Rows]:
    """Rows of the shelf that hold each term. Of a common one that was asked before, only what is new is looked up."""
    known = {term: shelf.known.get(term, UNKNOWN) for term in terms}
    fresh = [term for term, (upto, _) in known.items() if upto < len(shelf)]
    ((newest,),) = ask("SELECT ifnull(max(id), 0) FROM memory")
    is_confined = len(shelf) < CONFINED_SHARE * newest
    within = "".join(f' AND "{token}"' for token in scope.terms) if is_confined else ""
    listed = ask(
        " UNION ALL ".join([LISTED] * len(fresh)),
        [arg for term in fresh for arg in (term, _quoted(term) + within, _last_id(shelf, known[term][0]))],
    ) if fresh else []  # fmt: skip
    for term, ids in listed:
        new = shelf.rows_of(np.fromstring(ids or "", np.int64, sep=","))
        known[term] = len(shelf), np.concatenate([known[term][1], new])
        if len(known[term][1]) >= COMMON_PASSAGES:
            if len(shelf.known) >= KNOWN_TERMS:
                shelf.known.clear()
            shelf.known[term] = known[term]
    return {term: rows[: np.searchsorted(rows, len(shelf))] for term, (_, rows) in known.items()}


def _last_id(shelf: PassageTable, upto: int) -> int:
    return int(shelf.ids[upto - 1]) if upto else 0


def _quoted(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'


def _json(values: Sequence[object]) -> str:
    return orjson.dumps(values).decode()
