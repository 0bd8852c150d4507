"""
The full-text index: which passages hold a term, in a table of SQLite's FTS5 or that of `postgres/full_text.sql`.

Tokens are what `core/archive/chunking.py` made, split at spaces only: signs that join an identifier do not part it. A
row ends with the two tokens of `digest.scope_terms`. Text never reaches MATCH raw: it comes as terms, quoted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import orjson

from palimpsest.store.engine import Ask, Row, Transaction

CONFINED_SHARE = 0.5  # of all passages: of a larger scope the token's list is so long that it takes 2 ms to follow

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
# Beside a term stands the token of a scope, unless that holds most passages there are: its list would be a long one.
FOUND = """
WITH held AS (
    SELECT term.term, memories, CAST(item(value, 1) AS BIGINT) AS known, '"' || replace(term.term, '"', '""') || '"'
        || CASE WHEN ?6 < ?7 * (SELECT max(id) FROM memory) THEN ?5 ELSE '' END AS words,
        row_number() OVER rarest AS place, sum(memories) OVER rarest AS total
    FROM arrays(?2) AS asked INNER JOIN term ON term.tenant = ?1 AND term.term = item(value, 0)
    WINDOW rarest AS (ORDER BY memories, term.term))
SELECT term, memories, CASE WHEN place <= ?3 AND total <= ?4 THEN coalesce(passages_holding(words, known), '') END
FROM held ORDER BY place
"""
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


def found(
    ask: Ask,
    tenant: int,
    wanted: Sequence[tuple[str, int]],
    most: tuple[int, int],
    within: Sequence[str],
    passages: int,
) -> list[tuple[str, int, str | None]]:
    """
    Which passages hold each term: all of the tenant's, and perhaps others.

    Args:
        wanted: different terms, each with the id of the last passage that is already known.
        most: so many terms, the rarest, and only while so many passages hold them.
        within: tokens that passages should hold too, see `Scope.terms`: those that do not may be left out.
        passages: how many do, as far as is known.

    Returns:
        Each term that any of the tenant's passages holds, the rarest first: how many, and the ids of those behind the
        last one that is known, rising, with commas between. None: it is not one of the terms that are looked up.
    """
    also = "".join(f" AND {_quoted(token)}" for token in within)
    args = (tenant, orjson.dumps(wanted).decode(), *most, also, passages, CONFINED_SHARE)
    return [(term, int(held), listed) for term, held, listed in ask(FOUND, args)] if wanted else []


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
