"""`palimpsest facts`: what a person sees and types."""

from __future__ import annotations

from pathlib import Path
from subprocess import CompletedProcess

import orjson
import pytest

from tests.commands.test_cli import palimpsest
from tests.databases import database_in
from tests.remembered import Past
from tests.talking import NOW

pytestmark = pytest.mark.slow


@pytest.fixture
async def data(tmp_path: Path) -> Path:
    """A data folder in which two cities were named, one after the other."""
    database = database_in(tmp_path)
    await database.open()
    past = Past(database)
    await past.say("I live in Lisbon.", user="ann", created_at=NOW)
    await past.say("I live in Porto.", user="ann", created_at=NOW + 1, conversation="c-2")
    await database.close()
    return tmp_path


def facts(data: Path, *words: str, policy: str = "suggest") -> CompletedProcess[str]:
    return palimpsest("facts", *words, "--data", str(data), env={"PALIMPSEST_FACTS__POLICY": policy})


def test_facts_are_extracted_listed_told_pinned_and_forgotten(data: Path) -> None:
    assert orjson.loads(facts(data, "rebuild", "--json").stdout) == {"statements": {"identity": 2}}
    (home,) = orjson.loads(facts(data, "--json").stdout)["facts"]
    assert (home["value"], home["user"]) == ("Porto", "ann")
    history = facts(data, "--history", "--user", "ann").stdout
    assert "Lisbon" in history and f"now {home['id']}" in history
    told = facts(data, "remember", "user", "dog", "Rex [bold]", "--user", "ann", "--until", "2099-01-01", "--pin")
    id = told.stdout.split()[0]
    shown = facts(data, "--category", "note", "--subject", "us*", "--matching", "rex").stdout
    assert "Rex [bold]" in shown and "pinned" in shown and "until 2099-01-01" in shown
    assert facts(data, "unpin", id).returncode == 0
    assert facts(data, "forget", home["id"], "--yes").stdout.startswith("forgotten: user")
    facts(data, "rebuild")
    left = facts(data, "--history").stdout
    assert "Lisbon" in left and "Porto" not in left
    assert "no fact" in facts(data, "pin", home["id"]).stderr


def test_what_is_wrong_is_said(data: Path) -> None:
    for words, said in (
        (("remember", "user", "dog", " "), "value: must be"),
        (("remember", "user", "dog", "Rex", "--until", "soon"), "--until: must be a day"),
    ):
        done = facts(data, *words)
        assert done.returncode == 2 and said in done.stderr
    off = facts(data, "rebuild", policy="off")
    assert off.returncode == 2 and "facts.policy is off" in off.stderr
