"""
Terms as rows: how many passages of a tenant hold each one, and the full-text index that says which.

Text never reaches MATCH raw: it comes as terms of `core/archive/chunking.py`, quoted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import orjson

from palimpsest.store.connection import Ask, Row, Transaction

LISTED = "SELECT ?, group_concat(rowid) FROM memory_text WHERE memory_text MATCH ? AND rowid > ?"


def passages_holding(ask: Ask, tenant: int, terms: Sequence[str]) -> Mapping[str, int]:
    """By term, how many passages of the tenant hold it; terms that none holds are left out."""
    rows: list[Row] = ask(
        "SELECT term, memories FROM term WHERE tenant = ? AND term IN (SELECT value FROM json_each(?))",
        (tenant, orjson.dumps(terms).decode()),
    )
    return dict(rows)


def postings(ask: Ask, wanted: Sequence[tuple[str, int]], within: Sequence[str] = ()) -> list[tuple[str, str]]:
    """
    Which passages hold each term, of all tenants.

    Args:
        wanted: different terms, each with the id of the last passage that is already known.
        within: tokens that a passage must hold too; see `Scope.terms`.

    Returns:
        Each term with the ids of the passages behind that last one, rising, with commas between.
    """
    if not wanted:
        return []
    also = "".join(f" AND {_quoted(token)}" for token in within)
    args = [arg for term, last_id in wanted for arg in (term, _quoted(term) + also, last_id)]
    return [(term, listed or "") for term, listed in ask(" UNION ALL ".join([LISTED] * len(wanted)), args)]


def merge_some(transaction: Transaction, pages: int) -> int:
    """
    Merge segments of the full-text index, so that words that were deleted go.

    Args:
        pages: about how much is written, in pages of 4 kB; negative begins a merge of everything.

    Returns:
        How many rows changed; fewer than 2 mean that there was nothing to merge (SQLite's documentation of FTS5).
    """
    ((before,),) = transaction.read("SELECT total_changes()")
    transaction.write("INSERT INTO memory_text(memory_text, rank) VALUES ('merge', ?)", [(pages,)])
    ((after,),) = transaction.read("SELECT total_changes()")
    return int(after - before)


def optimise(transaction: Transaction) -> None:
    """Merge all segments of the full-text index into one, at once."""
    transaction.write("INSERT INTO memory_text(memory_text) VALUES ('optimize')")


def _quoted(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'
