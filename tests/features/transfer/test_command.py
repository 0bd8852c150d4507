"""Export and import as an operator types them, beside a running proxy and without one."""

from __future__ import annotations

import gzip
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import orjson
import pytest
from palimpsest.domain import Json
from palimpsest.evaluation.scripted import ScriptedUpstream
from palimpsest.features.transfer.reading import ReadResult, turns_in
from palimpsest.store.operation.secret import load_secret

from tests.commands.test_cli import ROOT, palimpsest
from tests.databases import database_in
from tests.features.transfer.samples import chatgpt_conversation, claude_code_lines, claude_conversation, lines_of
from tests.features.transfer.test_importing import Destination, Importing, exported, talk
from tests.running import Proxy, as_headers, memory_in, request, rows, store_of, until

pytestmark = pytest.mark.slow

SESSION = "11111111-2222-4333-8444-555555555555"
SETTINGS: Json = {"tenants": {"static": "me"}, "memory": {"reach": "tenant"}}


@pytest.fixture
async def data(tmp_path: Path) -> Path:
    """A data folder with two conversations of two users."""
    folder = tmp_path / "data"
    folder.mkdir()
    database = database_in(folder)
    turns = [*talk("a quince tree", user="ann"), *talk("a medlar tree", conversation="c-2", user="ben")]
    await Importing(database, load_secret(folder, {})).import_turns(turns, Destination())
    await database.close()
    return folder


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with an export of each account, a line that is broken, and a file that holds something else."""
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "g.json").write_bytes(orjson.dumps([chatgpt_conversation()]))
    (folder / "c.json").write_bytes(orjson.dumps([claude_conversation()]))
    (folder / "s.jsonl").write_bytes(lines_of(claude_code_lines()) + b'{"type": "user", "uu\n')
    (folder / "notes.json").write_bytes(b'[{"title": "no conversation"}]')
    return folder


# --- export --------------------------------------------------------------------------------------


def test_an_export_goes_to_standard_output_or_to_a_file_of_its_owner(data: Path, tmp_path: Path) -> None:
    shown = palimpsest("export", "--data", str(data))
    assert (shown.returncode, shown.stderr) == (0, "2 turns exported\n")
    assert palimpsest("export", "--data", str(data), "--output", "-").stdout == shown.stdout
    assert not Path("-").exists()
    file = tmp_path / "out.jsonl.gz"
    done = palimpsest("export", "--data", str(data), "--output", str(file))
    assert (done.returncode, done.stdout) == (0, "")
    assert " ".join(done.stderr.split()) == f"2 turns exported to {file}"
    assert gzip.decompress(file.read_bytes()).decode() == shown.stdout
    assert file.stat().st_mode & 0o777 == 0o600
    assert [line["user"] for line in map(orjson.loads, shown.stdout.splitlines()[1:])] == ["ann", "ben"]


def test_an_export_of_nothing_or_to_nowhere_fails_and_leaves_what_is_there(data: Path, tmp_path: Path) -> None:
    (tmp_path / "out.jsonl").write_text("of yesterday")
    none = palimpsest("export", "--data", str(data), "--user", "cid", "--output", str(tmp_path / "out.jsonl"))
    assert (none.returncode, none.stdout) == (1, "")
    assert none.stderr == f"palimpsest: exporting from {data}: nothing stored matches\n"
    assert (tmp_path / "out.jsonl").read_text() == "of yesterday"
    shown = palimpsest("export", "--data", str(data), "--user", "cid")
    assert (shown.returncode, shown.stdout) == (1, "")
    assert not [*tmp_path.glob("*.part")]
    lost = palimpsest("export", "--data", str(data), "--output", str(tmp_path / "no" / "out.jsonl"))
    assert (lost.returncode, lost.stdout) == (1, "")
    assert f"writing {tmp_path}/no/out.jsonl: " in lost.stderr and "Traceback" not in lost.stderr
    assert not (tmp_path / "no").exists()


# --- import --------------------------------------------------------------------------------------


def test_an_import_counts_names_what_is_broken_and_adds_nothing_when_it_is_repeated(
    files: Path, tmp_path: Path
) -> None:
    data = tmp_path / "new"
    take = ("import", str(files), "--config", "personal", "--data", str(data))
    once = palimpsest(*take)
    assert once.returncode == 0, once.stderr
    told = dict(line.split(None, 1) for line in once.stdout.splitlines())
    assert told["files"].strip() == "1 of chatgpt, 1 of claude, 1 of claude-code"
    assert told["imported"].startswith("12 turns, ")
    assert f"not imported: {files}/s.jsonl:17: not JSON" in once.stderr
    assert "found by words at once" in once.stderr
    again = palimpsest(*take)
    assert again.returncode == 0, again.stderr
    assert "0 turns, 0 messages" in again.stdout and "12 turns" in again.stdout
    assert rows(data, "SELECT DISTINCT name FROM tenant") == [("static:me",)]


def test_what_was_erased_before_is_not_called_imported(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    palimpsest("export", "--data", str(data), "--output", str(file)).check_returncode()
    palimpsest("forget", "--user", "ben", "--yes", "--data", str(data)).check_returncode()
    again = palimpsest("import", str(file), "--data", str(data))
    assert " ".join(again.stdout.split()).partition(" in ")[0] == "files 1 of palimpsest imported 0 turns, 0 messages"
    assert "erased before  2 messages, which were not restored" in again.stdout
    assert "found by words at once" not in again.stderr


def test_an_import_of_what_holds_no_conversations_fails_and_names_it(files: Path, tmp_path: Path) -> None:
    none = palimpsest("import", str(files / "notes.json"), "--config", "personal", "--data", str(tmp_path / "new"))
    assert none.returncode == 1
    assert "notes.json: contains no conversations in a known format" in none.stderr.replace("\n", " ")
    gone = palimpsest("import", str(tmp_path / "gone.json"), "--config", "personal", "--data", str(tmp_path / "new"))
    assert (gone.returncode, gone.stdout) == (1, "")
    assert "gone.json" in gone.stderr and "Traceback" not in gone.stderr


def test_an_import_becomes_the_tenants_that_is_named_and_no_others(files: Path, tmp_path: Path) -> None:
    take = ("import", str(files / "g.json"), "--data", str(tmp_path / "new"))
    without = palimpsest(*take, env={"OPENAI_API_KEY": "", "ANTHROPIC_API_KEY": ""})
    assert (without.returncode, without.stdout) == (2, "")
    assert "tenant: required" in without.stderr and "--tenant" in without.stderr
    wrong = palimpsest(*take, "--tenant", "me")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "--tenant: me is not a tenant; allowed: static:NAME, key:NAME, hmac:HASH or local" in wrong.stderr
    named = palimpsest(*take, "--tenant", "key:team", "--user", "ann")
    assert named.returncode == 0, named.stderr
    assert rows(tmp_path / "new", "SELECT DISTINCT name FROM tenant") == [("key:team",)]


def test_a_folder_that_an_import_makes_is_opened_with_its_own_secret_from_then_on(files: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    done = palimpsest("import", str(files / "g.json"), "--tenant", "static:me", "--data", str(new))
    assert done.returncode == 0 and sorted(file.name for file in new.iterdir()) == ["palimpsest.db", "secret"]
    found = palimpsest("search", "quince", "--tenant", "static:me", "--data", str(new))
    assert "secret" not in found.stderr and load_secret(new, {}) == (new / "secret").read_bytes()


def test_what_is_exported_without_the_lost_secret_is_imported_under_a_new_one(files: Path, tmp_path: Path) -> None:
    new, out = tmp_path / "new", tmp_path / "out.jsonl"
    palimpsest("import", str(files / "g.json"), "--tenant", "static:me", "--data", str(new)).check_returncode()
    (new / "secret").unlink()
    refused = palimpsest("import", str(out), "--tenant", "static:me", "--data", str(new))
    told = "where it is lost for good: palimpsest export, move palimpsest.db* away, palimpsest import"
    assert refused.returncode and told in " ".join(refused.stderr.split())
    before = rows(new, "SELECT count(*) FROM turn")
    palimpsest("export", "--data", str(new), "--output", str(out)).check_returncode()
    for file in new.glob("palimpsest.db*"):
        file.rename(tmp_path / file.name)
    palimpsest("import", str(out), "--data", str(new)).check_returncode()
    assert rows(new, "SELECT count(*) FROM turn") == before != [(0,)]


def test_an_import_says_how_far_it_is_recalled_where_it_belongs_to_no_user(
    data: Path, files: Path, tmp_path: Path
) -> None:
    palimpsest("export", "--data", str(data), "--output", str(tmp_path / "of-users.jsonl"))
    for file, is_said in ((tmp_path / "of-users.jsonl", False), (files, True)):
        done = palimpsest("import", str(file), "--tenant", "static:me", "--data", str(tmp_path / "new"))
        assert (done.returncode, "memory.reach" in done.stderr) == (0, is_said), done.stderr


def test_an_import_says_before_it_writes_that_retention_erases_what_is_too_old(files: Path, tmp_path: Path) -> None:
    config = tmp_path / "short.yaml"
    config.write_text("tenants: {static: me}\nretention: {turns: 30d, tenants: {'static:longer': {turns: forever}}}")
    take = ("import", str(files / "g.json"), "--config", str(config), "--data", str(tmp_path / "new"))
    done = palimpsest(*take)
    assert done.returncode == 0, done.stderr
    words = " ".join(done.stderr.split())
    stored = rows(tmp_path / "new", "SELECT count(*) FROM occurrence")[0][0]
    assert f"{stored} of {stored} messages are older than retention keeps them: " in words
    assert words.index("retention keeps") < words.index("found by words at once")
    kept = palimpsest(*take, "--tenant", "static:longer")
    assert kept.returncode == 0, kept.stderr
    assert "retention" not in kept.stderr


async def test_an_import_that_is_killed_and_repeated_ends_as_one_that_ran_through(tmp_path: Path) -> None:
    file = tmp_path / "many.json"
    file.write_bytes(orjson.dumps([chatgpt_conversation(f"g-{number}") for number in range(120)]))
    data = tmp_path / "data"
    killed, whole = database_in(data), database_in(tmp_path, "whole.db")
    take = ("import", str(file), "--config", "personal", "--data", str(data))
    assert killed_in_the_middle(take, data) == -signal.SIGKILL
    turns = [*turns_in([file], ReadResult())]
    assert 0 < stored_turns(data) < len(turns)
    done = palimpsest(*take)
    assert done.returncode == 0, done.stderr
    await Importing(whole, load_secret(data, {})).import_turns(turns, Destination("static:me"))
    await killed.open()
    assert await exported(killed) == await exported(whole)
    await killed.close()
    await whole.close()
    assert palimpsest("check", "--data", str(data)).returncode == 0


def killed_in_the_middle(take: Sequence[str], data: Path) -> int:
    """The exit status of an import that is killed as soon as something is stored."""
    words, env = [sys.executable, "-m", "palimpsest", *take], os.environ | store_of(take)
    with subprocess.Popen(words, cwd=ROOT, env=env, stderr=subprocess.DEVNULL) as process:
        until(lambda: stored_turns(data), "the first batch to be written")
        process.kill()
    return process.returncode


def stored_turns(data: Path) -> int:
    try:
        ((turns,),) = rows(data, "SELECT count(*) FROM turn")
    except (FileNotFoundError, StopIteration, sqlite3.OperationalError):  # its tables are being made
        return 0
    return int(turns)


# --- beside a running proxy ----------------------------------------------------------------------


@pytest.fixture
def personal(upstream: ScriptedUpstream, tmp_path: Path) -> Iterator[Proxy]:
    """A running proxy of one person."""
    upstream.script = lambda _: "Noted."
    with Proxy(tmp_path / "data", upstream.url, SETTINGS) as running:
        yield running


def imported(proxy: Proxy, file: Path) -> None:
    done = palimpsest("import", str(file), "--config", str(proxy.config), "--data", str(proxy.data))
    assert done.returncode == 0, done.stderr
    assert "memory.reach" not in done.stderr


def test_a_running_proxy_recalls_what_is_imported_beside_it_at_once(
    personal: Proxy, upstream: ScriptedUpstream, files: Path
) -> None:
    def ask(text: str) -> str:
        body = {"model": "gpt-4o", "messages": [{"role": "user", "content": text}]}
        assert personal.chat(body).status == 200
        return memory_in(upstream.received[-1].json)

    assert ask("Good morning to you.") == ""
    imported(personal, files / "g.json")
    assert "Hive seven, beside the quince tree." in ask("Which hive stands beside the quince tree?")


def test_a_session_that_goes_on_after_its_import_is_one_conversation_without_a_message_twice(
    personal: Proxy, upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    session = [line for line in claude_code_lines(SESSION) if not line.get("isSidechain")][:8]
    (tmp_path / "s.jsonl").write_bytes(lines_of(session))
    imported(personal, tmp_path / "s.jsonl")
    ((before,),) = rows(personal.data, "SELECT count(*) FROM occurrence")
    read = {"type": "tool_use", "id": "toolu_9", "name": "Read", "input": {"file_path": "hives.toml"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_9", "content": "[seven]\nqueen = 'Wilhelmina'"}
    history = [
        {"role": "user", "content": "Who is the queen of hive seven?"},
        {"role": "assistant", "content": [{"type": "text", "text": "I will look it up."}, read]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": [{"type": "text", "text": "Wilhelmina is its queen."}]},
        {"role": "user", "content": "And of hive eight?"},
    ]
    headers = as_headers("sk-test", {"x_claude_code_session_id": SESSION, "anthropic_version": "2023-06-01"})

    def goes_on(history: list[Json]) -> str:
        body = {"model": "claude-sonnet-4-5", "max_tokens": 99, "system": "You are Claude Code.", "messages": history}
        answered = request(personal.port, "POST", "/v1/messages", orjson.dumps(body), headers)
        assert answered.status == 200, answered.body
        personal.settle(vectors=False)
        return answered.said("event")

    def stored() -> int:
        ((messages,),) = rows(personal.data, "SELECT count(*) FROM occurrence WHERE role <> 'system'")
        return int(messages)

    assert goes_on(history) == "append"
    assert stored() == before + 2  # the question and its answer
    imported(personal, tmp_path / "s.jsonl")
    assert stored() == before + 2
    assert rows(personal.data, "SELECT count(*) FROM conversation") == [(1,)]
    notes = {"type": "text", "text": "<system-reminder>\nCLAUDE.md says: be brief.\n</system-reminder>\n"}
    history[0]["content"] = [notes, {"type": "text", "text": history[0]["content"]}]
    history += [{"role": "assistant", "content": "Noted."}, {"role": "user", "content": "And of hive nine?"}]
    assert goes_on(history) == "append"
    assert stored() == before + 5  # another two, and the message to which the client has added something
    assert rows(personal.data, "SELECT count(*) FROM conversation") == [(1,)]
