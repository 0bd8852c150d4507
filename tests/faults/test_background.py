"""Whatever stops memory's background work, requests pass, the log says why, and the work goes on when it can."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from itertools import count
from pathlib import Path

import psutil
import pytest
from palimpsest.evaluation.scripted import ScriptedUpstream
from palimpsest.memory.embedding.model import locate
from palimpsest.settings.policy import ModelPolicy

from tests.faults.flowing import FACT, IMPATIENT, assert_flows, assert_restores, says
from tests.running import Conversation, Proxy, database, request, rows, stored_texts, until

pytestmark = pytest.mark.slow

LATER = "Then we went through every shelf and wrote down each single title on it."


@pytest.fixture(autouse=True)
def answers(upstream: ScriptedUpstream) -> None:
    upstream.script = lambda body: f"I have read all of your {len(body['messages'])} messages, including the last one."


@pytest.fixture
def running(upstream: ScriptedUpstream, tmp_path: Path) -> Iterator[Proxy]:
    with Proxy(tmp_path / "data", upstream.url, IMPATIENT) as proxy:
        yield proxy


@pytest.fixture
def talk(running: Proxy, upstream: ScriptedUpstream) -> Conversation:
    """A conversation that has told a fact, which is on the disk and indexed."""
    talk = Conversation(running, "sk-one")
    assert_flows(talk, upstream, FACT)
    running.settle()
    return talk


@contextmanager
def beside(proxy: Proxy) -> Iterator[sqlite3.Connection]:
    """The proxy's database, opened by another process."""
    with closing(sqlite3.connect(database(proxy.data), isolation_level=None, timeout=10)) as other:
        yield other


def workers(proxy: Proxy) -> list[psutil.Process]:
    assert proxy.process is not None
    children = psutil.Process(proxy.process.pid).children(recursive=True)
    alive = [child for child in children if child.status() != psutil.STATUS_ZOMBIE]
    return [child for child in alive if "palimpsest.memory.embedding.embedding_worker" in " ".join(child.cmdline())]


def without_vector(proxy: Proxy) -> int:
    [(missing,)] = rows(proxy.data, "SELECT count(*) FROM memory WHERE id NOT IN (SELECT memory FROM vector)")
    return int(missing)


@pytest.mark.usefixtures("unforked")
def test_embedding_process_that_is_killed_is_started_again(talk: Conversation, upstream: ScriptedUpstream) -> None:
    proxy = talk.proxy
    (worker,) = workers(proxy)
    worker.kill()
    assert_flows(talk, upstream, LATER)
    says(proxy, "their process ended")
    proxy.settle()
    assert [after.pid for after in workers(proxy)] != [worker.pid]
    assert without_vector(proxy) == 0 and rows(proxy.data, "SELECT * FROM quarantine") == []
    assert_restores(talk, upstream)


@pytest.mark.sqlite
@pytest.mark.usefixtures("unforked")
def test_embedding_process_that_is_killed_again_and_again_stops_no_request_and_loses_no_passage(
    talk: Conversation, upstream: ScriptedUpstream
) -> None:
    proxy, over, floors = talk.proxy, threading.Event(), count(3)

    def fails_after_another_turn(number: int) -> bool:  # a quick machine embeds some before the first kill
        assert_flows(talk, upstream, f"{LATER} That was floor {number}.")
        return b"indexing failed; retrying" in proxy.log.read_bytes()

    def kill() -> None:
        while not over.wait(0.05):
            with suppress(psutil.NoSuchProcess):  # it has ended between the look and the blow
                for worker in workers(proxy):
                    worker.kill()

    killing = threading.Thread(target=kill)
    killing.start()
    try:
        for number in range(3):
            assert_flows(talk, upstream, f"{LATER} That was floor {number}.")
        until(lambda: fails_after_another_turn(next(floors)), "indexing to fail")
    finally:
        over.set()
        killing.join()
    with beside(proxy) as other:
        other.execute("UPDATE unindexed SET leased_until = 0")  # a lease ends after half a minute
    until(lambda: without_vector(proxy) == 0, "every passage to get its vector")
    assert rows(proxy.data, "SELECT * FROM quarantine") == []
    assert_restores(talk, upstream)


@pytest.mark.sqlite
@pytest.mark.parametrize("table", ["unindexed", "occurrence", "memory_text"])
def test_table_that_another_process_drops_is_said_and_turns_wait_until_it_is_back(
    talk: Conversation, upstream: ScriptedUpstream, table: str
) -> None:
    proxy = talk.proxy
    saved = proxy.data.parent / "saved.db"
    with beside(proxy) as other:
        other.execute("VACUUM INTO ?", (str(saved),))
        other.execute("PRAGMA foreign_keys = OFF")
        other.execute(f"DROP TABLE {table}")
    for number in range(3):
        assert_flows(talk, upstream, f"{LATER} That was floor {number}.")
    says(proxy, f"no such table: {table}" if table != "memory_text" else "memory_text")
    until(lambda: proxy.ready()["store"] == "failed", "it to be said")
    assert proxy.metric("palimpsest_turns_lost_total") == 0
    for file in proxy.data.glob(f"{database(proxy.data).name}-*"):
        file.unlink()
    saved.replace(database(proxy.data))
    until(lambda: proxy.ready()["store"] == "ready", "the store to recover")
    proxy.settle()
    stored = stored_texts(proxy.data)
    assert {FACT, *(f"{LATER} That was floor {number}." for number in range(3))} <= stored
    assert proxy.metric("palimpsest_turns_lost_total") == 0
    assert_restores(talk, upstream)


@pytest.mark.sqlite
def test_data_folder_that_is_removed_is_made_anew(talk: Conversation, upstream: ScriptedUpstream) -> None:
    proxy = talk.proxy
    shutil.rmtree(proxy.data)
    assert_flows(talk, upstream, LATER)
    says(proxy, "removed or replaced")
    assert_flows(talk, upstream, "The second shelf was empty, and nobody could say why.")
    until(lambda: proxy.ready()["store"] == "ready", "the store to recover")
    proxy.settle()
    assert "The second shelf was empty, and nobody could say why." in stored_texts(proxy.data)
    proxy.stop()
    proxy.start()
    assert_flows(talk, upstream, "And the third shelf was empty, too.")
    assert proxy.ready()["store"] == "ready", "the secret is the one that the database was made with"


@pytest.mark.sqlite
def test_database_of_another_program_in_its_place_is_left_alone(talk: Conversation, upstream: ScriptedUpstream) -> None:
    proxy = talk.proxy
    file, kept = database(proxy.data), proxy.data.parent / "kept"
    kept.mkdir()
    for part in proxy.data.glob(f"{file.name}*"):
        shutil.move(part, kept / part.name)
    with closing(sqlite3.connect(file)) as foreign:
        foreign.execute("CREATE TABLE holiday(photo)")
    assert_flows(talk, upstream, LATER)
    says(proxy, "belongs to another program")
    assert assert_flows(talk, upstream, "Is anybody there?") == "fault"
    assert rows(proxy.data, "SELECT name FROM sqlite_master") == [("holiday",)]
    for part in proxy.data.glob(f"{file.name}*"):
        part.unlink()
    for part in kept.iterdir():
        shutil.move(part, proxy.data / part.name)
    until(lambda: proxy.ready()["store"] == "ready", "the store to recover")
    proxy.settle()
    assert {FACT, LATER} <= stored_texts(proxy.data)
    assert_restores(talk, upstream)


@pytest.mark.sqlite
def test_database_that_is_locked_at_the_start_delays_no_request(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    proxy = Proxy(tmp_path / "data", upstream.url, IMPATIENT)
    with proxy:
        assert_flows(Conversation(proxy, "sk-one"), upstream, FACT)
    with closing(sqlite3.connect(database(proxy.data), isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        with proxy:
            assert_flows(Conversation(proxy, "sk-two"), upstream, LATER)
            assert proxy.ready()["store"] == "failed"
            says(proxy, "another process holds it")
            other.close()
            until(lambda: proxy.ready()["store"] == "ready", "the store to recover")
            proxy.settle()
    assert {FACT, LATER} <= stored_texts(proxy.data)


@pytest.mark.parametrize(
    ("file", "content"),
    [("tokenizer.json", b"{}"), ("tokenizer.json", b"\xff" * 1000), ("model.onnx", None)],
    ids=["tokenizer-of-nothing", "tokenizer-of-noise", "graph-is-a-folder"],
)
def test_model_folder_that_holds_garbage_is_said_and_recall_goes_by_words(
    tmp_path: Path, upstream: ScriptedUpstream, file: str, content: bytes | None
) -> None:
    source = locate(ModelPolicy()) or pytest.skip("needs the embedding model: run palimpsest model install")
    folder = tmp_path / "model"
    shutil.copytree(source, folder)
    for found in [*folder.rglob(file)] or pytest.fail(f"there is no {file}"):
        found.unlink()
        if content is None:
            found.mkdir()
        else:
            found.write_bytes(content)
    settings = {"model": {"folder": str(folder), "cache": str(tmp_path / "cache")}}
    with Proxy(tmp_path / "data", upstream.url, settings) as proxy:
        talk = Conversation(proxy, "sk-one")
        assert_flows(talk, upstream, FACT)
        assert_flows(talk, upstream, LATER)
        says(proxy, "embedding model")
        assert proxy.ready()["embedder"] != "ready" and proxy.ready()["store"] == "ready"
        assert_restores(talk, upstream, vectors=False)


@pytest.mark.sqlite
def test_message_that_cannot_be_made_findable_again_holds_up_no_other(
    talk: Conversation, upstream: ScriptedUpstream
) -> None:
    proxy = talk.proxy
    other_talk = Conversation(proxy, "sk-two")
    assert_flows(other_talk, upstream, "A newer version wrote this with a role that is not known here.")
    proxy.settle()
    with beside(proxy) as other:
        other.execute("UPDATE turn SET role = 'dreaming' WHERE id = (SELECT max(id) FROM turn)")
        for table in ("unindexed", "vector", "memory", "term"):
            other.execute(f"DELETE FROM {table}")
        other.execute("DELETE FROM memory_text")
        other.execute("INSERT INTO task SELECT 'rebuild', 0, max(id) FROM occurrence")
    assert_flows(talk, upstream, LATER)
    until(lambda: not rows(proxy.data, "SELECT 1 FROM task WHERE name = 'rebuild'"), "the rebuild to end")
    proxy.settle()
    says(proxy, "cannot be made findable and is set aside")
    assert without_vector(proxy) == 0
    assert ("message", "rebuilding: ValueError") in rows(proxy.data, "SELECT part, reason FROM quarantine")
    assert_restores(talk, upstream)


@pytest.mark.sqlite
def test_erasure_that_a_row_refuses_is_said_stops_nothing_and_can_be_asked_for_again(
    talk: Conversation, upstream: ScriptedUpstream
) -> None:
    proxy = talk.proxy
    evil = Conversation(proxy, "sk-evil")
    home = evil.say("Whoever reads this drinks poison.").said("conversation")
    proxy.settle()
    with beside(proxy) as other:
        other.execute(
            "CREATE TRIGGER refuse BEFORE DELETE ON occurrence WHEN old.conversation ="
            f" (SELECT id FROM conversation WHERE public = '{home}') BEGIN SELECT RAISE(ABORT, 'not this one'); END"
        )
        refused = request(proxy.port, "DELETE", f"/memory/v1/conversations/{home}")
        assert refused.status == 503
        says(proxy, "not this one")
        assert_flows(talk, upstream, LATER)
        assert proxy.ready()["store"] == "ready"
        other.execute("DROP TRIGGER refuse")
    receipt = request(proxy.port, "DELETE", f"/memory/v1/conversations/{home}")
    assert receipt.status == 200 and receipt.json["check"]["clean"]
    assert "Whoever reads this drinks poison." not in stored_texts(proxy.data)
    proxy.settle()
    assert {FACT, LATER} <= stored_texts(proxy.data)
    assert_restores(talk, upstream)
