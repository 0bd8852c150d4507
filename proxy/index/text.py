"""
Which passages hold a question's words? SQLite's full-text index, asked one term at a time inside one scope.

Each term's own list of passages, not one ranked list for all: the ranking counts the words of a passage's surroundings
too, with the statistics of the scope, so that nobody else's text can reorder a result. User text never reaches MATCH
raw: it comes as terms of `core/digest.py`, quoted. What others said is not on the scope's shelf, and so left out; where
they said most of what is stored, the scope's token stands next to the term, and it is not even read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import orjson

from proxy.core.ranking import Rows, Shelf
from proxy.domain import Reach
from proxy.index.scope import Scope
from proxy.ports import Ask

MAX_TERMS = 16  # the rarest of a question: more only repeat what it is about
MAX_HITS = 20_000  # of all terms outside one conversation, 1 ms: the commonest words of a large scope say nothing
CONFINED_SHARE = 0.5  # of all passages: of a larger scope the token's list is so long that it takes 2 ms to follow


@dataclass(frozen=True, slots=True)
class Found:
    """Terms with the rows of the shelf that hold them; and the terms that nothing on the shelf holds."""

    rows: Mapping[str, Rows]
    absent: tuple[str, ...]


def find(ask: Ask, scope: Scope, shelf: Shelf, terms: Sequence[str]) -> Found:
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
    ((newest,),) = ask("SELECT ifnull(max(id), 0) FROM memory")
    is_confined = len(shelf) < CONFINED_SHARE * newest
    within = "".join(f' AND "{token}"' for token in scope.terms) if is_confined else ""
    listed = ask(
        " UNION ALL ".join(["SELECT ?, group_concat(rowid) FROM memory_text WHERE memory_text MATCH ?"] * len(chosen)),
        [arg for term in chosen for arg in (term, _quoted(term) + within)],
    )
    every = {term: shelf.rows_of(np.fromstring(ids, np.int64, sep=",")) for term, ids in listed if ids}
    found = {term: rows for term, rows in every.items() if len(rows)}
    unasked = {*counted} - {*chosen}
    return Found(found, tuple(term for term in terms if term not in found and term not in unasked))


def _quoted(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'


def _json(values: Sequence[object]) -> str:
    return orjson.dumps(values).decode()
