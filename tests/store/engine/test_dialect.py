"""Statements of `store/` in the SQL of one database."""

from __future__ import annotations

import sqlite3

import pytest
from palimpsest.store.engine.dialect import SQLITE
from palimpsest.store.engine.postgres.dialect import POSTGRES


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        ("SELECT value FROM numbers('[3, 1]')", [(3,), (1,)]),
        ("SELECT key, value FROM texts('[\"a\"]')", [(0, "a")]),
        ("SELECT item(value, 1), item(value, 0) FROM arrays('[[\"a\", 7]]')", [(7, "a")]),
        ("SELECT key, value FROM counts('{\"a\": 7}')", [("a", 7)]),
        ("SELECT field(it, 'a.b'), field(it, 'c') FROM (SELECT '{\"a\": {\"b\": 1}}' AS it)", [(1, None)]),
        ("SELECT with_field(it, 'a', 2) FROM (SELECT '{\"a\": 1}' AS it)", [('{"a":2}',)]),
        ("SELECT zeros_for(it) FROM (SELECT 'grün' AS it)", [("00000",)]),
        ("SELECT zeros_for(it) FROM (SELECT '' AS it)", [("",)]),
        ("SELECT bytes_of(it) FROM (SELECT -12 AS it)", [(b"-12",)]),
        ("SELECT utc_day(it) FROM (SELECT 86399.5 AS it)", [("1970-01-01",)]),
        ("SELECT greatest(1, 2), least(1, 2), max(it) FROM (SELECT 5 AS it)", [(2, 1, 5)]),
        ("SELECT NULL IS NOT DISTINCT FROM NULL, 1 IS DISTINCT FROM NULL", [(1, 1)]),
    ],
)
def test_sqlite_knows_every_name(statement: str, wanted: list[tuple[object, ...]]) -> None:
    assert sqlite3.connect(":memory:").execute(SQLITE[statement]).fetchall() == wanted


def test_bytes_stay_bytes_behind_one_another() -> None:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE t(x BLOB)")
    database.execute("INSERT INTO t VALUES (?)", (b"\xff",))
    assert database.execute(SQLITE["SELECT joined(x, ?) FROM t"], (b"\x00\xfe",)).fetchall() == [(b"\xff\x00\xfe",)]


def test_sqlite_joins_in_the_order_and_by_the_index_that_a_statement_names() -> None:
    database = sqlite3.connect(":memory:")
    database.executescript("CREATE TABLE t(a, b, c); CREATE INDEX by_a ON t(a); CREATE INDEX by_b ON t(b)")

    def plan(statement: str) -> list[str]:
        return [row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {SQLITE[statement]}")]

    assert "by_b" in plan("SELECT c FROM t /*+ INDEX(by_b) */ WHERE a = 1 AND b = 2")[0]
    assert "by_b" in plan("SELECT c FROM t WHERE /*+ NO_INDEX */ a = 1 AND b = 2")[0]
    first, _ = plan("SELECT u.c FROM t AS u INNER JOIN t AS v ON v.a = u.b WHERE v.b = 2")
    assert "SCAN u" in first


def test_arguments_of_postgresql_are_numbered() -> None:
    assert POSTGRES["SELECT '?' WHERE a = ? AND b = ?"] == "SELECT '?' WHERE a = $1 AND b = $2"
    assert POSTGRES["SELECT ?2 WHERE a = ?1"] == "SELECT $2 WHERE a = $1"
    assert POSTGRES["WHERE a = :one OR b = :two OR c = :one"] == "WHERE a = $1 OR b = $2 OR c = $1"


def test_rows_of_tenants_are_joined_by_their_tenants_too_on_postgresql() -> None:
    joined = "SELECT 1 FROM link JOIN turn AS one ON one.id = link.turn"
    assert POSTGRES[joined] == f"{joined} AND one.tenant = link.tenant"
    within = "DELETE FROM turn WHERE EXISTS (SELECT 1 FROM head WHERE head.turn = turn.id AND head.lost = $1)"
    assert POSTGRES[within] == within.replace("= turn.id", "= turn.id AND head.tenant = turn.tenant")
    for other in (
        "SELECT 1 FROM conversation JOIN tenant ON tenant.id = conversation.tenant",
        "SELECT 1 FROM numbers($1) AS asked JOIN turn ON turn.id = asked.value",
        "SELECT 1 FROM retirement JOIN retired ON retired.retirement = retirement.id",
        "SELECT 1 FROM turn WHERE turn.id = turn.parent",
    ):
        assert POSTGRES[other] == other
