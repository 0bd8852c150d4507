"""A full disk, a locked or a broken database: requests keep flowing, nothing stored is lost, and it is said."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from palimpsest.evaluation.scripted import ScriptedUpstream

from tests.faults.flowing import FACT, IMPATIENT, assert_flows, assert_restores
from tests.running import Conversation, Proxy, database, rows, stored_texts, until

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def answers(upstream: ScriptedUpstream) -> None:
    upstream.script = lambda body: f"I have read all of your {len(body['messages'])} messages, including the last one."


@pytest.fixture
def own_proxy(upstream: ScriptedUpstream, tmp_path: Path) -> Iterator[Proxy]:
    """One that does not wait long for its disk."""
    running = Proxy(tmp_path / "data", upstream.url, IMPATIENT)
    yield running
    running.close()


def fill(folder: Path) -> Path:
    """Take every free byte."""
    filler = folder / "filler"
    block = b"\0" * 4096
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(block):
                pass
        except OSError:
            return filler
    raise AssertionError("the disk cannot be filled")


def test_full_disk_stops_memory_and_nothing_else(small_disk: Path, upstream: ScriptedUpstream) -> None:
    with Proxy(small_disk / "data", upstream.url, IMPATIENT) as proxy:
        talk = Conversation(proxy, "sk-one")
        assert_flows(talk, upstream, FACT)
        proxy.settle()
        before = stored_texts(proxy.data)
        filler = fill(small_disk)
        notes = [
            assert_flows(talk, upstream, f"Note {number}: " + f"the inventory of shelf {number} is complete now. " * 9)
            for number in range(10)
        ]
        assert notes[-1] == "fault"
        assert proxy.metric("palimpsest_faults_total") > 0
        assert proxy.metric("palimpsest_turns_lost_total") > 0 or proxy.metric("palimpsest_queued") > 0
        assert proxy.ready()["store"] != "ready"
        filler.unlink()
        assert_flows(talk, upstream, "The disk has been cleaned up, so we can carry on with the inventory as before.")
        until(lambda: proxy.ready()["store"] == "ready", "the store to recover")
        assert before <= stored_texts(proxy.data)
        assert_restores(talk, upstream)


def test_database_locked_by_another_process_delays_nobody(own_proxy: Proxy, upstream: ScriptedUpstream) -> None:
    own_proxy.start()
    talk = Conversation(own_proxy, "sk-one")
    assert_flows(talk, upstream, FACT)
    own_proxy.settle()
    with closing(sqlite3.connect(database(own_proxy.data), isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        for number in range(4):
            assert_flows(talk, upstream, f"While the database is locked we count the boxes of shelf {number}.")
        until(lambda: own_proxy.metric("palimpsest_faults_total") > 0, "the fault to be counted")
        assert assert_flows(talk, upstream, "Somebody holds the database, and somebody should be told.") == "fault"
        other.execute("ROLLBACK")
    assert_flows(talk, upstream, "The other process has let go, and the count of the shelves goes on as before.")
    until(lambda: own_proxy.ready()["store"] == "ready", "the store to recover")
    assert_restores(talk, upstream)


def test_corrupt_database_is_left_as_it_is_and_requests_flow(own_proxy: Proxy, upstream: ScriptedUpstream) -> None:
    own_proxy.start()
    talk = Conversation(own_proxy, "sk-one")
    assert_flows(talk, upstream, FACT)
    own_proxy.settle()
    own_proxy.stop()
    file = database(own_proxy.data)
    sound = file.read_bytes()
    broken = b"this is no database " * 100 + sound[2000:]
    file.write_bytes(broken)
    own_proxy.start()
    assert assert_flows(talk, upstream, "Does anybody hear me although the archive is broken?") == "fault"
    ready = own_proxy.ready()
    assert ready["ready"] is False and ready["store"] != "ready"
    assert own_proxy.metric("palimpsest_faults_total") > 0
    assert FACT.encode() in file.read_bytes(), "what could still be rescued was overwritten"
    own_proxy.stop()
    file.write_bytes(sound)
    own_proxy.start()
    assert_flows(talk, upstream, "The operator has put the archive back from the copy of last night.")
    assert_restores(talk, upstream)


def test_database_that_breaks_under_way_stops_no_request(own_proxy: Proxy, upstream: ScriptedUpstream) -> None:
    own_proxy.start()
    talk = Conversation(own_proxy, "sk-one")
    assert_flows(talk, upstream, FACT)
    own_proxy.settle()
    for file in own_proxy.data.glob(f"{database(own_proxy.data).name}*"):
        with file.open("r+b") as opened:
            opened.write(b"\xff" * file.stat().st_size)
    for number in range(4):
        assert_flows(talk, upstream, f"The archive is broken since just now, number {number}.")
    until(lambda: own_proxy.metric("palimpsest_faults_total") > 0, "the fault to be counted")


def test_database_that_is_removed_while_it_is_in_use_is_made_anew_and_that_is_said(
    own_proxy: Proxy, upstream: ScriptedUpstream
) -> None:
    own_proxy.start()
    talk = Conversation(own_proxy, "sk-one")
    assert_flows(talk, upstream, "Nobody will know this sentence any more.")
    own_proxy.settle()
    for file in own_proxy.data.glob(f"{database(own_proxy.data).name}*"):
        file.unlink()
    until(lambda: any("removed or replaced" in reason for reason in own_proxy.ready()["reasons"]), "it to be said")
    assert own_proxy.metric("palimpsest_faults_total", where="database_replaced") == 1
    assert b"removed or replaced" in own_proxy.log.read_bytes()
    talk = Conversation(own_proxy, "sk-one")
    assert_flows(talk, upstream, FACT)
    own_proxy.settle()
    assert own_proxy.stop() == 0
    assert FACT in stored_texts(own_proxy.data)


def test_memory_that_is_off_is_ready(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    with Proxy(tmp_path / "data", upstream.url, {"memory": {"mode": "off"}}) as proxy:
        assert_flows(Conversation(proxy, "sk-one"), upstream, FACT)
        answered = proxy.get("/readyz")
        assert (answered.status, answered.json["store"]) == (200, "off")


def test_one_turn_that_cannot_be_stored_stops_no_other(own_proxy: Proxy, upstream: ScriptedUpstream) -> None:
    own_proxy.start()
    victim, evil = Conversation(own_proxy, "sk-victim"), Conversation(own_proxy, "sk-evil")
    assert_flows(victim, upstream, FACT)
    own_proxy.settle()
    with closing(sqlite3.connect(database(own_proxy.data), isolation_level=None)) as other:
        other.execute(
            "CREATE TRIGGER refuse BEFORE INSERT ON content WHEN new.text LIKE '%poison%' BEGIN"
            " SELECT RAISE(ABORT, 'no poison here'); END"
        )
    assert_flows(evil, upstream, "Whoever stores this text drinks poison.")
    assert assert_flows(victim, upstream, "We went on and counted the boxes of shelf 1.") != "fault"
    until(lambda: own_proxy.metric("palimpsest_queued") == 0, "all to be written or set aside")
    assert "We went on and counted the boxes of shelf 1." in stored_texts(own_proxy.data)
    assert own_proxy.metric("palimpsest_faults_total", where="quarantine") == 1
    [(reason,)] = rows(own_proxy.data, "SELECT reason FROM quarantine")
    assert reason.endswith("no poison here")
    assert own_proxy.ready()["store"] == "ready"
    assert_restores(victim, upstream)


def test_second_process_on_the_same_database_continues_the_conversation(
    tmp_path: Path, upstream: ScriptedUpstream
) -> None:
    data = tmp_path / "data"
    with Proxy(data, upstream.url) as first, Proxy(data, upstream.url) as second:
        talk = Conversation(first, "sk-one")
        home = talk.say(FACT).said("conversation")
        for number, at in enumerate((second, first, second)):
            talk.proxy = at
            answered = talk.say(f"Then we went through shelf {number} and wrote down every single title on it.")
            assert (answered.said("conversation"), answered.said("event")) == (home, "append")
        assert_restores(talk, upstream)
