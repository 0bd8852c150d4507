"""The upstream that plays the provider in every other test must be right itself."""

from __future__ import annotations

import threading

import openai
import pytest
from palimpsest.domain import ToolCall
from palimpsest.evaluation.scripted import Reply, ScriptedUpstream

from tests.running import as_headers, request, until

pytestmark = pytest.mark.slow

CALL = ToolCall("call_1", "read_file", '{"path": "a.py"}')


@pytest.fixture
def client(upstream: ScriptedUpstream) -> openai.OpenAI:
    return openai.OpenAI(base_url=upstream.url, api_key="sk-x", max_retries=0)


def test_replies_come_in_turn_and_then_the_script_is_over(upstream: ScriptedUpstream, client: openai.OpenAI) -> None:
    upstream.play("one", "two")
    asked = [{"role": "user", "content": "hi"}]
    said = [client.chat.completions.create(model="m", messages=asked).choices[0].message.content for _ in range(2)]
    assert said == ["one", "two"]
    with pytest.raises(openai.InternalServerError, match="the script is over"):
        client.chat.completions.create(model="m", messages=asked)


def test_streamed_and_whole_answers_say_the_same(upstream: ScriptedUpstream, client: openai.OpenAI) -> None:
    reply = Reply("a text that is longer than one piece of a stream", calls=(CALL,), prompt_tokens=77)
    upstream.play(reply, reply)
    asked = [{"role": "user", "content": "hi"}]
    whole = client.chat.completions.create(model="m", messages=asked)
    with client.chat.completions.stream(model="m", messages=asked, stream_options={"include_usage": True}) as stream:
        streamed = stream.get_final_completion()
    for answer in (whole, streamed):
        message = answer.choices[0].message
        assert message.content == reply.text
        assert [(c.id, c.function.name, c.function.arguments) for c in message.tool_calls or ()] == [
            ("call_1", "read_file", '{"path": "a.py"}')
        ]
        assert answer.choices[0].finish_reason == "tool_calls"
        assert answer.usage is not None and answer.usage.prompt_tokens == 77


def test_every_request_is_kept_as_it_came(upstream: ScriptedUpstream) -> None:
    upstream.play(Reply(body=b"{}"))
    request(upstream.port, "PUT", "/v1/any%20thing?beta=true", b"\x00\xff", as_headers("sk-x", {"x_own": "1"}))
    got = upstream.received[-1]
    assert (got.method, got.path, got.body) == ("PUT", "/v1/any%20thing?beta=true", b"\x00\xff")
    assert got.headers["x-own"] == "1"


def test_cut_stream_is_seen_as_broken(upstream: ScriptedUpstream) -> None:
    upstream.play(Reply("a text that is longer than one piece of a stream", cut_after=2))
    answered = request(upstream.port, "POST", "/v1/chat/completions", b'{"stream": true, "messages": []}')
    assert answered.broken and b"[DONE]" not in answered.body and b"a text that is" in answered.body


def test_cut_whole_answer_is_seen_as_broken(upstream: ScriptedUpstream) -> None:
    upstream.play(Reply("hello", cut_after=1))
    assert request(upstream.port, "POST", "/v1/chat/completions", b'{"messages": []}').broken


def test_lockstep_sends_nothing_without_a_permit(upstream: ScriptedUpstream, client: openai.OpenAI) -> None:
    upstream.permit(3)
    upstream.play(Reply("one two", lockstep=True))  # and what was permitted before does not count
    heard: list[str] = []
    first = threading.Event()

    def listen() -> None:
        for event in client.chat.completions.create(model="m", messages=[], stream=True):
            heard.append(event.choices[0].delta.content or "")
            first.set()

    listener = threading.Thread(target=listen)
    listener.start()
    assert not first.wait(0.2), "a piece came without a permit"
    upstream.permit(4)
    listener.join()
    assert "".join(heard) == "one two"


def test_caller_that_leaves_is_counted(upstream: ScriptedUpstream, client: openai.OpenAI) -> None:
    upstream.play(Reply("one two", lockstep=True))
    upstream.permit(1)
    stream = client.chat.completions.create(model="m", messages=[], stream=True)
    next(iter(stream))
    stream.close()
    until(lambda: upstream.abandoned == 1, "the upstream to notice")
