"""The hook tells the proxy what was cleared, says one line at a start, and never stops a session."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping

import orjson
import pytest
from palimpsest.commands.hook import answer
from palimpsest.evaluation.scripted import ScriptedUpstream

from tests.running import ROOT, Conversation, Proxy, free_port, rows

pytestmark = pytest.mark.slow

START = {"hook_event_name": "SessionStart", "source": "startup", "session_id": "s-1"}
CLEARED = {"hook_event_name": "SessionEnd", "reason": "clear", "session_id": "s-1"}
RESUMED = START | {"source": "resume"}


def told(proxy: Proxy, **more: str) -> Mapping[str, str]:
    return {"ANTHROPIC_BASE_URL": proxy.url.removesuffix("/v1"), **more}


def test_a_session_begins_with_one_line(proxy: Proxy) -> None:
    proxy.settle()
    assert answer("claude-code", START, told(proxy)) == f"Palimpsest remembers, at {proxy.url.removesuffix('/v1')}"
    assert answer("claude-code", START | {"source": "compact"}, told(proxy)) == ""
    assert answer("codex", START, {"PALIMPSEST_URL": proxy.url.removesuffix("/v1")}).startswith("Palimpsest remembers")


def test_what_is_wrong_is_said_with_what_to_do(upstream: ScriptedUpstream) -> None:
    nobody = f"http://127.0.0.1:{free_port()}"
    assert "palimpsest serve" in answer("codex", START, {"PALIMPSEST_URL": nobody})
    assert "ANTHROPIC_BASE_URL" in answer("claude-code", START, {})
    other = upstream.url.removesuffix("/v1")
    assert "another program" in answer("codex", START, {"PALIMPSEST_URL": other})


def test_a_cleared_session_is_told_and_a_resumed_one_too(
    own_proxy: Proxy, upstream: ScriptedUpstream, key: str
) -> None:
    proxy = own_proxy.start()
    upstream.script = lambda _: "Noted."
    Conversation(proxy, key, headers={"x-claude-code-session-id": "s-1"}).say("The exporter listens on port 9417.")
    proxy.settle(vectors=False)
    marked = "SELECT count(*) FROM conversation WHERE cleared > 0"
    assert answer("claude-code", CLEARED, told(proxy)) == ""
    assert rows(proxy.data, marked) == [(1,)]
    answer("claude-code", RESUMED, told(proxy))
    assert rows(proxy.data, marked) == [(0,)]


@pytest.mark.parametrize("said", [b"", b"no json", b"[]", orjson.dumps({"hook_event_name": 3, "session_id": []})])
def test_what_is_no_event_stops_nothing(said: bytes) -> None:
    words = [sys.executable, "-m", "palimpsest", "hook", "claude-code"]
    done = subprocess.run(words, input=said, capture_output=True, env={"PYTHONPATH": str(ROOT / "proxy")})
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize("client", ["claude-code", "codex"])
def test_it_says_where_the_plug_in_is(client: str) -> None:
    words = [sys.executable, "-m", "palimpsest", "hook", client, "--where"]
    done = subprocess.run(words, capture_output=True, text=True, env={"PYTHONPATH": str(ROOT / "proxy")})
    assert done.stdout == f"{ROOT / 'config' / 'plugins' / client}\n"
