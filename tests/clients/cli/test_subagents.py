"""Agents that hand work on: what a sub-agent says with itself is a conversation of its own, and serves the user's."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from palimpsest.domain import Json, ToolCall
from palimpsest.evaluation.scripted import Reply, ScriptedUpstream

from tests.clients.cli.claude_code import ClaudeCode
from tests.clients.cli.codex import Codex
from tests.clients.cli.opencode import OpenCode
from tests.clients.cli.program import Program
from tests.clients.conftest import newest
from tests.running import Conversation, Proxy, rows

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("words_only")]

ORDER = "Delegate this, please: somebody should find out how large the cluster is."
TASK = "Please count the nodes."
DONE = "All is done, thank you for waiting."
WAIT_SECONDS = 2.0  # of the main conversation for a sub-agent that works in the background

KINDS: list[tuple[type[Program], str, Json]] = [
    (ClaudeCode, "Agent", {"description": "count nodes", "prompt": TASK, "subagent_type": "general-purpose"}),
    (Codex, "spawn_agent", {"message": TASK}),
    (OpenCode, "task", {"description": "count nodes", "prompt": TASK, "subagent_type": "general"}),
]


@pytest.mark.parametrize(("kind", "tool", "arguments"), KINDS, ids=[kind.__name__ for kind, *_ in KINDS])
def test_subagent_is_known_with_the_conversation_that_it_serves(
    kind: type[Program],
    tool: str,
    arguments: Json,
    own_proxy: Proxy,
    key: str,
    upstream: ScriptedUpstream,
    tmp_path: Path,
) -> None:
    proxy = own_proxy.start()
    Conversation(proxy, "sk-other").say("Hello.")
    proxy.settle(vectors=False)  # codex calls its sub-agent 0.2 s after it has asked: the archive must have started
    program = kind(tmp_path / "home", proxy.url, key)
    handed_on: list[Json] = []

    def script(body: Json) -> Reply | str:
        asked = newest(body)
        if TASK in asked:
            return "There are four nodes in the cluster, as far as I can see."
        if ORDER in asked and body.get("tools") and not handed_on:
            handed_on.append(body)
            return Reply(calls=(ToolCall("call_1", tool, orjson.dumps(arguments).decode()),))
        return Reply(DONE, wait_seconds=WAIT_SECONDS) if body.get("tools") else "Counting"

    upstream.script = script
    assert DONE in program.say(ORDER)
    proxy.settle(vectors=False)
    seen = rows(
        proxy.data,
        "SELECT DISTINCT t.role, c.public, c.parent FROM turn AS t JOIN conversation AS c ON c.id = t.conversation "
        "WHERE c.tenant = (SELECT max(id) FROM tenant)",
    )
    (home,) = [public for role, public, _ in seen if role == "main"]
    assert [parent for role, _, parent in seen if role == "subagent"] == [home]
    assert home not in [public for role, public, _ in seen if role == "subagent"]
