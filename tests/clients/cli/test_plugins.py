"""The plug-ins, installed in the real clients from their folders: tools, a line at the start, and what /clear means."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest
from palimpsest.domain import Json
from palimpsest.evaluation.scripted import ScriptedUpstream

from tests.clients.cli.claude_code import ClaudeCode
from tests.clients.cli.codex import Codex
from tests.clients.cli.program import Program
from tests.clients.conftest import newest
from tests.clients.recipes import at
from tests.running import ROOT, Proxy, memory_in, rows, texts, until

pytestmark = pytest.mark.slow

PLUGINS = ROOT / "config" / "plugins"
FACT = "The billing queue of the staging cluster is named amber-otter-52, please keep that in mind."
SAID = "Noted: the billing queue of the staging cluster is named amber-otter-52."
QUESTION = "What did we name the billing queue of the staging cluster?"
CLEARED = "SELECT count(*) FROM conversation WHERE cleared > 0"
HELLO = "Hello, let us begin with something else."


def on_path(program: Program) -> dict[str, str]:
    """An environment in which the command `palimpsest` is this checkout's."""
    folder = program.home / "bin"
    folder.mkdir(exist_ok=True)
    script = folder / "palimpsest"
    if not script.exists():
        assert Proxy.fork_server is not None
        script.write_text(f'#!/bin/sh\nexec "{Proxy.fork_server.python()}" -m palimpsest "$@"\n')
        script.chmod(0o755)
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "PALIMPSEST_URL": program.url.removesuffix("/v1"), "PALIMPSEST_API_KEY": program.key}


class ClaudeCodeWithPlugin(ClaudeCode):
    def env(self) -> Mapping[str, str]:
        return {**super().env(), **on_path(self)}

    def install(self) -> None:
        self.run("plugin", "marketplace", "add", str(PLUGINS / "claude-code"))
        self.run("plugin", "install", "palimpsest@palimpsest")

    @contextmanager
    def session(self) -> Iterator[Session]:
        """One process that is spoken to several times, as a terminal would."""
        flags = ("--input-format", "stream-json", "--output-format", "stream-json", "--verbose")
        env = {"HOME": str(self.home), "NO_PROXY": "127.0.0.1", **self.env()}
        words = [str(self.path), "-p", *flags]
        with subprocess.Popen(
            words, env=env, cwd=self.work, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            yield Session(process)
            assert process.stdin is not None
            process.stdin.close()


class Session:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.events: list[Json] = []

    def say(self, text: str) -> None:
        """Say something, and wait for the answer."""
        told = {"type": "user", "message": {"role": "user", "content": text}}
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(orjson.dumps(told).decode() + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            self.events.append(orjson.loads(line))
            if self.events[-1]["type"] == "result":
                return
        pytest.fail("the client ended")


@pytest.fixture
def serving(upstream: ScriptedUpstream, tmp_path: Path) -> Iterator[Proxy]:
    """A proxy of one person's, who wants to be remembered across conversations."""
    settings: Json = {"tenants": {"static": "me"}, "memory": {"reach": "tenant"}, "mcp": {"enabled": True}}
    upstream.script = lambda body: SAID if FACT in newest(body) else "All right, let us see what there is."
    with Proxy(tmp_path / "data", upstream.url, settings) as proxy:
        yield proxy


def asked(upstream: ScriptedUpstream) -> Json:
    """The request with the question."""
    return next(r.json for r in reversed(upstream.received) if QUESTION in newest(r.json))


@pytest.mark.parametrize("has_plugin", [True, False], ids=["with the plug-in", "without"])
def test_what_was_cleared_does_not_come_back_and_what_another_session_said_does(
    serving: Proxy, key: str, upstream: ScriptedUpstream, tmp_path: Path, has_plugin: bool
) -> None:
    client = ClaudeCodeWithPlugin(tmp_path / "home", serving.url, key)
    if has_plugin:
        client.install()
    with client.session() as session:
        session.say(HELLO)
        session.say(FACT)
        serving.settle()
        session.say("/clear")
        if has_plugin:  # its hook runs on when the client has gone on
            until(lambda: rows(serving.data, CLEARED) == [(1,)], "the proxy to be told that the session was cleared")
        session.say(HELLO)
        session.say(QUESTION)
    assert ("amber-otter-52" in memory_in(asked(upstream))) is not has_plugin
    if not has_plugin:
        return
    said = [event for event in session.events if event.get("subtype") == "hook_response"]
    assert f"Palimpsest remembers, at {serving.url.removesuffix('/v1')}" in said[0]["output"]
    begun = [event for event in session.events if event.get("subtype") == "init"]  # one for each message
    # It may still connect when the first message is sent.
    assert [one["status"] for one in begun[-1]["mcp_servers"] if "palimpsest" in one["name"]] == ["connected"]
    assert "Palimpsest remembers" not in texts(asked(upstream)), "the model was told as well"


def test_after_a_restart_what_was_said_comes_back(
    serving: Proxy, key: str, upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    client = ClaudeCodeWithPlugin(tmp_path / "home", serving.url, key)
    client.install()
    for said in (FACT, QUESTION):
        with client.session() as session:
            session.say(HELLO)
            session.say(said)
        serving.settle()
    assert "amber-otter-52" in memory_in(asked(upstream))


class CodexWithPlugin(Codex):
    def env(self) -> Mapping[str, str]:
        return {**super().env(), **on_path(self)}

    def install(self) -> None:
        folder = shutil.copytree(PLUGINS / "codex", self.home / "plugin")  # Codex fills no variables into an address
        tools = folder / ".mcp.json"
        tools.write_text(at(tools.read_text(), self.url))
        self.run("plugin", "marketplace", "add", str(folder))
        self.run("plugin", "add", "palimpsest@palimpsest")

    def ask(self, text: str) -> str:
        flags = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
        return self.run("exec", *flags, "--dangerously-bypass-hook-trust", "--json", text)


def test_codex_has_the_tools_and_runs_the_hook(
    serving: Proxy, key: str, upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    codex = CodexWithPlugin(tmp_path / "home", serving.url, key)
    codex.install()
    hook = codex.home / "bin" / "palimpsest"
    hook.write_text(hook.read_text().replace("exec ", f'echo "$@" >> "{codex.home}/ran"; exec '))
    codex.say(HELLO)  # the first call of a tool server loads what it is made of, and Codex does not wait for that
    codex.say(HELLO)
    offered = upstream.received[-1].json["tools"]
    inner = [one.get("name") for tool in offered for one in tool.get("tools", ())]
    assert {"search_memory", "fetch_memory", "recall_lost"} <= set(inner)
    assert (codex.home / "ran").read_text() == "hook codex\n" * 2
