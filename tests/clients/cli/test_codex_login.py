"""Codex with a ChatGPT login works as without the proxy, and is remembered where the policy says whose it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from palimpsest.domain import Json
from palimpsest.evaluation.scripted import Reply, ScriptedUpstream
from palimpsest.evaluation.scripted.reply import Received

from tests.clients.cli.codex import CodexWithLogin
from tests.clients.conftest import FACT, QUESTION, TALK, answers, newest
from tests.running import Proxy, memory_in, own_texts, rows, upstream_on_a_thread

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("words_only")]

BASE = "/backend-api/codex"


class ChatGpt(ScriptedUpstream):
    """What ChatGPT serves to Codex: below its own path, to this account with this token alone."""

    token = ""

    def _say(self, got: Received) -> tuple[Reply, str, list[bytes]]:
        headers = {name.lower(): value for name, value in got.headers.items()}
        shown = (headers.get("authorization"), headers.get("chatgpt-account-id"))
        if shown != (f"Bearer {self.token}", CodexWithLogin.account):
            return Reply(status=401), "application/json", [b'{"detail": "Unauthorized"}']
        if got.endpoint == f"{BASE}/models":
            return Reply(), "application/json", [b'{"models": []}']
        if got.endpoint != f"{BASE}/responses" or got.method != "POST":
            return Reply(status=404), "application/json", [b'{"detail": "Not Found"}']
        return super()._say(got)


@pytest.fixture
def chatgpt() -> Iterator[ChatGpt]:
    with upstream_on_a_thread(ChatGpt()) as upstream:
        assert isinstance(upstream, ChatGpt)
        yield upstream


def serving(folder: Path, api: ScriptedUpstream, chatgpt: ChatGpt, **more: Json) -> Proxy:
    """A proxy for both logins of one provider."""
    logins = {"chatgpt-account-id": chatgpt.url.removesuffix("/v1") + BASE}
    return Proxy(folder, "", {"upstreams": [{"url": api.url, "logins": logins}], **more})


def test_a_session_with_its_compaction_goes_to_chatgpt_and_what_was_dropped_comes_back(
    upstream: ScriptedUpstream, chatgpt: ChatGpt, key: str, tmp_path: Path
) -> None:
    with serving(tmp_path / "data", upstream, chatgpt, tenants={"static": "me"}) as proxy:
        codex = CodexWithLogin(tmp_path / "home", proxy.url, key)
        chatgpt.token = codex.token

        def script(body: Json) -> Reply | str:
            said = answers(body)
            full = said == TALK[-1][1]
            return Reply(said, prompt_tokens=codex.full_tokens) if full and isinstance(said, str) else said

        chatgpt.script = script
        for said, answer in TALK:
            assert answer in codex.say(said)
        proxy.settle(vectors=False)
        codex.say(QUESTION)
    assert upstream.received == []
    reached = [r for r in chatgpt.received if r.endpoint.endswith("/responses")]
    assert any(r.json["input"][-1].get("type") == "compaction_trigger" for r in reached), "codex did not compact"
    assert f"{BASE}/models" in {r.endpoint for r in chatgpt.received}
    asked = next(r.json for r in reversed(reached) if QUESTION in newest(r.json))
    assert FACT not in own_texts(asked)
    assert FACT in memory_in(asked)


def test_without_a_tenant_of_the_policys_it_works_and_is_not_remembered(
    upstream: ScriptedUpstream, chatgpt: ChatGpt, key: str, tmp_path: Path
) -> None:
    with serving(tmp_path / "data", upstream, chatgpt) as proxy:
        codex = CodexWithLogin(tmp_path / "home", proxy.url, key)
        chatgpt.token, chatgpt.script = codex.token, answers
        assert TALK[0][1] in codex.say(TALK[0][0])
        proxy.settle(vectors=False)
        assert rows(proxy.data, "SELECT * FROM turn") == []


def test_its_login_is_not_shown_to_an_upstream_that_is_not_openais(
    own_proxy: Proxy, upstream: ScriptedUpstream, key: str, tmp_path: Path
) -> None:
    proxy = own_proxy.start()
    codex = CodexWithLogin(tmp_path / "home", proxy.url, key)
    with pytest.raises(AssertionError) as failed:
        codex.say("hello")
    assert "upstreams.logins" in str(failed.value)
    assert upstream.received == []
    assert orjson.loads((codex.home / ".codex" / "auth.json").read_bytes())["tokens"]["access_token"] == codex.token
