"""Full text keeps what belongs together together, and apart what belongs to different tenants."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from palimpsest.core.archive.chunking import scope_terms, terms
from palimpsest.store.database import Database
from palimpsest.store.schema import APPLICATION_ID, M001, MEMORY_TEXT, MIGRATIONS, statements


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as db:
        for statement in (*statements(M001), MEMORY_TEXT):
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


@pytest.mark.parametrize("version", range(1, len(MIGRATIONS)))
async def test_database_of_an_older_version_keeps_what_it_holds_and_gets_the_rest(tmp_path: Path, version: int) -> None:
    path = tmp_path / "journal.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as old:

        async def run(sql: str) -> None:
            old.execute(sql)

        for migrate in MIGRATIONS[:version]:
            await migrate(run)
        old.execute("INSERT INTO tenant(name) VALUES ('acme')")
        old.execute(f"PRAGMA user_version = {version}")
        old.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    for name in ("migrated", "new"):
        database = Database(tmp_path / f"{name}.db" if name == "new" else path)
        await database.open()
        tables = await database.read("SELECT name, sql FROM sqlite_master ORDER BY name")
        if name == "migrated":
            migrated = tables
            assert await database.read("SELECT name FROM tenant") == [("acme",)]
        await database.close()
    assert migrated == tables


def test_statements_come_one_by_one() -> None:
    script = (
        "CREATE TABLE a(x); -- why\nCREATE TRIGGER t AFTER DELETE ON a BEGIN\nDELETE FROM a; DELETE FROM a;\nEND;\n"
    )
    assert [s.split()[1] for s in statements(script)] == ["TABLE", "TRIGGER"]
