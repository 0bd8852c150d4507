"""Claude Code and Codex are offered the memory tools, call them, and read what they quote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import orjson
import pytest
from palimpsest.domain import Json, ToolCall
from palimpsest.evaluation.scripted import Reply, ScriptedUpstream

from tests.clients.cli.claude_code import ClaudeCode
from tests.clients.cli.codex import Codex
from tests.clients.recipes import recipe
from tests.running import Conversation, Proxy, texts

pytestmark = pytest.mark.slow

FACT = "The metrics exporter listens on port 9417."
TOOL = "search_memory"
QUERY = orjson.dumps({"query": "Which port does the metrics exporter listen on?"}).decode()


class ClaudeCodeWithTools(ClaudeCode):
    def env(self) -> Mapping[str, str]:
        return {**super().env(), "PALIMPSEST_API_KEY": self.key}

    def ask(self, text: str) -> str:
        (self.work / ".mcp.json").write_text(recipe("Claude Code", "json", self.url, "mcp.md"))
        flags = ("--mcp-config", ".mcp.json", "--allowedTools", "mcp__palimpsest__search_memory")
        return self.run("-p", *flags, "--", text)


class CodexWithTools(Codex):
    def prepare(self) -> None:
        super().prepare()
        with (self.home / ".codex" / "config.toml").open("a") as config:
            config.write("\n" + recipe("Codex", "toml", self.url, "mcp.md"))


@pytest.fixture
def serving(upstream: ScriptedUpstream, tmp_path: Path) -> Iterator[Proxy]:
    """A proxy that serves the tools."""
    settings: Json = {"memory": {"reach": "tenant"}, "mcp": {"enabled": True}}
    with Proxy(tmp_path / "data", upstream.url, settings) as proxy:
        yield proxy


def next_call(question: Json, done: list[str]) -> ToolCall | None:
    """What a model would do next to reach the tool; None: answer."""
    tools = question.get("tools") or []
    inner = [one.get("name") for tool in tools for one in tool.get("tools", ())]
    if not done and "ToolSearch" in [tool.get("name") for tool in tools]:  # Claude Code lists it by name only
        wanted = orjson.dumps({"query": "select:mcp__palimpsest__search_memory", "max_results": 5}).decode()
        return ToolCall("toolu_search", "ToolSearch", wanted)
    if done == ["ToolSearch"]:
        return ToolCall("toolu_memory", "mcp__palimpsest__search_memory", QUERY)
    if not done and TOOL in inner:  # Codex gives each server a namespace
        return ToolCall("call_memory", TOOL, QUERY)
    return None


@pytest.mark.parametrize("kind", [ClaudeCodeWithTools, CodexWithTools])
def test_a_client_calls_a_memory_tool_and_reads_what_it_quotes(
    kind: type[ClaudeCode | Codex], serving: Proxy, key: str, upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    done: list[str] = []

    def script(question: Json) -> Reply | str:
        call = next_call(question, done)
        if call is None:
            return "It was in memory."
        done.append(call.name)
        return Reply(calls=(call,))

    upstream.script = lambda _question: "Noted."
    Conversation(serving, key).say(FACT)
    serving.settle(vectors=False)
    upstream.script = script
    client = kind(tmp_path / "home", serving.url, key)
    assert "It was in memory." in client.say("What did I decide about the exporter?")
    assert done[-1].endswith(TOOL)
    quoted = texts(upstream.received[-1].json).rpartition("<palimpsest-memory")[2]
    assert "9417" in quoted
    assert "fetch_memory" in quoted  # of the tool's result: a block of the proxy's names no tool
