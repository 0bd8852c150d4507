"""A proxy on a server's database does what one on a file does, as its operator sees it; or says that it does not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import orjson
import pytest
from palimpsest.scripted import ScriptedUpstream
from palimpsest.store.operation.secret import SECRET_ENV

from tests.running import Conversation, Proxy, memory_in
from tests.servers import Server

pytestmark = pytest.mark.slow

FACT = "The door code of the northern archive is 4471, and it changes every spring."
QUESTION = "What is the door code of the northern archive?"

SAID = "SELECT text, count(*) FROM content WHERE text LIKE 'line %' GROUP BY text ORDER BY text COLLATE \"C\""
CROSSED = """
SELECT count(DISTINCT conversation) FROM occurrence JOIN content ON content.id = content WHERE text LIKE 'line %'
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def proxy(own_proxy: Proxy, server: Server) -> Proxy:
    own_proxy.env["PALIMPSEST_STORE__URL"] = server.new_database()
    own_proxy.env["PALIMPSEST_MEMORY__REACH"] = "tenant"
    return own_proxy.start()


@pytest.fixture
def run(proxy: Proxy) -> Run:
    """Runs a command on the proxy's store."""

    def command(*words: str) -> subprocess.CompletedProcess[str]:
        called = [sys.executable, "-m", "palimpsest", *words, "--data", str(proxy.data), "--config", str(proxy.config)]
        return subprocess.run(
            called, env=os.environ | proxy.env, capture_output=True, text=True, check=False, timeout=120
        )

    return command


def test_what_is_said_is_archived_recalled_after_a_restart_and_forgotten(
    proxy: Proxy, upstream: ScriptedUpstream, key: str, run: Run
) -> None:
    upstream.script = lambda _: "Thank you, I have taken note of that and will come back to it when you need it."
    assert Conversation(proxy, key).say(FACT).status == 200
    proxy.settle()
    assert proxy.stop() == 0
    assert not list(proxy.data.glob("*.db*")), "a file was made beside the server's database"
    proxy.start()
    proxy.settle()
    asked = Conversation(proxy, key).say(QUESTION)
    assert "4471" in memory_in(upstream.received[-1].json)
    proxy.settle()

    doctor = run("doctor")
    assert re.search(r"^ok +store ", doctor.stdout, re.M)
    assert proxy.env["PALIMPSEST_STORE__URL"].rpartition("@")[2] in doctor.stdout
    assert "4471" in run("explain", asked.said("turn")).stdout
    for refused in (("check",), ("backup", "copy.zip"), ("restore", "copy.zip"), ("vacuum",)):
        told = run(*refused)
        assert told.returncode != 0 and "the database is a server" in told.stderr, refused

    told = run("forget", "--matching", "northern archive", "--yes")
    assert told.returncode == 0, told.stderr
    receipt = orjson.loads(told.stdout[told.stdout.index("{") :])
    assert receipt["erased"]["messages"] >= 1 and not receipt["check"]["searched"]
    assert receipt["not_covered"][0].startswith("the files of the database server")
    Conversation(proxy, key).say(QUESTION)
    assert "4471" not in memory_in(upstream.received[-1].json)


def test_requests_pass_while_the_server_is_away_and_their_turns_arrive_afterwards_once(
    own_proxy: Proxy, upstream: ScriptedUpstream, key: str, own_server: Server
) -> None:
    own_proxy.env["PALIMPSEST_STORE__URL"] = own_server.new_database()
    with own_proxy as proxy:
        upstream.script = lambda _: "Noted."
        talk = Conversation(proxy, key)
        assert talk.say("first").status == 200
        proxy.settle(vectors=False)
        own_server.stop()
        assert [talk.say(text).status for text in ("second", "third")] == [200, 200]
        own_server.start()
        assert talk.say("fourth").status == 200
        proxy.settle(vectors=False)
        texts = own_server.rows(proxy.env["PALIMPSEST_STORE__URL"], "SELECT text FROM content ORDER BY id")
        said = [text for (text,) in texts if text in ("first", "second", "third", "fourth")]
        assert said == ["first", "second", "third", "fourth"]


def test_two_proxies_on_one_database_are_one_memory(
    upstream: ScriptedUpstream, key: str, server: Server, tmp_path: Path
) -> None:
    shared = {
        "PALIMPSEST_STORE__URL": server.new_database(),
        "PALIMPSEST_MEMORY__REACH": "tenant",
        SECRET_ENV: "5" * 64,
    }
    upstream.script = lambda _: f"Noted as number {len(upstream.received)}; I will come back to it when you need it."
    with (
        Proxy(tmp_path / "one" / "data", upstream.url, **shared) as one,
        Proxy(tmp_path / "two" / "data", upstream.url, **shared) as two,
    ):
        talk = Conversation(one, key)
        first = talk.say(FACT)
        one.settle()
        talk.proxy = two
        assert talk.say("And what else?").said("conversation") == first.said("conversation")
        Conversation(two, key).say(QUESTION)
        assert "4471" in memory_in(upstream.received[-1].json)

        talks = [Conversation((one, two)[number % 2], key) for number in range(8)]

        def speak(number: int) -> list[int]:
            return [talks[number].say(f"line {turn} of talk {number}").status for turn in range(4)]

        with ThreadPoolExecutor(8) as threads:
            assert [*threads.map(speak, range(8))] == [[200] * 4] * 8
        for proxy in (one, two):
            proxy.settle()
        lines = server.rows(shared["PALIMPSEST_STORE__URL"], SAID)
        assert lines == sorted((f"line {turn} of talk {number}", 1) for turn in range(4) for number in range(8))
        crossed = server.rows(shared["PALIMPSEST_STORE__URL"], CROSSED)
        assert crossed == [(8,)]
