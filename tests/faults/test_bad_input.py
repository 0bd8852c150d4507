"""Whatever a client sends reaches the upstream as it is, and the upstream's word reaches the client."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import orjson
import pytest
from palimpsest.domain import Json
from palimpsest.evaluation.scripted import Reply, ScriptedUpstream, error_body
from palimpsest.wire.json_body import MAX_BODY_BYTES

from tests.running import Proxy, as_headers, request, until

pytestmark = pytest.mark.slow

CHAT = "/v1/chat/completions"
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{not json"}}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
AUDIO = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
DEEP = b'{"messages": ' + b"[" * 20_000 + b"]" * 20_000 + b"}"


def chat(*messages: object, **more: object) -> bytes:
    return orjson.dumps({"model": "gpt-4o", "messages": messages} | more)


BODIES: dict[str, bytes] = {
    "nothing": b"",
    "not json": b"{this is not json",
    "binary": bytes(range(256)) * 8,
    "broken utf-8": b'{"model": "m", "messages": [{"role": "user", "content": "caf\xe9"}]}',
    "lone surrogate": b'{"model": "m", "messages": [{"role": "user", "content": "\\ud83d"}]}',
    "deep nesting": DEEP,
    "a list": b"[1, 2, 3]",
    "a string": b'"messages"',
    "null": b"null",
    "no messages": orjson.dumps({"model": "gpt-4o"}),
    "empty messages": chat(),
    "messages of a wrong type": orjson.dumps({"model": "gpt-4o", "messages": "hello"}),
    "a message that is no object": chat("hello", 7, None),
    "message without role": chat({"content": "hello"}),
    "role of a wrong type": chat({"role": 7, "content": "hello"}),
    "unknown role": chat({"role": "narrator", "content": "hello"}, {"role": "user", "content": "hi"}),
    "null content": chat({"role": "user", "content": None}),
    "empty content": chat({"role": "user", "content": ""}),
    "content of a wrong type": chat({"role": "user", "content": 7}),
    "content parts of wrong types": chat({"role": "user", "content": [7, None, {"type": "text"}, {"text": 7}]}),
    "unpaired tool call": chat({"role": "assistant", "content": None, "tool_calls": [CALL]}),
    "unpaired tool result": chat({"role": "tool", "tool_call_id": "c9", "content": "42"}),
    "tool calls of a wrong type": chat({"role": "assistant", "content": "", "tool_calls": "all of them"}),
    "image": chat({"role": "user", "content": [{"type": "text", "text": "what is this?"}, IMAGE]}),
    "audio": chat({"role": "user", "content": [AUDIO]}),
    "model of a wrong type": orjson.dumps({"model": 7, "messages": [{"role": "user", "content": "hi"}]}),
    "huge number": b'{"model": "m", "messages": [{"role": "user", "content": "hi"}], "seed": 1e400}',
    "duplicate keys": b'{"model": "a", "model": "b", "messages": [{"role": "user", "content": "hi"}]}',
    "white space and escapes": b' { "model":"m",\n"messages":[{"content":"\\u0068i","role":"user"}] } ',
    "nul characters": chat({"role": "user", "content": "a\x00b"}),
    "unknown fields": chat({"role": "user", "content": "hi", "x-own": [1]}, x_unknown={"a": None}, stream=False),
    "max_tokens of a wrong type": chat({"role": "user", "content": "hi"}, max_tokens="many"),
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_odd_bodies_reach_the_upstream_byte_for_byte(
    proxy: Proxy, key: str, upstream: ScriptedUpstream, body: bytes
) -> None:
    verdict = error_body("the provider's own opinion of it")
    upstream.script = lambda _: Reply(status=400, body=verdict)
    for _ in range(2):  # the second one meets what the first one left behind
        answered = request(proxy.port, "POST", CHAT, body, as_headers(key, {}))
        assert (answered.status, answered.body) == (400, verdict)
        assert upstream.received[-1].body == body


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_odd_bodies_that_the_upstream_accepts_are_answered(
    proxy: Proxy, key: str, upstream: ScriptedUpstream, body: bytes
) -> None:
    whole = orjson.dumps({"choices": [{"message": {"role": "assistant", "content": "fine by me"}}]})
    upstream.script = lambda _: Reply(body=whole)
    for _ in range(2):
        answered = request(proxy.port, "POST", CHAT, body, as_headers(key, {}))
        assert (answered.status, answered.body) == (200, whole)
        assert upstream.received[-1].body == body


@pytest.mark.parametrize("name", ["content-encoding", "content-type"])
def test_odd_headers_of_a_body_pass(proxy: Proxy, key: str, upstream: ScriptedUpstream, name: str) -> None:
    upstream.play(Reply(body=b"{}"))
    headers = as_headers(key, {}) | {name: "x-own/unheard-of"}
    body = chat({"role": "user", "content": "hi"})
    assert request(proxy.port, "POST", CHAT, body, headers).status == 200
    assert (upstream.received[-1].body, upstream.received[-1].headers[name.title()]) == (body, "x-own/unheard-of")


def test_unreadable_bodies_are_counted(proxy: Proxy, key: str, upstream: ScriptedUpstream) -> None:
    upstream.script = lambda _: "fine"
    before = proxy.metric("palimpsest_faults_total")
    answered = request(proxy.port, "POST", CHAT, b"{this is not json", as_headers(key, {}))
    assert answered.said("note") == "unreadable"
    assert proxy.metric("palimpsest_faults_total") == before + 1
    proxy.settle(vectors=False)
    assert proxy.metric("palimpsest_turns_lost_total") == 0, "where turns wait for a server, too"


def test_half_an_emoji_in_an_old_message_leaves_memory_on(proxy: Proxy, key: str, upstream: ScriptedUpstream) -> None:
    upstream.script = lambda _: "fine"
    cut, notes = {"role": "user", "content": "half of a smile: \ud83d"}, []
    history = [cut, {"role": "assistant", "content": "fine"}, {"role": "user", "content": "and now?"}]
    for count in (1, 3):
        body = json.dumps({"model": "gpt-4o", "messages": history[:count]}).encode()
        answered = request(proxy.port, "POST", CHAT, body, as_headers(key, {}))
        assert upstream.received[-1].body == body
        notes.append((answered.said("event"), answered.said("note")))
    assert notes == [("start", "calm"), ("append", "calm")]


def test_names_with_signs_that_no_database_takes_cost_no_turn(own_proxy: Proxy, upstream: ScriptedUpstream) -> None:
    own_proxy.start()
    upstream.script = lambda _: "fine"
    names = {"user": "a\0b", "model": "m\0n", "metadata": {"user_id": "e\0f"}}
    for path, listed in ((CHAT, "messages"), ("/v1/responses", "input"), ("/v1/messages", "messages")):
        body = orjson.dumps({listed: [{"role": "user", "content": "hi\0there"}], "max_tokens": 9, **names})
        assert request(own_proxy.port, "POST", path, body, as_headers("sk-one", {})).status == 200
    own_proxy.settle()
    assert own_proxy.ready()["reasons"] == [] and own_proxy.metric("palimpsest_turns_lost_total") == 0
    assert len(own_proxy.get("/memory/v1/conversations").json["conversations"]) == 3


@pytest.mark.parametrize("path", [CHAT, "/v1/responses", "/v1/messages"])
def test_counts_of_tokens_that_no_database_takes_cost_no_turn(
    proxy: Proxy, key: str, upstream: ScriptedUpstream, path: str
) -> None:
    names = ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens", "cache_read_input_tokens")
    counted = orjson.dumps({"usage": dict.fromkeys(names, 2**63), "choices": [{"message": {"content": "fine"}}]})
    upstream.script = lambda _: Reply(body=counted)
    listed = [{"role": "user", "content": f"How many tokens is this for {path}?"}]
    body = orjson.dumps({"model": "gpt-4o", "messages": listed, "input": listed, "max_tokens": 2**63})
    turn = request(proxy.port, "POST", path, body, as_headers(key, {})).said("turn")
    until(lambda: proxy.get(f"/memory/v1/turns/{turn}").status == 200, "the turn to be stored")
    assert proxy.metric("palimpsest_turns_lost_total") == 0


def long_history(count: int) -> list[Json]:
    roles = ("user", "assistant")
    return [{"role": roles[n % 2], "content": f"message {n} of a very long history"} for n in range(count)]


@pytest.mark.usefixtures("words_only")
def test_ten_thousand_messages_pass_and_go_on(own_proxy: Proxy, upstream: ScriptedUpstream) -> None:
    own_proxy.start()
    upstream.script = lambda _: "a long conversation, but I have read all of it"
    history = [*long_history(10_000), {"role": "user", "content": "and now?"}]
    for _ in range(2):
        body = chat(*history)
        answered = request(own_proxy.port, "POST", CHAT, body, as_headers("sk-one", {}))
        assert answered.status == 200 and answered.text.startswith("a long conversation")
        assert upstream.received[-1].body == body
        history += [{"role": "assistant", "content": answered.text}, {"role": "user", "content": "and after that?"}]
    assert own_proxy.get("/healthz").status == 200


@pytest.mark.usefixtures("words_only")
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_body_of_twenty_megabytes_passes(own_proxy: Proxy, upstream: ScriptedUpstream, stream: bool) -> None:
    own_proxy.start()
    upstream.script = lambda _: "that was a lot"
    body = chat({"role": "user", "content": "lorem ipsum dolor " * (20_000_000 // 18)}, stream=stream)
    assert len(body) > 19_000_000
    answered = request(own_proxy.port, "POST", CHAT, body, as_headers("sk-one", {}))
    assert (answered.status, answered.text) == (200, "that was a lot")
    assert upstream.received[-1].body == body


def test_only_a_body_above_the_limit_is_refused(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    upstream.script = lambda _: "fine"
    limits = {"body_bytes": 1_000_000}
    with Proxy(tmp_path / "data", upstream.url, {"limits": limits}) as proxy:
        small, large = (chat({"role": "user", "content": "x" * size}) for size in (990_000, 1_100_000))
        assert request(proxy.port, "POST", CHAT, small, as_headers("sk-one", {})).status == 200
        refused = request(proxy.port, "POST", CHAT, large, as_headers("sk-one", {}))
        assert refused.status == 413 and "body_bytes" in refused.json["error"]["message"]
        assert len(upstream.received) == 1


def test_body_too_large_for_memory_passes_without(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    upstream.script = lambda _: "fine"
    with Proxy(tmp_path / "data", upstream.url) as proxy:
        body = chat({"role": "user", "content": "x" * MAX_BODY_BYTES})
        answered = request(proxy.port, "POST", CHAT, body, as_headers("sk-one", {}))
        assert (answered.status, answered.said("note")) == (200, "too-large")
        assert upstream.received[-1].body == body
        headers = as_headers("sk-one", {"content-encoding": "gzip"})
        packed = request(proxy.port, "POST", CHAT, gzip.compress(body), headers)
        assert (packed.status, packed.said("note")) == (200, "too-large")
        silent = request(proxy.port, "POST", CHAT, gzip.compress(body), headers | {"x-palimpsest-memory": "off"})
        assert (silent.status, silent.said("note")) == (200, "off")
