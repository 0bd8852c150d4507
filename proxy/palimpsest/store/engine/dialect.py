"""
Dialects: how a statement of `store/` reads in the SQL of one database.

Statements are standard SQL, with these names for what the standard has no common form of:

    numbers(list)  texts(list)        rows of a JSON list: `key`, its place, and `value`
    arrays(list)  item(value, n)      the same of lists of lists, and the n-th of one
    counts(object)                    rows of a JSON object of numbers
    field(text, 'name')               a field of a JSON text ('a.b': of an object in it), NULL where it has none
    with_field(text, 'name', value)   the text with that field
    joined(bytes, bytes)              both, one behind the other
    bytes_of(number)                  its decimal digits, as bytes
    zeros_for(text)                   a text of as many bytes, all "0"
    utc_day(seconds)                  2026-11-22
    glob(pattern, text)               whether the text matches: * ? [...]
    free_pages()  page_bytes()        of it, pages that can be given back, and how large one is
    stored_bytes()                    how large the whole database is
    passages_holding(words, id)       the passages behind that one that the full-text index finds, in one text
    has_table('name')                 whether there is a table of that name
    last_id                           a table: by `name` of another table the last id given there, `seq`
    INNER JOIN                        a JOIN whose left side is read first, whatever the planner thinks of it
    /*+ INDEX(name) */                behind a table: the index to read it by
    /*+ NO_INDEX */                   in front of a column: no index of it
    ON CONFLICT (tenant, id)          of a table of tenants' rows; SQLite's keys are the ids alone
    turn.id = link.turn               of rows of tenants; on PostgreSQL their tenants are compared with them
    FOR UPDATE SKIP LOCKED            behind a SELECT in a transaction: rows that nobody else is about to change
    FOR KEY SHARE                     likewise: rows that nobody removes until its end

SQLite has no functions written in SQL, so there these are replaced; PostgreSQL defines them (`postgres/functions.sql`)
and has the rest of its own in `postgres/dialect.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

Rule = tuple[str, str | Callable[[re.Match[str]], str]]
"""A regular expression, and what stands in the place of what it matches."""


class Dialect(dict[str, str]):
    """
    By each statement as `store/` writes it, the same in one database's SQL; made when it is first asked for.

    What is asked for is kept: statements are composed of constants, and never of what people say.
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        super().__init__()
        self._rules = [(re.compile(pattern), text) for pattern, text in rules]

    def __missing__(self, statement: str) -> str:
        text = statement
        for pattern, replacement in self._rules:
            text = pattern.sub(replacement, text)
        self[statement] = text
        return text


HOLDING = r"(SELECT group_concat(rowid) FROM memory_text WHERE memory_text MATCH \1 AND rowid > \2)"
SIZE = r"length(CAST(\1 AS BLOB))"

SQLITE = Dialect(
    (
        (r"\b(?:numbers|texts|arrays|counts)\(", "json_each("),
        (r"\bitem\(([\w.]+), (\d)\)", r"json_extract(\1, '$[\2]')"),
        (r"\bfield\(([\w.]+), '([\w.]+)'\)", r"json_extract(\1, '$.\2')"),
        (r"\bwith_field\(([\w.]+), '(\w+)',", r"json_set(\1, '$.\2',"),
        (r"\bjoined\(([\w.]+), (\?\d?)\)", r"CAST(\1 || \2 AS BLOB)"),
        (r"\bbytes_of\(([\w.]+)\)", r"CAST(\1 AS BLOB)"),
        (r"\bzeros_for\(([\w.]+)\)", f"substr(hex(zeroblob(({SIZE} + 1) / 2)), 1, {SIZE})"),
        (r"\butc_day\(([\w.]+)\)", r"strftime('%Y-%m-%d', \1, 'unixepoch')"),
        (r"\bstored_bytes\(\)", "(SELECT page_count * page_size FROM pragma_page_count, pragma_page_size)"),
        (r"\bpassages_holding\((\w+), (\w+)\)", HOLDING),
        (r"\bfree_pages\(\)", "(SELECT freelist_count FROM pragma_freelist_count)"),
        (r"\bpage_bytes\(\)", "(SELECT page_size FROM pragma_page_size)"),
        (r"\bhas_table\(('\w+')\)", r"EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = \1)"),
        (r"\bgreatest\(", "max("),
        (r"\bleast\(", "min("),
        (r"\blast_id\b", "sqlite_sequence"),
        (r"\bINNER JOIN\b", "CROSS JOIN"),
        (r"/\*\+ INDEX\((\w+)\) \*/", r"INDEXED BY \1"),
        (r"/\*\+ NO_INDEX \*/ ", "+"),
        (r" FOR (?:UPDATE SKIP LOCKED|KEY SHARE(?: OF \w+)?)\b", ""),  # nobody else writes
        (r"\bON CONFLICT \(tenant, (turn|occurrence|memory|item|conversation)\)", r"ON CONFLICT (\1)"),
        (r"\bIS NOT DISTINCT FROM\b", "IS"),  # SQLite knows the long forms from 3.39 on
        (r"\bIS DISTINCT FROM\b", "IS NOT"),
    )
)
