"""`palimpsest stats`: what is stored, and what a running proxy does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
from palimpsest.evaluation.scripted import ScriptedUpstream

from tests.commands.test_cli import palimpsest
from tests.running import Conversation, Proxy, free_port, until

pytestmark = pytest.mark.slow

PROGRAM = """
import runpy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # else ignored where the tests run in the background
runpy.run_module("palimpsest", run_name="__main__")
"""
WATCH = ["stats", "--watch", "0.2", "--port"]


def watching(port: int, *options: str, **env: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM, *WATCH, str(port), *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | env)


def ended(watch: subprocess.Popen[str]) -> int:
    """Interrupt as a user does."""
    watch.send_signal(signal.SIGINT)
    watch.communicate(timeout=60)
    return watch.returncode


def test_a_running_proxy_is_watched_until_interrupted(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    upstream.script = lambda body: f"I read {len(body['messages'])} messages."
    with Proxy(tmp_path / "data", upstream.url, PALIMPSEST_ADMIN_TOKEN="t" * 32) as proxy:
        Conversation(proxy, "sk-one").say("hello")
        with watching(proxy.port, "--json", PALIMPSEST_ADMIN_TOKEN="t" * 32) as watch:
            assert watch.stdout is not None
            told = [orjson.loads(watch.stdout.readline()) for _ in range(2)]
            assert ended(watch) == 0
        assert told[1]["seconds"] > told[0]["seconds"] > 0
        assert told[1].items() >= {"memory_on": True, "turns_lost": 0, "policy_generation": 1}.items()
        with watching(proxy.port, PALIMPSEST_ADMIN_TOKEN="t" * 32) as watch:
            assert watch.stdout is not None
            screen = [watch.stdout.readline().split()[0] for _ in range(4)]
            assert ended(watch) == 0
        assert screen == ["proxy", "over", "requests", "blocks"]


def test_a_proxy_that_does_not_answer_is_said_at_once(tmp_path: Path) -> None:
    with watching(free_port()) as watch:
        assert watch.stdout is not None
        said = watch.stdout.read()
        assert watch.wait(60) == 1
    assert "does not answer" in said and "--port" in said


def test_what_is_stored_comes_as_json_too(proxy: Proxy, conversation: Conversation) -> None:
    conversation.say("hello")
    proxy.settle(vectors=False)
    told = orjson.loads(palimpsest("stats", "--json", "--data", str(proxy.data)).stdout)
    assert told["turns"] >= 1 and told["bytes"] > 0


def test_who_watches_sees_that_memory_is_switched_off(own_proxy: Proxy) -> None:
    proxy = own_proxy.start()
    for tenant in ([], ["--tenant", "key:team"]):
        palimpsest("disable", "--data", str(proxy.data), *tenant).check_returncode()
    until(lambda: proxy.metric("palimpsest_tenants_switched_off") == 1, "the proxy to learn of it")
    with watching(proxy.port, "--json") as watch:
        assert watch.stdout is not None
        told = orjson.loads(watch.stdout.readline())
        assert ended(watch) == 0
    assert (told["switched_off"], told["tenants_switched_off"], told["memory_on"]) == (True, 1, True)
