"""
The store's SQL as PostgreSQL 15 reads it: the tables are the same, and every statement is right there.

The statements are those that tests give to the database; what it answers is looked at by these tests with
`--store postgres`.
"""

from __future__ import annotations

import ast
import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from palimpsest.store.engine import last_ids as last_ids  # says what its statements are on PostgreSQL
from palimpsest.store.engine.postgres.dialect import NOTHING, POSTGRES, TENANTS_TABLES
from palimpsest.store.engine.sqlite.tables import statements
from palimpsest.store.schema import OF_NO_TENANT, SCHEMA

from tests.servers import ADMIN, Server

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
COLLECTED = "TEST_STATEMENTS"  # the folder that a quick run has left them in; else they are run once more
CALLERS = ("store", "memory", "features", "commands", "edge/admin", "contract")
"""Folders of tests that call the store."""

NOT_YET = {
    r"^(?!.*memory_text).*\browid\b|\bsqlite_|\bpragma_|\bmemory_text_(?!content)": "what looks into a database file",
    r"^(?:EXPLAIN|PRAGMA|VACUUM)\b": "the care of that file",
}
"""What stands in statements that only SQLite is asked, and what they are about."""

OF_REQUESTS = (
    *("journal.py", "search/passages.py", "search/scope.py", "engine/full_text.py"),
    *(f"turns/{name}.py" for name in ("requests", "answers", "messages", "diffs", "costs", "turns")),
    *("turns/branch_heads.py", "turns/branch_writing.py"),
)
"""Files of the store whose statements a request waits for, or the archive of its turn."""

OF_THE_SERVER = {
    r"^SELECT (?:[\w, ]+) FROM \w+(?: WHERE \(.*?\) > \(.*?\))? ORDER BY [\w, ]+(?: DESC)* LIMIT": "copying all tables",
    r"^SELECT count\(\*\) FROM|^SELECT memory_text\.rowid, tokens": "how much there is, for figures and checks",
    r"^SELECT coalesce\(max\(id\), 0\) FROM memory$": "the newest passage of all",
    r"^SELECT id FROM memory WHERE id > \(SELECT coalesce": "the passages that have no vector yet",
    r"^SELECT (?:conversation\.public AS key|utc_day\()": "what requests cost, added up",
    r"^SELECT conversation\.public, tenant\.name, turn\.id|^SELECT name FROM tenant": "whose a turn is",
    r"\bmigration\b": "moving to another database",
}
"""What stands in statements that are about all tenants at once, and what they do."""

MOST_NAMELESS = {"of requests": 11, "of others": 290}
"""
Statements that find rows of tenants by their ids alone, eleven and some 270: there must never be more.

Of requests they rebuild a head that was replaced, read lost texts, take back a refused turn and name its user
late. Others erase, retire, check, extract facts and write items. Of these, tests happen to ask some more or fewer.
"""

CONDITIONS = ("Index Cond", "Recheck Cond", "Filter")

VIEWS = {"term"}
"""Tables of SQLite whose rows follow from others there: `postgres/full_text.sql`."""

KINDS = {"INTEGER": "bigint", "TEXT": "text", "REAL": "double precision", "BLOB": "bytea"}
COLUMNS = """
SELECT column_name, data_type, is_nullable = 'NO', coalesce(collation_name, '') FROM information_schema.columns
WHERE table_schema = 'public' AND table_name = %(table)s ORDER BY ordinal_position
"""
INDEXES = """
SELECT array(SELECT attname::text FROM unnest(indkey::int[]) WITH ORDINALITY AS one(number, place)
    JOIN pg_attribute ON attrelid = indrelid AND attnum = number ORDER BY place), indisunique, indpred IS NOT NULL
FROM pg_index WHERE indrelid = %(table)s::regclass
"""
FOREIGN = """
SELECT attname::text, confrelid::regclass::text FROM pg_constraint
JOIN pg_attribute ON attrelid = conrelid AND attnum = conkey[1] WHERE contype = 'f' AND conrelid = %(table)s::regclass
"""
TABLES = """
SELECT oid::regclass::text, relrowsecurity AND relforcerowsecurity AND EXISTS (
        SELECT 1 FROM pg_policy WHERE polrelid = pg_class.oid AND polcmd = '*' AND polpermissive),
    EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = pg_class.oid AND attname = 'tenant' AND attnotnull)
FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
"""
KEYS_WITHOUT_TENANT = """
SELECT indexrelid::regclass::text FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attname = 'tenant'
WHERE indrelid = %(table)s::regclass AND indisunique AND attnum <> ALL (indkey::int[])
UNION ALL
SELECT conname::text FROM pg_constraint
JOIN pg_attribute AS mine ON mine.attrelid = conrelid AND mine.attname = 'tenant'
LEFT JOIN pg_attribute AS theirs ON theirs.attrelid = confrelid AND theirs.attname = 'tenant'
WHERE contype = 'f' AND conrelid = %(table)s::regclass AND confrelid::regclass::text <> ALL (%(others)s)
    AND array_position(conkey, mine.attnum) IS DISTINCT FROM array_position(confkey, theirs.attnum)
"""


def of_tenant(key: tuple[str, ...]) -> tuple[str, ...]:
    """The columns of a key with those of the tenant."""
    return key if "tenant" in key else (*key, "tenant")


def wrong(server: Server, script: list[str], database: str) -> Mapping[int, str]:
    """The errors of statements, by their numbers."""
    announced = (f"\\warn number {number}\n{sql.strip().rstrip(';')};" for number, sql in enumerate(script))
    parts = (part.partition("\n") for part in server.psql("\n".join(announced), database).split("number ")[1:])
    return {int(number): error for number, _, error in parts if error}


def said_in(source: str) -> Iterator[str]:
    """Patterns of the strings in a file of Python; a word may stand in the place of a field."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            parts = (re.escape(part.value) if isinstance(part, ast.Constant) else r"\w*" for part in node.values)
            yield "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield re.escape(node.value)


def nodes_of(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The nodes of a plan of PostgreSQL's."""
    yield plan
    for part in plan.get("Plans", ()):
        yield from nodes_of(part)


def nameless_tables(base: psycopg.Connection[Any], sql: str) -> set[str]:
    """Of the tables of tenants that a statement looks through, those for which it does not say whose rows it means."""
    statement = POSTGRES[sql].strip()
    given = ", ".join(["NULL"] * len(set(re.findall(r"\$\d+", statement))))
    base.execute(f"PREPARE asked AS {statement}".encode())
    explained = f"EXPLAIN (VERBOSE, COSTS OFF, FORMAT JSON) EXECUTE asked{given and f'({given})'}"
    ((plans,),) = base.execute(explained.encode()).fetchall()
    base.execute("DEALLOCATE asked")
    nodes = [node for plan in plans if "Plan" in plan for node in nodes_of(plan["Plan"])]
    joined = " ".join(node["Join Filter"] for node in nodes if "Join Filter" in node)
    return {
        table
        for node in nodes
        if (table := node.get("Relation Name", "")) in TENANTS_TABLES
        and "Scan" in node["Node Type"]
        and f"{node['Alias']}.tenant" not in joined + " ".join(node.get(one, "") for one in CONDITIONS)
    }


@pytest.fixture(scope="module")
def of_the_store(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What the store gave to the database in the quick tests, without what they asked themselves."""
    if collected := os.environ.get(COLLECTED):
        folder = Path(collected)
    else:
        folder = tmp_path_factory.mktemp("statements")
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-m", "not slow", "--statements", folder]
        command += [f"tests/{name}" for name in CALLERS]
        subprocess.run(command, cwd=ROOT, check=False, stdout=subprocess.DEVNULL)  # one that fails says so elsewhere
    given = {sql for file in folder.iterdir() for sql in json.loads(file.read_text())}
    own = {pattern for file in (ROOT / "tests").rglob("*.py") for pattern in said_in(file.read_text())}
    of_tests = re.compile("|".join(one for one in own if re.match(r"\s*[A-Z]{4,}", one)), re.S)
    return sorted(sql for sql in given if not of_tests.fullmatch(sql))


def test_both_catalogues_have_the_same_columns_keys_and_indexes(server: Server) -> None:
    with closing(sqlite3.connect(":memory:")) as file, closing(psycopg.connect(server.url("empty"))) as base:
        for sql in statements(SCHEMA):
            file.execute(sql)
        tables = [name for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        tables = sorted(name for name in tables if not name.startswith("sqlite_") and name not in VIEWS)
        assert len(tables) > 30

        def of_server(sql: str, table: str) -> list[tuple[object, ...]]:
            return base.execute(sql, {"table": table}).fetchall()

        for table in tables:
            columns = [(name, KINDS[kind], bool(needed or key), "C" if kind == "TEXT" else "")
                       for _, name, kind, needed, _, key in file.execute(f"PRAGMA table_info({table})")]  # fmt: skip
            assert of_server(COLUMNS, table) == columns, table
            indexes = [
                (
                    tuple(name for _, _, name in file.execute(f"PRAGMA index_info({index})")),
                    bool(is_unique),
                    bool(partial),
                )
                for _, index, is_unique, _, partial in file.execute(f"PRAGMA index_list({table})")
            ]
            keys = sorted((key, name) for *_, name, kind, _, _, key in
                          ((0, *row) for row in file.execute(f"PRAGMA table_info({table})")) if key)  # fmt: skip
            primary = tuple(name for _, name in keys)
            if table not in OF_NO_TENANT:  # on the server its tenant stands in each key
                indexes = [
                    (of_tenant(names) if is_unique else names, is_unique, *rest) for names, is_unique, *rest in indexes
                ]
                primary = of_tenant(primary)
            expected = {*indexes, (primary, True, False)} if primary else {*indexes}
            assert {(tuple(names), *rest) for names, *rest in of_server(INDEXES, table)} == expected, table
            foreign = {(row[3], row[2]) for row in file.execute(f"PRAGMA foreign_key_list({table})")}
            assert {*of_server(FOREIGN, table)} == foreign, table


def test_each_key_of_a_tenants_rows_holds_the_tenant_and_a_policy_guards_them(server: Server) -> None:
    with closing(psycopg.connect(server.url("empty"))) as base:
        tables = {name: rest for name, *rest in base.execute(TABLES.encode()).fetchall()}
        of_tenants = tables.keys() - OF_NO_TENANT.keys() - {"palimpsest"}
        assert of_tenants > {"turn", "occurrence", "memory", "posting", "memory_text"}
        assert {name: rest for name, rest in tables.items() if (name in of_tenants) != all(rest)} == {}
        others = [*OF_NO_TENANT]
        for table in of_tenants:
            keys = base.execute(KEYS_WITHOUT_TENANT.encode(), {"table": table, "others": others}).fetchall()
            assert keys == [], table


def asked_of_postgresql(of_the_store: list[str]) -> list[str]:
    asks = re.compile(r"\s*(?:SELECT|INSERT|UPDATE|DELETE|WITH)\b")
    asked = [s for s in of_the_store if asks.match(s) and not any(re.search(words, s.strip()) for words in NOT_YET)]
    asked = [sql for sql in asked if POSTGRES[sql] != NOTHING]
    assert len(asked) > 400
    return asked


def test_statements_say_whose_rows_they_look_for(server: Server, of_the_store: list[str]) -> None:
    """As the server plans them: whether a table is read by a condition on the tenant, be it by way of a join."""
    store = ROOT / "proxy/palimpsest/store"
    of_requests = [one for name in OF_REQUESTS for one in said_in((store / name).read_text()) if len(one) > 30]
    found: dict[str, list[str]] = {"of requests": [], "of others": []}
    with closing(psycopg.connect(server.url("empty"), user=ADMIN, autocommit=True, prepare_threshold=None)) as base:
        for setting in ("plan_cache_mode = force_generic_plan", "enable_hashjoin = off", "enable_mergejoin = off"):
            base.execute(f"SET {setting}".encode())
        for sql in asked_of_postgresql(of_the_store):
            if any(re.search(words, " ".join(sql.split())) for words in OF_THE_SERVER):
                continue
            if nameless_tables(base, sql):
                is_of_requests = any(re.search(pattern, sql) for pattern in of_requests)
                found["of requests" if is_of_requests else "of others"].append(sql)
    for kind, most in MOST_NAMELESS.items():
        assert len(found[kind]) <= most, "\n---\n".join(found[kind])


def test_postgresql_prepares_every_statement(server: Server, of_the_store: list[str]) -> None:
    asked = asked_of_postgresql(of_the_store)
    for sql in of_the_store:
        if sql.startswith("CREATE TABLE IF NOT EXISTS"):  # what is there for a while only, as during a migration
            server.psql(sql, "empty")
    script = [f"PREPARE p{number} AS {POSTGRES[sql].strip()}" for number, sql in enumerate(asked)]
    found = wrong(server, script, "empty")
    assert {asked[number]: error for number, error in found.items()} == {}
