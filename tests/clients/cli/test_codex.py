"""Codex says itself when it compacts (`x-codex-window-id` counts up): an oracle for what is read off its history."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import orjson
import pytest
from palimpsest.domain import Json
from palimpsest.scripted import Reply, ScriptedUpstream

from tests.clients.cli.codex import Codex, CodexWithOpenAI
from tests.clients.conftest import TALK, answers, newest
from tests.running import Proxy, rows

pytestmark = pytest.mark.slow

NOTES = "The staging cluster has four nodes, and Ada has the keys."


@pytest.mark.parametrize("kind", [Codex, CodexWithOpenAI])
def test_every_new_window_is_seen_as_a_compaction_and_nothing_else_is(
    kind: type[Codex], own_proxy: Proxy, key: str, upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    """The window fills up twice: before a turn, and in the middle of one, when a tool has answered."""
    proxy = own_proxy.start()
    codex = kind(tmp_path / "home", proxy.url, key)
    (codex.work / "notes.txt").write_text(NOTES)
    full = Reply(prompt_tokens=codex.full_tokens)

    looked: list[Json] = []

    def script(body: Json) -> Reply | str:
        if "Who has the keys?" in newest(body) and not looked:
            looked.append(body)
            return replace(full, calls=(codex.reading("notes.txt"),))
        said = answers(body)
        return replace(full, text=said) if said == TALK[3][1] and isinstance(said, str) else said

    upstream.script = script
    for said, _ in (*TALK[:5], ("Who has the keys?", ""), TALK[5]):
        codex.say(said)
    proxy.settle(vectors=False)

    asked = [r for r in upstream.received if r.endpoint == "/v1/responses"]
    kinds = [orjson.loads(r.headers["x-codex-turn-metadata"])["request_kind"] for r in asked]
    seen = rows(proxy.data, "SELECT role, event FROM turn ORDER BY id")
    assert [role == "main" for role, _ in seen] == [kind == "turn" for kind in kinds]
    windows = [int(r.headers["x-codex-window-id"].rpartition(":")[2]) for r in asked]
    turns = [window for window, kind in zip(windows, kinds, strict=True) if kind == "turn"]
    events = [event for role, event in seen if role == "main"]
    assert max(turns) == 2, "codex did not compact twice"
    assert [now > before for before, now in pairwise(turns)] == [e.startswith("compaction:") for e in events[1:]]
