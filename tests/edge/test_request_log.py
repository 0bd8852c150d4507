"""Each request has one line in the log, which says how it went and holds nobody's words."""

from __future__ import annotations

import http.client
from pathlib import Path
from typing import Any

import orjson
import pytest
from palimpsest.domain import Json
from palimpsest.evaluation.scripted import Reply, ScriptedUpstream

from tests.running import Conversation, Proxy, as_headers, free_port, request, until

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("words_only")]


def logged(proxy: Proxy) -> list[dict[str, Any]]:
    lines = [orjson.loads(line) for line in proxy.log.read_text().splitlines() if line.startswith("{")]
    return [line for line in lines if line["event"] == "request"]


def quiet(folder: Path, url: str, settings: Json | None = None, **env: str) -> Proxy:
    return Proxy(folder / "data", url, {"log": {"format": "json"}} | (settings or {}), **env)


def next_line(proxy: Proxy, before: int) -> dict[str, Any]:
    """The one line that came since there were so many."""
    found = until(lambda: logged(proxy)[before:], "the line of a request")
    assert len(found) == 1
    return found[0]


def test_a_line_says_what_memory_made_of_a_request(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    upstream.script = lambda body: f"I read all {len(body['messages'])} messages, and keep the archive's rooms in mind."
    with quiet(tmp_path, upstream.url) as proxy:
        talk = Conversation(proxy, "sk-one")
        answered = talk.say("The archive room is number 3172, and its door opens to the left.")
        line = next_line(proxy, 0)
        assert (line["turn"], line["conversation"]) == (answered.said("turn"), answered.said("conversation"))
        assert line["turn"].startswith("t-") and line["request"] == answered.said("request")
        wanted = {"method": "POST", "path": "/v1/chat/completions", "status": 200, "role": "main", "history": "start"}
        assert line.items() >= (wanted | {"note": "calm", "level": "info"}).items()
        assert 0 <= line["memory_ms"] <= line["first_byte_ms"] <= line["total_ms"]
        for shelf in range(3):
            talk.say(f"Then we went through shelf {shelf} and wrote down every single title on it.")
        proxy.settle(vectors=False)
        talk.keep_last(2)
        answered = talk.ask("What is the number of the archive room?")
        line = next_line(proxy, 4)
        assert line["history"] == answered.said("event") == "compaction:truncate"
        assert line["added_tokens"] == int(answered.said("added-tokens")) > 0
        assert abs(line["added_share"] - float(answered.said("added-share"))) < 0.01 < line["added_share"]
        for word in ("archive", "3172", "shelf", "sk-one"):
            assert word not in proxy.log.read_text()


def test_what_passes_has_a_line_too(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    with quiet(tmp_path, upstream.url) as proxy:
        proxy.get("/v1/files/%1b[31m" + "a" * 500 + "?key=sk-secret")
        line = next_line(proxy, 0)
        assert line["path"] == ("/v1/files/%1b[31m" + "a" * 500)[:120]
        assert line["request"].startswith("r-") and "turn" not in line and "note" not in line
        proxy.get("/readyz")
        assert len(logged(proxy)) == 1 and "sk-secret" not in proxy.log.read_text()


def test_a_path_with_a_wrong_base_url_is_told_from_one_that_is_right(
    tmp_path: Path, upstream: ScriptedUpstream
) -> None:
    with quiet(tmp_path, upstream.url) as proxy:
        body = orjson.dumps({"model": "m", "messages": [{"role": "user", "content": "hello"}]})
        for number, path in enumerate(("/chat/completions", "/v1/v1/messages", "/v1/chat/completions", "/v1/files")):
            request(proxy.port, "POST", path, body, as_headers("sk-one", {}))
            assert ("hint" in next_line(proxy, number)) is (number < 2), path


def test_a_client_without_a_credential_is_told_once_why_nothing_is_remembered(
    tmp_path: Path, upstream: ScriptedUpstream
) -> None:
    with quiet(tmp_path, upstream.url) as proxy:
        body = orjson.dumps({"model": "m", "messages": [{"role": "user", "content": "hello"}]})
        for number in range(2):
            request(proxy.port, "POST", "/v1/chat/completions", body, {"x-forwarded-for": "10.0.0.7"})
            assert next_line(proxy, number)["note"] == "no-tenant"
        said = proxy.log.read_text()
    assert said.count("a request without a credential names no tenant") == 1
    assert "tenants.static" in said


def test_what_was_refused_is_a_warning_with_its_reason(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    keys = {"tenants": {"keys": [{"name": "team", "key_env": "TEAM"}]}, "upstreams": [{"auth": "held"}]}
    with quiet(tmp_path, upstream.url, keys, TEAM="pk-team") as proxy:
        body = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
        assert proxy.chat(body, "pk-wrong").status == 401
        line = next_line(proxy, 0)
        assert (line["level"], line["status"], line["reason"]) == ("warning", 401, "invalid_api_key")
        assert "pk-wrong" not in proxy.log.read_text()
        upstream.play(Reply(status=429))
        assert proxy.chat(body, "pk-team").status == 429
        line = next_line(proxy, 1)
        assert (line["level"], line["status"]) == ("warning", 429) and "reason" not in line


def test_an_upstream_that_is_not_there_is_a_warning(tmp_path: Path) -> None:
    with quiet(tmp_path, f"http://127.0.0.1:{free_port()}/v1") as proxy:
        assert Conversation(proxy, "sk-one").say("hello").status == 502
        line = next_line(proxy, 0)
        assert (line["level"], line["status"], line["reason"]) == ("warning", 502, "upstream_unreachable")


@pytest.mark.parametrize("memory", ["on", "off"])
@pytest.mark.parametrize("way", [{}, {"litellm": "openai/*", "auth": "forward"}], ids=["plain", "via litellm"])
def test_a_stream_that_is_cut_leaves_no_traceback(
    tmp_path: Path, upstream: ScriptedUpstream, memory: str, way: Json
) -> None:
    body = orjson.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "hello"}]})
    headers = as_headers("sk-one", {"x_palimpsest_memory": memory})
    story = Reply("The beginning of a story that nobody ever told to its end", lockstep=True, cut_after=4)

    def begin() -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        upstream.play(story)
        upstream.permit(3)
        client = http.client.HTTPConnection("127.0.0.1", proxy.port)
        client.request("POST", "/v1/chat/completions", body, headers)
        response = client.getresponse()
        assert response.read(1)
        return client, response

    with quiet(tmp_path, upstream.url, {"upstreams": [way]}) as proxy:
        client, response = begin()
        upstream.permit(1)
        with pytest.raises(http.client.IncompleteRead):
            response.read()
        client.close()
        assert next_line(proxy, 0).items() >= {"level": "warning", "status": 200, "ending": "upstream-broke"}.items()
        client, response = begin()
        response.close()
        client.close()
        assert next_line(proxy, 1).items() >= {"level": "info", "status": 200, "ending": "client-gone"}.items()
        assert proxy.stop() == 0
    said = proxy.log.read_text()
    assert [word for word in ("trace", "Traceback", "ASGI", '"error"') if word in said] == []


def test_a_read_only_request_names_no_turn(proxy: Proxy, conversation: Conversation) -> None:
    assert conversation.ask("hello", x_palimpsest_memory="read-only").said("turn") == ""
    assert request(proxy.port, "GET", f"/memory/v1/turns/{conversation.say('hi').said('turn')}").status in (200, 404)
