"""What the commands that need no running proxy say, typed as an operator would type them."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import orjson
import pytest
from palimpsest.memory.embedding.model import locate
from palimpsest.settings.policy import ModelPolicy
from palimpsest.store.journal import Journal

from tests.commands.test_cli import palimpsest
from tests.databases import database_in, is_held
from tests.running import rows
from tests.talking import Talk

pytestmark = pytest.mark.slow

TOLD = {
    "event": "compaction:truncate",
    "role": "main",
    "evidence": ["2 old messages are gone"],
    "pressure": {"prompt_tokens": 900, "window_tokens": 1000, "ratio": 0.9, "tier": "full"},
    "note": None,
    "kind": "restore",
    "query": {"text": "the broker's port", "context": ""},
    "gate": {"admitted": True, "reason": "rare terms"},
    "elapsed_ms": {"recall": 4.5},
    "candidates": [
        {"memory": 1, "occurrence": 1, "position": 0, "score": 0.5, "signals": {"text": [1, 9.0]}, "packed": True},
        {"memory": 99, "occurrence": 99, "position": 9, "score": 0.1, "signals": {}, "packed": False, "why": "budget"},
    ],
    "block": {"chars": 120, "tokens": 30, "occurrences": [1]},
}
BROKER = "the zebrafish broker listens on port 7431 \x1b[31m"


@pytest.fixture
async def data(tmp_path: Path) -> Path:
    """A data folder of one tenant, with two conversations in it."""
    database = database_in(tmp_path)
    await database.open()
    journal = Journal(database)
    first, second = Talk(journal), Talk(journal, conversation="c-2")
    await first.say(BROKER, "noted")
    await first.say("and what was the broker's port?", explain=TOLD)
    await second.say("the narwhal service was retired in spring", "understood")
    await database.close()
    return tmp_path


@pytest.fixture
def without_model(tmp_path: Path) -> Iterator[dict[str, str]]:
    return {"PALIMPSEST_MODEL__CACHE": str(tmp_path / "no-model"), "PALIMPSEST_MODEL__DOWNLOAD": "never"}


def test_explain_shows_the_newest_turn_of_a_conversation_or_the_nth(data: Path) -> None:
    newest = palimpsest("explain", "c-1", "--data", str(data))
    assert newest.returncode == 0, newest.stderr
    for words in ("compaction:truncate", "2 old messages are gone", "900 of 1,000 tokens, 90%: full", "text 1 (9.00)"):
        assert words in newest.stdout
    assert r"port 7431 \x1b[31m" in newest.stdout or "port 7431" in newest.stdout.replace("\n", " ")
    assert "\x1b" not in newest.stdout
    assert "(forgotten)" in newest.stdout
    assert palimpsest("explain", "c-1", "2", "--data", str(data)).stdout == newest.stdout
    assert "compaction" not in palimpsest("explain", "c-1", "1", "--data", str(data)).stdout


@pytest.mark.sqlite
def test_explain_shows_the_newest_turn_of_all_and_any_by_its_name(data: Path) -> None:
    newest = palimpsest("explain", "--data", str(data))
    assert newest.returncode == 0, newest.stderr
    assert ": 1 of 1 of c-2, " in newest.stdout
    assert "in a browser" not in newest.stdout, "no proxy runs that would show it"
    with closing(sqlite3.connect(data / "palimpsest.db")) as db:
        ((number,),) = db.execute("SELECT min(id) FROM turn").fetchall()
        db.execute(
            "UPDATE turn SET key = 't-first', explain = json_set(explain, '$.request', 'app-7') WHERE id = ?", (number,)
        )
        db.commit()
    for named in ("t-first", "app-7", "c-1/1"):
        told = palimpsest("explain", named, "--data", str(data)).stdout
        assert "t-first: 1 of 2 of c-1, " in told and "app-7" in told


@pytest.mark.parametrize("arguments", [["c-1", "3"], ["c-1", "0"], ["c-9"], ["c-1/3"], ["c-1/0"]])
def test_explain_says_that_there_is_no_such_turn(data: Path, arguments: list[str]) -> None:
    done = palimpsest("explain", *arguments, "--data", str(data))
    assert done.returncode == 1
    assert "not found in" in done.stderr


def test_explain_says_why_a_turn_may_not_be_archived(data: Path) -> None:
    done = palimpsest("explain", "t-9", "--data", str(data))
    assert done.returncode == 1
    assert "looking for t-9: not archived in" in done.stderr and "refused with 401 or 403" in done.stderr


async def test_an_empty_archive_says_that_nothing_is_archived_yet(tmp_path: Path) -> None:
    database = database_in(tmp_path)
    await database.open()
    await database.close()
    for arguments in (["search", "hello"], ["explain"], ["explain", "t-9"], ["explain", "c-1", "1"]):
        done = palimpsest(*arguments, "--data", str(tmp_path))
        assert (done.returncode, done.stdout) == (1, "")
        assert f"nothing is archived yet in {database.place}" in done.stderr


def test_a_folder_that_cannot_be_looked_into_is_told_apart_from_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name, why in (("file", "is not a folder"), ("n" * 300, "cannot be looked into: File name too long")):
        done = palimpsest("stats", "--data", str(tmp_path / name))
        assert (done.returncode, done.stderr) == (2, f"palimpsest: data: {tmp_path / name}: {why}\n")


def test_a_search_for_no_result_is_refused(data: Path) -> None:
    done = palimpsest("search", "port", "--limit", "0", "--data", str(data))
    assert done.returncode == 2 and "--limit: 0 is not allowed; allowed: 1 or more" in done.stderr


def test_memory_that_is_switched_off_for_nobody_known_is_told_of(tmp_path: Path) -> None:
    said = palimpsest("disable", "--tenant", "typo", "--data", str(tmp_path)).stdout
    assert "memory is off for typo" in said and "no tenant typo is stored" in said
    assert "is stored" not in palimpsest("disable", "--data", str(tmp_path)).stdout


def test_search_finds_words_without_the_model_and_says_so(data: Path, without_model: dict[str, str]) -> None:
    done = palimpsest("search", "zebrafish", "broker", "port", "--data", str(data), env=without_model)
    assert done.returncode == 0, done.stderr
    assert "port 7431" in done.stdout
    assert "searched by words alone" in done.stdout
    assert "narwhal" not in done.stdout


def test_search_tells_programs_each_passage_with_its_conversation_and_whether_it_would_come(
    data: Path, without_model: dict[str, str]
) -> None:
    done = palimpsest("search", "zebrafish", "broker", "port", "--json", "--data", str(data), env=without_model)
    (found,) = json.loads(done.stdout).values()
    passage = found["results"][0]
    assert (passage["conversation"], passage["role"], passage["text"]) == ("c-1", "user", BROKER)
    assert passage["recalled"] in (True, False) and passage["signals"]["words"][0] == 1


def test_search_in_one_conversation_stays_there(data: Path, without_model: dict[str, str]) -> None:
    there = palimpsest("search", "narwhal", "--conversation", "c-2", "--data", str(data), env=without_model)
    elsewhere = palimpsest("search", "narwhal", "--conversation", "c-1", "--data", str(data), env=without_model)
    assert "retired in spring" in there.stdout
    assert "retired in spring" not in elsewhere.stdout


async def test_search_looks_at_each_tenant_alone_unless_one_is_named_or_the_settings_name_one(data: Path) -> None:
    database = database_in(data)
    await database.open()
    await Talk(Journal(database), tenant="beta", conversation="c-3").say("other people's zebrafish")
    await database.close()
    both = palimpsest("search", "zebrafish", "--data", str(data)).stdout
    beta, acme = both.removeprefix("tenant beta\n").split("tenant acme\n")
    assert "other people's zebrafish" in beta and "7431" in acme
    assert "7431" not in beta and "other people's" not in acme
    assert "7431" not in palimpsest("search", "zebrafish", "--tenant", "beta", "--data", str(data)).stdout
    done = palimpsest("search", "zebrafish", "--tenant", "gamma", "--data", str(data))
    assert done.returncode == 2 and "--tenant: gamma has nothing there; the newest are: beta, acme" in done.stderr
    database = database_in(data)
    await database.open()
    await Talk(Journal(database), tenant="static:ann", conversation="c-4").say("ann's zebrafish")
    await database.close()
    own = palimpsest("search", "zebrafish", "--data", str(data), env={"PALIMPSEST_TENANTS__STATIC": "ann"})
    assert "ann's zebrafish" in own.stdout and "7431" not in own.stdout


def test_search_does_not_take_a_key_that_has_said_nothing_for_a_second_tenant(
    data: Path, without_model: dict[str, str]
) -> None:
    assert palimpsest("key", "create", "laptop", "--data", str(data)).returncode == 0
    done = palimpsest("search", "zebrafish", "broker", "port", "--data", str(data), env=without_model)
    assert "port 7431" in done.stdout and "tenant" not in done.stdout, done.stderr


def test_stats_say_sizes_lag_and_search_times(data: Path) -> None:
    said = {line.split("  ")[0]: line.split("  ", 1)[1].strip() for line in stats(data)}
    assert (said["conversations"], said["turns"]) == ("2", "3")
    assert said["searches"] == "p50 4.5 ms, p95 4.5 ms"
    assert said["to be indexed"] == "6"  # no age: that of the messages is none of their wait


def stats(data: Path) -> list[str]:
    done = palimpsest("stats", "--data", str(data))
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.sqlite
def test_index_without_a_model_derives_all_the_rest_and_says_what_to_do(
    data: Path, without_model: dict[str, str]
) -> None:
    with closing(sqlite3.connect(data / "palimpsest.db")) as db:
        db.execute("DELETE FROM memory_text")
        db.commit()
    done = palimpsest("index", "--all", "--data", str(data), env=without_model)
    assert done.returncode == 1
    assert "indexing 6 passages: no embedding model; run palimpsest model install" in done.stderr
    found = palimpsest("search", "zebrafish", "broker", "port", "--data", str(data), env=without_model)
    assert "port 7431" in found.stdout


@pytest.mark.skipif(locate(ModelPolicy()) is None, reason="needs the embedding model: run palimpsest model install")
def test_index_gives_every_passage_its_vector_again(data: Path) -> None:
    for arguments in (["index"], ["index", "--all"]):
        done = palimpsest(*arguments, "--data", str(data))
        assert (done.returncode, done.stdout) == (0, "everything is indexed\n"), done.stderr
        assert rows(data, "SELECT count(*) FROM vector") == [(6,)]
        assert rows(data, "SELECT count(*) FROM unindexed") == [(0,)]


@pytest.mark.parametrize("command", [["explain", "c-1"], ["search", "x"], ["stats"], ["index"]])
def test_a_folder_without_a_database_is_named_and_left_as_it_is(tmp_path: Path, command: list[str]) -> None:
    done = palimpsest(*command, "--data", str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.startswith(
        f"palimpsest: opening the archive: nothing is archived yet in {tmp_path}/palimpsest.db; requests that"
    )
    assert list(tmp_path.iterdir()) == []


def test_forget_counts_first_and_erases_only_when_it_is_told_to(data: Path) -> None:
    forget = ("forget", "--conversation", "c-1", "--data", str(data))
    counted = palimpsest(*forget, "--dry-run")
    assert counted.returncode == 0, counted.stderr
    assert ["messages", "4"] in [line.split() for line in counted.stdout.splitlines()]
    unasked = palimpsest(*forget)
    assert (unasked.returncode, unasked.stdout) == (2, "")
    assert "cannot ask for confirmation without a terminal; add --yes" in unasked.stderr
    assert is_held(database_in(data), "zebrafish")
    done = palimpsest(*forget, "--yes")
    assert done.returncode == 0, done.stderr
    check = orjson.loads(done.stdout)["check"]
    assert check["clean"] or not check["searched"], "the files of a server cannot be searched"
    assert not is_held(database_in(data), "zebrafish")
    again = palimpsest(*forget, "--yes")
    assert (again.returncode, again.stdout) == (1, "")
    assert "nothing stored matches" in again.stderr


@pytest.mark.parametrize("arguments", [[], ["--older-than", "soon"], ["--turn", "c-1/0"]])
def test_forget_says_what_it_cannot_read(data: Path, arguments: list[str]) -> None:
    done = palimpsest("forget", *arguments, "--yes", "--data", str(data))
    assert (done.returncode, done.stdout) == (2, "")


def test_an_erased_turn_can_still_be_explained(data: Path) -> None:
    assert palimpsest("forget", "--turn", "c-1/2", "--yes", "--data", str(data)).returncode == 0
    told = palimpsest("explain", "c-1", "2", "--data", str(data))
    assert told.returncode == 0, told.stderr
    assert "the broker's port" not in told.stdout


def test_retire_hides_from_search_until_it_is_undone_by_its_receipt(data: Path, without_model: dict[str, str]) -> None:
    search = ("search", "zebrafish", "broker", "--conversation", "c-1", "--data", str(data))
    retire = ("retire", "--conversation", "c-1", "--data", str(data))
    assert "7431" in palimpsest(*search, env=without_model).stdout
    assert palimpsest(*retire, "--dry-run").returncode == 0
    unasked = palimpsest(*retire)
    assert (unasked.returncode, "retire: cannot ask for confirmation" in unasked.stderr) == (2, True)
    done = palimpsest(*retire, "--yes")
    assert done.returncode == 0, done.stderr
    id = orjson.loads(done.stdout)["id"]
    assert f"palimpsest unretire {id}" in done.stderr
    assert "7431" not in palimpsest(*search, env=without_model).stdout
    again = palimpsest(*retire, "--yes")
    assert (again.returncode, again.stdout) == (1, "")
    assert id in palimpsest("unretire", "--data", str(data)).stdout
    assert palimpsest("unretire", id, "--data", str(data)).returncode == 0
    assert "7431" in palimpsest(*search, env=without_model).stdout
    unknown = palimpsest("unretire", id, "--data", str(data))
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert "can be undone" in unknown.stderr


def test_a_receipt_is_verified_and_one_that_was_changed_is_not(data: Path, tmp_path: Path) -> None:
    receipt = palimpsest("forget", "--conversation", "c-2", "--yes", "--data", str(data)).stdout
    file = tmp_path / "receipt.json"
    file.write_text(receipt)
    assert palimpsest("receipt", str(file), "--data", str(data)).stdout.startswith("genuine: erasure ")
    file.write_text(receipt.replace("c-2", "c-1"))
    changed = palimpsest("receipt", str(file), "--data", str(data))
    assert (changed.returncode, changed.stdout) == (1, "")
    assert palimpsest("receipt", str(file), "--data", str(tmp_path / "elsewhere")).returncode == 2
