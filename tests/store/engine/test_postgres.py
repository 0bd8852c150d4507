"""
Every statement of the store as PostgreSQL 15 reads it: whether its grammar, names and types are right there.

The statements are those that tests give to the database; none of PostgreSQL's answers is looked at yet.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from shutil import chown
from tempfile import TemporaryDirectory

import palimpsest
import pytest
from palimpsest.store.engine.dialect import POSTGRES
from palimpsest.store.engine.sqlite.tables import statements
from palimpsest.store.schema import SCHEMA

from tests.clients.cli.program import folder as folder_of_clients

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
STORE = Path(palimpsest.__path__[0]) / "store"
PROGRAMS = Path("/usr/lib/postgresql/15/bin")
USER = "nobody"  # PostgreSQL does not serve root
COLLECTED = "TEST_STATEMENTS"  # the folder that a quick run has left them in; else they are run once more
CALLERS = ("store", "index", "memory", "transfer", "mcp", "commands", "edge/admin", "contract")
"""Folders of tests that call the store."""

NOT_YET = {
    "memory_text": "the full-text index",
    r"\browid\b|\bsqlite_|\bpragma_": "what looks into a database file",
    r"^(?:EXPLAIN|PRAGMA|VACUUM|SELECT total_changes)\b": "the care of that file",
}
"""What stands in statements that PostgreSQL needs in another form, and what they are about."""

Psql = Callable[[str], Mapping[int, str]]


@pytest.fixture(scope="module")
def psql() -> Iterator[Psql]:
    """Runs a script on a server of its own, and returns the errors by the numbers that it announced in front."""
    if not (PROGRAMS / "initdb").exists():
        reason = folder_of_clients() / "no-postgresql-15"
        why = reason.read_text() if reason.exists() else "not installed, see scripts/clients"
        if os.environ.get("PALIMPSEST_CLIENTS") == "required" and not reason.exists():
            pytest.fail(f"postgresql-15: {why}")
        pytest.skip(f"needs the Debian package postgresql-15: {why}")
    with TemporaryDirectory(prefix="palimpsest-postgres-") as name:
        folder = Path(name)
        other = {}
        if os.geteuid() == 0:
            chown(folder, USER)
            other = {"user": USER, "group": "nogroup", "extra_groups": []}
        data = folder / "data"

        def server(program: str, *arguments: str) -> None:
            command = [PROGRAMS / program, "-D", data, *arguments]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder, **other)

        def run(script: str) -> Mapping[int, str]:
            command = [PROGRAMS / "psql", "-XqAt", "-h", folder, "-U", "palimpsest", "-d", "postgres"]
            told = subprocess.run(command, input=script, capture_output=True, text=True, check=True).stderr
            parts = (part.partition("\n") for part in told.split("number ")[1:])
            return {int(number): error for number, _, error in parts if error}

        server("initdb", "-U", "palimpsest", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
        server("pg_ctl", "-w", "-l", str(folder / "log"), "-o", options, "start")
        try:
            yield run
        finally:
            server("pg_ctl", "-m", "immediate", "stop")


def numbered(script: list[str]) -> str:
    """A script whose statements announce their numbers where errors go."""
    return "\n".join(f"\\warn number {number}\n{sql.strip().rstrip(';')};" for number, sql in enumerate(script))


def schema() -> list[str]:
    """What makes the tables."""
    return [(STORE / "engine/postgres.sql").read_text(), *(POSTGRES[sql] for sql in statements(SCHEMA))]


def said_in(source: str) -> Iterator[str]:
    """Patterns of the strings in a file of Python; a word may stand in the place of a field."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            parts = (re.escape(part.value) if isinstance(part, ast.Constant) else r"\w*" for part in node.values)
            yield "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield re.escape(node.value)


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


def test_tables_are_made_in_postgresql(psql: Psql) -> None:
    assert psql("CREATE SCHEMA tables; SET search_path = tables;" + numbered(schema())) == {}


def test_postgresql_prepares_every_statement(psql: Psql, of_the_store: list[str]) -> None:
    asks = re.compile(r"\s*(?:SELECT|INSERT|UPDATE|DELETE|WITH)\b")
    asked = [s for s in of_the_store if asks.match(s) and not any(re.search(words, s.strip()) for words in NOT_YET)]
    assert len(asked) > 400
    made = len(script := schema())
    script += [f"PREPARE p{number} AS {POSTGRES[sql].strip()}" for number, sql in enumerate(asked)]
    wrong = psql(numbered(script))
    assert {asked[number - made] if number >= made else script[number]: error for number, error in wrong.items()} == {}
