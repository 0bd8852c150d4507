"""Codex says itself when it compacts (`x-codex-window-id` counts up): an oracle for what is read off its history."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import orjson
import pytest
from palimpsest.domain import Json
from palimpsest.scripted import Reply, ScriptedUpstream

from tests.clients.cli.codex import COMPACT_AT_TOKENS, Codex, CodexWithOpenAI
from tests.clients.conftest import FACT, QUESTION, TALK, answers, newest
from tests.running import ROOT, Proxy, free_port, memory_in, rows

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


class WrappedCodex(Codex):
    """Without settings of its own, run by `palimpsest wrap`; it has the key alone."""

    def prepare(self) -> None:
        folder = self.home / ".codex"
        folder.mkdir()
        limit = f'model = "gpt-4o"\nmodel_auto_compact_token_limit = {COMPACT_AT_TOKENS}\n'
        (folder / "config.toml").write_text(f"{limit}\n[analytics]\nenabled = false\n")
        self.codex, self.path = self.path, Path(sys.executable)
        self.port = free_port()

    def env(self) -> Mapping[str, str]:
        own = {"OPENAI_BASE_URL": self.url, "PALIMPSEST_MODEL__DOWNLOAD": "never"}
        return {**super().env(), **own, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "proxy")))}

    def run(self, *arguments: str, said: str = "") -> str:
        own = ("-m", "palimpsest", "wrap", "--port", str(self.port), "--data", str(self.home / "data"), "--")
        return super().run(*own, str(self.codex), *arguments, said=said)


def test_wrapped_codex_compacts_where_the_upstream_knows_no_compaction(
    key: str, upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    """A server that has the Responses API for others' models answers a trigger with words, as any other request."""
    codex = WrappedCodex(tmp_path / "home", upstream.url, key)

    def script(body: Json) -> Reply | str:
        assert body["input"][-1].get("type") != "compaction_trigger", "the upstream was to compact"
        said = answers(body)
        return Reply(said, prompt_tokens=codex.full_tokens) if said == TALK[-1][1] and isinstance(said, str) else said

    upstream.script = script
    for said, answer in TALK:
        assert answer in codex.say(said)
    codex.say(QUESTION)
    reached = [r for r in upstream.received if r.endpoint == "/v1/responses"]
    kinds = [orjson.loads(r.headers["x-codex-turn-metadata"])["request_kind"] for r in reached]
    assert kinds == ["turn"] * len(TALK) + ["compaction", "turn"]
    assert FACT in memory_in(reached[-1].json)
