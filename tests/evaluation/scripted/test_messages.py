"""Anthropic's own SDK must be able to read what we say as a message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import orjson
import pytest
from palimpsest.domain import ToolCall
from palimpsest.evaluation.scripted import Reply, ScriptedUpstream

from tests.running import as_headers, request

pytestmark = pytest.mark.slow

CALL = ToolCall("toolu_1", "read_file", '{"path":"a.py"}')
REPLY = Reply("a text that is longer than one piece of a stream", (CALL,), "first I think it over", prompt_tokens=77)
HELLO: dict[str, Any] = {"model": "m", "max_tokens": 50, "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture
def client(upstream: ScriptedUpstream) -> Iterator[anthropic.Anthropic]:
    base_url = upstream.url.removesuffix("/v1")
    with anthropic.Anthropic(base_url=base_url, api_key="sk-x", max_retries=0) as client:
        yield client


def test_streamed_and_whole_answers_say_the_same(upstream: ScriptedUpstream, client: anthropic.Anthropic) -> None:
    upstream.play(REPLY, REPLY)
    whole = client.messages.create(**HELLO)
    with client.messages.stream(**HELLO) as stream:
        streamed = stream.get_final_message()
    assert whole.id != streamed.id
    for answer in (whole, streamed):
        thought, said, call = answer.content
        assert thought.type == "thinking" and thought.thinking == REPLY.reasoning and thought.signature
        assert said.type == "text" and said.text == REPLY.text
        assert call.type == "tool_use" and (call.id, call.name, call.input) == (
            "toolu_1",
            "read_file",
            {"path": "a.py"},
        )
        assert (answer.stop_reason, answer.usage.input_tokens) == ("tool_use", 77)


def test_a_stream_names_each_event_in_its_order(upstream: ScriptedUpstream) -> None:
    upstream.play(Reply("hi", (CALL,), "so"))
    body = orjson.dumps(HELLO | {"stream": True})
    answered = request(upstream.port, "POST", "/v1/messages", body, as_headers("sk-x", {}))
    frames = [frame.split(b"\n") for frame in answered.body.strip().split(b"\n\n")]
    names = [name.decode().removeprefix("event: ") for name, _ in frames]
    block = ["content_block_start", "content_block_delta", "content_block_delta", "content_block_stop"]
    text = ["content_block_start", "content_block_delta", "content_block_stop"]
    assert names == ["message_start", "ping", *block, *text, *block, "message_delta", "message_stop"]
    assert [orjson.loads(data.removeprefix(b"data: "))["type"] for _, data in frames] == names


@pytest.mark.parametrize(
    ("status", "kind", "name"),
    [
        (400, anthropic.BadRequestError, "invalid_request_error"),
        (429, anthropic.RateLimitError, "rate_limit_error"),
        (500, anthropic.InternalServerError, "api_error"),
        (529, anthropic.InternalServerError, "overloaded_error"),
    ],
)
def test_errors_are_worded_as_anthropic_does(
    upstream: ScriptedUpstream,
    client: anthropic.Anthropic,
    status: int,
    kind: type[anthropic.APIStatusError],
    name: str,
) -> None:
    upstream.play(Reply("not now", status=status))
    with pytest.raises(kind, match="not now") as refused:
        client.messages.create(**HELLO)
    assert refused.value.type == name
