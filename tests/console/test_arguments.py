"""Whatever cannot be undone is shown and asked for: at a terminal, and elsewhere by `--yes`."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import orjson
import pytest

from tests.commands.test_cli import ROOT, palimpsest
from tests.databases import database_in
from tests.remembered import Past
from tests.running import rows, store_of
from tests.talking import NOW

pytestmark = pytest.mark.slow

KEPT = {"PALIMPSEST_FACTS__POLICY": "use"}


def at_a_terminal(answer: str, *arguments: str, env: Mapping[str, str]) -> tuple[int, str]:
    """The status of a command that is given this answer on a terminal of its own, and all that the terminal shows."""
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "palimpsest", *arguments]
    env = os.environ | store_of(arguments) | env
    process = subprocess.Popen(words, cwd=ROOT, env=env, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    os.write(ours, f"{answer}\n".encode())
    shown = b""
    with suppress(OSError):  # Linux says so when the program has ended
        while piece := os.read(ours, 4096):
            shown += piece
    os.close(ours)
    return process.wait(), " ".join(shown.decode().split())


@pytest.fixture
async def data(tmp_path: Path) -> Path:
    """A data folder with two messages, one of which states a fact."""
    database = database_in(tmp_path)
    await database.open()
    await Past(database).say("I live in Lisbon.", "Noted.", user="ann", created_at=NOW)
    await database.close()
    assert palimpsest("facts", "rebuild", "--data", str(tmp_path), env=KEPT).returncode == 0
    return tmp_path


@pytest.mark.parametrize("answer", ["no", "", "y"])
@pytest.mark.parametrize("arguments", [["forget", "--user", "ann"], ["facts", "forget"]])
def test_anything_but_yes_erases_nothing(data: Path, arguments: list[str], answer: str) -> None:
    id = [fact_of(data)] if arguments[0] == "facts" else []
    status, shown = at_a_terminal(answer, *arguments, *id, "--data", str(data), env=KEPT)
    assert (status, "Type yes" in shown) == (1, True), shown
    assert rows(data, "SELECT count(*) FROM fact") == [(1,)]
    assert rows(data, "SELECT count(*) FROM occurrence") == [(2,)]


def test_a_fact_is_shown_before_it_is_forgotten(data: Path) -> None:
    forget = ("facts", "forget", fact_of(data), "--data", str(data))
    unasked = palimpsest(*forget, env=KEPT)
    assert (unasked.returncode, unasked.stdout) == (2, "")
    assert "user: home" in unasked.stderr and "add --yes" in unasked.stderr
    assert rows(data, "SELECT count(*) FROM fact") == [(1,)]
    status, shown = at_a_terminal("yes", *forget, env=KEPT)
    assert (status, "Lisbon" in shown.partition("Type yes")[0]) == (0, True), shown
    assert rows(data, "SELECT count(*) FROM fact") == [(0,)]


def test_a_key_is_shown_before_it_is_revoked(data: Path) -> None:
    made = orjson.loads(palimpsest("key", "create", "laptop", "--json", "--data", str(data)).stdout)
    revoke = ("key", "revoke", made["id"], "--data", str(data))
    unasked = palimpsest(*revoke)
    assert (unasked.returncode, unasked.stdout) == (2, "")
    assert "laptop" in unasked.stderr and "add --yes" in unasked.stderr
    assert at_a_terminal("no", *revoke, env={})[0] == 1
    assert rows(data, "SELECT revoked_at FROM proxy_key") == [(None,)]
    status, shown = at_a_terminal("yes", *revoke, env={})
    assert (status, "laptop" in shown.partition("Type yes")[0]) == (0, True), shown
    assert rows(data, "SELECT count(*) FROM proxy_key WHERE revoked_at IS NOT NULL") == [(1,)]


def fact_of(data: Path) -> str:
    (fact,) = orjson.loads(palimpsest("facts", "--json", "--data", str(data), env=KEPT).stdout)["facts"]
    return str(fact["id"])
