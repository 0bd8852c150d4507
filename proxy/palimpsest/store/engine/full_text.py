"""
The full-text index: which passages hold a term, in a table of SQLite's FTS5 or that of `postgres/full_text.sql`.

Tokens are what `core/archive/chunking.py` made, split at spaces only: signs that join an identifier do not part it. A
row ends with the two tokens of `digest.scope_terms`. Text never reaches MATCH raw: it comes as terms, quoted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import orjson

from palimpsest.store.engine import Ask, Row, Transaction

MAKE = r"""
CREATE VIRTUAL TABLE memory_text USING fts5(tokens, tokenize = "ascii tokenchars '_./:@\#+-'");
"""
CLEAR = (("DROP TABLE memory_text", [()]), (MAKE, [()]))
"""Statements that leave the index empty: much sooner than its rows would go."""

ADD = "INSERT INTO memory_text(rowid, tokens) VALUES (?, ?)"  # id and tokens of a passage, with spaces between
COUNT = """
INSERT INTO term(tenant, term, memories) SELECT ?1, key, value FROM counts(?2) WHERE true
ON CONFLICT (tenant, term) DO UPDATE SET memories = term.memories + excluded.memories
"""
COUNTED = "SELECT term, memories FROM term WHERE tenant = ? AND term IN (SELECT value FROM texts(?))"
POSTINGS = "SELECT ?, passages_holding(?, ?, ?)"
THESE = "rowid IN (SELECT value FROM numbers(?))"
ZEROS = f"UPDATE memory_text SET tokens = zeros_for(tokens) WHERE {THESE}"
MERGE = "INSERT INTO memory_text(memory_text, rank) VALUES ('merge', ?)"
OPTIMISE = "INSERT INTO memory_text(memory_text) VALUES ('optimize')"
CHANGES = "SELECT total_changes()"
NOT_IN_INDEX = "SELECT count(*) FROM memory LEFT JOIN memory_text_content AS c ON c.id = memory.id WHERE c.id IS NULL"
IN_INDEX_ALONE = (
    "SELECT count(*) FROM memory_text_content AS c LEFT JOIN memory ON memory.id = c.id WHERE memory.id IS NULL"
)
INDEXED = """
SELECT memory_text.rowid, tokens, memory.tenant, memory.conversation FROM memory_text
JOIN memory ON memory.id = memory_text.rowid WHERE memory_text.rowid > ? ORDER BY memory_text.rowid LIMIT ?
"""


def count(transaction: Transaction, held: Mapping[int, Mapping[str, int]]) -> None:
    """Note that so many more passages of each tenant hold each term."""
    rows = [(tenant, orjson.dumps(dict(sorted(terms.items()))).decode()) for tenant, terms in held.items()]
    transaction.write(COUNT, rows)


def counted(ask: Ask, tenant: int, terms: Sequence[str]) -> Mapping[str, int]:
    """By term, how many passages of the tenant hold it; terms that none holds are left out."""
    rows: list[Row] = ask(COUNTED, (tenant, orjson.dumps(terms).decode()))
    return dict(rows)


def tokens_of(ask: Ask, passages: str) -> list[Row]:
    """The tokens of each of these passages (a JSON list), in rows of one column."""
    return ask(f"SELECT tokens FROM memory_text WHERE {THESE}", (passages,))


def put_zeros(transaction: Transaction, passages: str) -> None:
    """Put as many zeros in the place of the tokens of these passages (a JSON list)."""
    transaction.write(ZEROS, [(passages,)])


def remove(transaction: Transaction, passages: str) -> None:
    """Take these passages (a JSON list) out of the index."""
    transaction.write(f"DELETE FROM memory_text WHERE {THESE}", [(passages,)])


def indexed_after(ask: Ask, passage: int, limit: int) -> list[Row]:
    """The next passages in the index: id, tokens, tenant, conversation."""
    return ask(INDEXED, (passage, limit))


def strays(ask: Ask) -> tuple[int, int]:
    """How many passages are missing from the index, and how many of its rows have no passage."""
    return int(ask(NOT_IN_INDEX)[0][0]), int(ask(IN_INDEX_ALONE)[0][0])


def postings(
    ask: Ask, tenant: int, wanted: Sequence[tuple[str, int]], within: Sequence[str] = ()
) -> list[tuple[str, str]]:
    """
    Which passages hold each term: all of the tenant's, and perhaps others.

    Args:
        wanted: different terms, each with the id of the last passage that is already known.
        within: tokens that passages should hold too, see `Scope.terms`: those that do not may be left out.

    Returns:
        Each term with the ids of the passages behind that last one, rising, with commas between.
    """
    if not wanted:
        return []
    also = "".join(f" AND {_quoted(token)}" for token in within)
    args = [arg for term, last_id in wanted for arg in (term, tenant, _quoted(term) + also, last_id)]
    return [(term, listed or "") for term, listed in ask(" UNION ALL ".join([POSTINGS] * len(wanted)), args)]


def merge_some(transaction: Transaction, pages: int) -> int:
    """
    Merge segments of the index, so that words that were deleted go.

    Args:
        pages: about how much is written, in pages of 4 kB; negative begins a merge of everything.

    Returns:
        How many rows changed; fewer than 2 mean that there was nothing to merge (SQLite's documentation of FTS5).
    """
    ((before,),) = transaction.read(CHANGES)
    transaction.write(MERGE, [(pages,)])
    ((after,),) = transaction.read(CHANGES)
    return int(after - before)


def optimise(transaction: Transaction) -> None:
    """Merge all segments of the index into one, at once."""
    transaction.write(OPTIMISE)


def _quoted(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'
