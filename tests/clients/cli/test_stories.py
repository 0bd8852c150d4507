"""
Agents as people install them, each with its own compaction: they work, and lose nothing.

That they work as without the proxy, and so do those that compact nothing by themselves, is `test_parity.py`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from palimpsest.domain import Json
from palimpsest.evaluation.scripted import Reply, ScriptedUpstream

from tests.clients.cli.aider import Aider
from tests.clients.cli.claude_code import ClaudeCode
from tests.clients.cli.codex import Codex, CodexWithOpenAI
from tests.clients.cli.opencode import OpenCode
from tests.clients.cli.program import Program
from tests.clients.conftest import FACT, QUESTION, TALK, answers, newest
from tests.running import Proxy, memory_in, own_texts, texts

pytestmark = pytest.mark.slow

Kind = type[Program]
NOTES = "The staging cluster has four nodes, and Ada has the keys."
KEYS = "Who has the keys?"
NOTES_SAY = "The notes say that Ada has them."
SHORT_TALK = (*TALK[:2], *TALK[-3:])  # the fact, and three turns behind it, which aider keeps


def speaking(program: Program) -> Callable[[Json], Reply | str]:
    """The model of these stories. After the last turn of the talk it reports a window that is full."""

    def script(body: Json) -> Reply | str:
        asked = newest(body)
        if NOTES in asked:
            return NOTES_SAY
        if KEYS in asked:
            call = program.reading("notes.txt")
            return Reply("Let me look.", (call,), "The notes will tell.") if call else NOTES_SAY
        said = answers(body)
        full = said == TALK[-1][1]
        return Reply(said, prompt_tokens=program.full_tokens) if full and isinstance(said, str) else said

    return script


@pytest.mark.parametrize("kind", [Aider, ClaudeCode, Codex, CodexWithOpenAI, OpenCode])
def test_client_works_and_the_fact_that_it_compacted_away_reaches_the_model(
    kind: Kind, proxy: Proxy, key: str, upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    program = kind(tmp_path / "home", proxy.url, key)
    upstream.script = speaking(program)
    (program.work / "notes.txt").write_text(NOTES)
    printed = program.say_all([KEYS, *(said for said, _ in SHORT_TALK)])
    assert all(answer in printed for answer in (NOTES_SAY, *(answer for _, answer in SHORT_TALK)))
    if program.reading("notes.txt"):
        assert any(NOTES in texts(r.json) for r in upstream.received)
    proxy.settle()
    program.say(QUESTION)
    reached = next(r.json for r in reversed(upstream.received) if QUESTION in newest(r.json))
    assert FACT not in own_texts(reached), "the client did not compact"
    assert FACT in memory_in(reached)
