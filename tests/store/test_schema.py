"""Full text keeps what belongs together together, and apart what belongs to different tenants."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256

import pytest
from palimpsest.core.archive.chunking import scope_terms, terms
from palimpsest.store.engine import full_text
from palimpsest.store.engine.sqlite.tables import statements
from palimpsest.store.schema import SCHEMA
from palimpsest.store.version import VERSION

RESERVED = """
all analyse analyze and any array as asc asymmetric authorization binary both case cast check collate collation column
concurrently constraint create cross current_catalog current_date current_role current_schema current_time
current_timestamp current_user default deferrable desc distinct do else end except false fetch for foreign freeze from
full grant group having ilike in initially inner intersect into is isnull join lateral leading left like limit localtime
localtimestamp natural not notnull null offset on only or order outer overlaps placing primary references returning
right select session_user similar some symmetric system_user table tablesample then to trailing true union unique user
using variadic verbose when where window with
"""
"""Words that no column may have for a name without quotes: appendix C of PostgreSQL's manual, version 15."""


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as db:
        for statement in statements(SCHEMA + full_text.MAKE):
            db.execute(statement)
        yield db


def found(db: sqlite3.Connection, *wanted: str) -> list[int]:
    match = " AND ".join('"' + term.replace('"', '""') + '"' for term in wanted)
    return [row[0] for row in db.execute("SELECT rowid FROM memory_text WHERE memory_text MATCH ?", (match,))]


def test_every_term_is_one_token(db: sqlite3.Connection) -> None:
    said = terms("See src/app.py:12, MAX_TOKENS=5, c:\\x\\y, v1.2.3-rc1, naïve 日本語, #1234, user@example.com, don't")
    db.execute("INSERT INTO memory_text(rowid, tokens) VALUES (1, ?)", (" ".join(said),))
    db.execute("CREATE VIRTUAL TABLE words USING fts5vocab(memory_text, row)")
    assert {row[0] for row in db.execute("SELECT term FROM words")} == set(said)
    assert all(found(db, term) == [1] for term in said)


def test_no_text_forges_a_scope(db: sqlite3.Connection) -> None:
    mine, theirs = scope_terms(1, 7), scope_terms(2, 8)
    forged = terms(" ".join(theirs) + f" t2 c8 '{theirs[0]}'")
    db.execute("INSERT INTO memory_text(rowid, tokens) VALUES (1, ?)", (" ".join((*forged, *mine)),))
    assert found(db, mine[0]) == found(db, mine[1]) == [1]
    assert found(db, theirs[0]) == found(db, theirs[1]) == []


def test_ids_are_never_given_twice(db: sqlite3.Connection) -> None:
    for table in ("tenant", "conversation", "content", "turn", "occurrence", "memory", "vector"):
        (sql,) = db.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        assert "PRIMARY KEY AUTOINCREMENT" in sql, table


def test_tables_change_with_their_version_only(db: sqlite3.Connection) -> None:
    columns = [
        (table, name, kind, required, default)
        for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        if not table.startswith(("sqlite_", "memory_text_"))
        for _, name, kind, required, default, _ in sorted(db.execute(f"PRAGMA table_info({table})"))
    ]
    digest = sha256(repr(columns).encode()).hexdigest()[:16]
    assert (VERSION, digest) == (25, "8f0e548555e40d7f"), "raise VERSION, and renew both"


def test_no_name_is_reserved_in_postgresql(db: sqlite3.Connection) -> None:
    tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    names = {row[1] for table in tables for row in db.execute(f"PRAGMA table_info({table})")}
    assert len(names) > 80
    assert (names | set(tables)) & set(RESERVED.split()) == set()


def test_statements_come_one_by_one() -> None:
    script = (
        "CREATE TABLE a(x); -- why\nCREATE TRIGGER t AFTER DELETE ON a BEGIN\nDELETE FROM a; DELETE FROM a;\nEND;\n"
    )
    assert [s.split()[1] for s in statements(script)] == ["TABLE", "TRIGGER"]
