"""Codex says itself when it compacts (`x-codex-window-id` counts up): an oracle for what is read off its history."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import orjson
import pytest
from palimpsest.domain import Json
from palimpsest.evaluation.scripted import Reply, ScriptedUpstream
from palimpsest.settings.load import WRAPPED_AT_ENV

from tests.clients.cli.codex import COMPACT_AT_TOKENS, Codex, CodexBuiltIn, CodexWithOpenAI
from tests.clients.conftest import FACT, QUESTION, TALK, answers, newest
from tests.running import PATIENT, ROOT, Proxy, free_port, memory_in, own_texts, rows

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("words_only")]

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
        assert Proxy.fork_server is not None
        self.codex, self.path = self.path, Proxy.fork_server.python()
        self.port = free_port()

    def env(self) -> Mapping[str, str]:
        own = {"OPENAI_BASE_URL": self.url, "PALIMPSEST_MODEL__DOWNLOAD": "never"} | PATIENT
        return {**super().env(), **own, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "proxy")))}

    def run(self, *arguments: str, said: str = "") -> str:
        return super().run(*self._wrap(), str(self.codex), *arguments, said=said)

    def _wrap(self) -> Sequence[str]:
        return ("-m", "palimpsest", "wrap", "--port", str(self.port), "--data", str(self.home / "data"), "--")

    @contextmanager
    def inside_another(self) -> Iterator[None]:
        """Run it in a wrapped shell, whose proxy serves what is wrapped inside: one start, not one for each run."""
        command = [self.path, *self._wrap(), "sh", "-c", f"echo ${WRAPPED_AT_ENV}; cat"]
        env = os.environ | {"HOME": str(self.home), **self.env()}
        with subprocess.Popen(command, env=env, cwd=self.work, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as shell:
            assert shell.stdout
            self.network = {WRAPPED_AT_ENV: shell.stdout.readline().decode().strip()}
            yield
            self.network = {}


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
    with codex.inside_another():
        for said, answer in TALK:
            assert answer in codex.say(said)
    codex.say(QUESTION)
    reached = [r for r in upstream.received if r.endpoint == "/v1/responses"]
    kinds = [orjson.loads(r.headers["x-codex-turn-metadata"])["request_kind"] for r in reached]
    assert kinds == ["turn"] * len(TALK) + ["compaction", "turn"]
    assert FACT in memory_in(reached[-1].json)


@pytest.mark.parametrize(
    ("kind", "compactions"), [("by the policy", 6), ("refused", 3), ("answered in words", 3), ("chat only", 3)]
)
def test_codex_goes_on_through_many_compactions_that_the_proxy_answers(
    key: str, upstream: ScriptedUpstream, tmp_path: Path, kind: str, compactions: int
) -> None:
    """The upstream cannot compact: codex would end upon what it says to a trigger."""
    settings: Json = {"memory": {"compaction": "answer"}} if kind == "by the policy" else {}
    if kind == "chat only":  # by way of LiteLLM, as docs/providers.md has it
        named = {"name": "local", "litellm": "lm_studio/*", "url": upstream.url, "key_env": "LOCAL_KEY"}
        settings = {"upstreams": [named]}
    upstream.has_compactions = kind != "answered in words"
    direct = "" if "upstreams" in settings else upstream.url
    with Proxy(tmp_path / "data", direct, settings, LOCAL_KEY="sk-local") as proxy:
        codex = CodexWithOpenAI(tmp_path / "home", proxy.url, key)

        def script(body: Json) -> Reply | str:
            if any(item.get("type") == "compaction_trigger" for item in body.get("input", ())):
                return Reply("Unknown item type: compaction_trigger", status=400)
            said = answers(body)
            is_full = said == TALK[-1][1] or "More of the same" in newest(body)
            return Reply(str(said), prompt_tokens=codex.full_tokens) if is_full else said

        upstream.script = script
        for said, answer in TALK:
            assert answer in codex.say(said)
        for number in range(compactions - 1):
            codex.say(f"More of the same, part {number}.")
        proxy.settle(vectors=False)
        codex.say(QUESTION)
        seen = rows(proxy.data, "SELECT role, event FROM turn ORDER BY id")
    upstream.has_compactions = True
    events = [event for role, event in seen if role == "main"]
    assert len(events) == len(TALK) + compactions
    assert sum(event.startswith("compaction:") for event in events) == compactions
    last = upstream.received[-1].json
    assert FACT in memory_in(last) and FACT not in own_texts(last)
    assert not any(b"palimpsest.compaction" in r.body for r in upstream.received)
    asked = [r for r in upstream.received if b"compaction_trigger" in r.body]
    assert len(asked) == (kind in ("refused", "answered in words")), "it is asked the first time alone"


@pytest.mark.parametrize("compaction", ["forward", "answer"])
def test_codex_with_its_built_in_provider_has_memory_on_its_websocket(
    compaction: str, key: str, upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    upstream.has_websockets = True
    try:
        with Proxy(tmp_path / "data", upstream.url, {"memory": {"compaction": compaction}}) as proxy:
            codex = CodexBuiltIn(tmp_path / "home", proxy.url, key)

            def script(body: Json) -> Reply | str:
                said = answers(body)
                return Reply(str(said), prompt_tokens=codex.full_tokens) if said == TALK[-1][1] else said

            upstream.script = script
            for said, answer in TALK:
                assert answer in codex.say(said)
            proxy.settle(vectors=False)
            codex.say(QUESTION)
    finally:
        upstream.has_websockets = False
    asked = [r for r in upstream.received if r.endpoint == "/v1/responses"]
    assert {r.method for r in asked} == {"WEBSOCKET"}, "codex fell back to HTTP"
    triggers = [r for r in asked if any(item.get("type") == "compaction_trigger" for item in r.json["input"])]
    assert len(triggers) == (compaction == "forward")
    assert FACT in memory_in(asked[-1].json) and FACT not in own_texts(asked[-1].json)


class WrappedCodexThatAsks(WrappedCodex):
    """The same where the policy has the proxy compact."""

    def env(self) -> Mapping[str, str]:
        return {**super().env(), "PALIMPSEST_MEMORY__COMPACTION": "answer"}


def test_wrapped_codex_has_the_proxy_compact_where_the_policy_says_so(
    key: str, upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    codex = WrappedCodexThatAsks(tmp_path / "home", upstream.url, key)

    def script(body: Json) -> Reply | str:
        said = answers(body)
        return Reply(said, prompt_tokens=codex.full_tokens) if said == TALK[-1][1] and isinstance(said, str) else said

    upstream.script = script
    with codex.inside_another():
        for said, answer in TALK:
            assert answer in codex.say(said)
    codex.say(QUESTION)
    reached = [r for r in upstream.received if r.endpoint == "/v1/responses"]
    kinds = [orjson.loads(r.headers["x-codex-turn-metadata"])["request_kind"] for r in reached]
    assert kinds == ["turn"] * (len(TALK) + 1), "the upstream was asked for a summary"
    assert reached[-1].headers["x-codex-window-id"].endswith(":1"), "codex did not compact"
    assert FACT in memory_in(reached[-1].json)
