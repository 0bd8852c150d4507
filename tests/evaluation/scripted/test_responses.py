"""OpenAI's own SDK must be able to read what we say as a response."""

from __future__ import annotations

from collections.abc import Iterator

import openai
import orjson
import pytest
from palimpsest.domain import ToolCall
from palimpsest.evaluation.scripted import Reply, ScriptedUpstream

from tests.running import as_headers, request

pytestmark = pytest.mark.slow

CALL = ToolCall("call_1", "read_file", '{"path": "a.py"}')
REPLY = Reply("a text that is longer than one piece of a stream", (CALL,), "first I think it over", prompt_tokens=77)


@pytest.fixture
def client(upstream: ScriptedUpstream) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=upstream.url, api_key="sk-x", max_retries=0) as client:
        yield client


def test_streamed_and_whole_answers_say_the_same(upstream: ScriptedUpstream, client: openai.OpenAI) -> None:
    upstream.play(REPLY, REPLY)
    whole = client.responses.create(model="m", input="hi", include=["reasoning.encrypted_content"])
    with client.responses.stream(model="m", input="hi", include=["reasoning.encrypted_content"]) as stream:
        streamed = stream.get_final_response()
    assert whole.id != streamed.id
    for answer in (whole, streamed):
        thought, said, call = answer.output
        assert thought.type == "reasoning" and thought.summary[0].text == REPLY.reasoning and thought.encrypted_content
        assert said.type == "message" and answer.output_text == REPLY.text
        assert call.type == "function_call"
        assert (call.call_id, call.name, call.arguments) == ("call_1", "read_file", '{"path": "a.py"}')
        assert answer.usage is not None and answer.usage.input_tokens == 77


def test_a_stream_names_each_event_and_its_deltas_make_the_text(upstream: ScriptedUpstream) -> None:
    upstream.play(REPLY)
    body = b'{"stream": true, "input": "hi"}'
    answered = request(upstream.port, "POST", "/v1/responses", body, as_headers("sk-x", {}))
    frames = [frame.split(b"\n") for frame in answered.body.strip().split(b"\n\n")]
    names = [name.decode().removeprefix("event: ") for name, _ in frames]
    events = [orjson.loads(data.removeprefix(b"data: ")) for _, data in frames]
    assert [event["type"] for event in events] == names
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert [names[0], names[1], names[-1]] == ["response.created", "response.in_progress", "response.completed"]
    deltas: dict[str, str] = {}
    for event in events:
        if "delta" in event:
            deltas[event["type"]] = deltas.get(event["type"], "") + event["delta"]
    assert deltas == {
        "response.reasoning_summary_text.delta": REPLY.reasoning,
        "response.output_text.delta": REPLY.text,
        "response.function_call_arguments.delta": CALL.arguments,
    }


def test_compaction_trigger_gets_one_opaque_item(upstream: ScriptedUpstream) -> None:
    upstream.play("nobody sees this")
    items = [{"type": "message", "role": "user", "content": "port 7431"}, {"type": "compaction_trigger"}]
    answered = request(upstream.port, "POST", "/v1/responses", orjson.dumps({"input": items}))
    (item,) = answered.json["output"]
    assert item["type"] == "compaction" and item["encrypted_content"] and "7431" not in answered.body.decode()


def test_call_of_a_tool_names_the_namespace_that_it_was_offered_in(upstream: ScriptedUpstream) -> None:
    upstream.play(Reply(calls=(CALL,)))
    tools = [{"type": "namespace", "name": "files", "tools": [{"type": "function", "name": "read_file"}]}]
    answered = request(upstream.port, "POST", "/v1/responses", orjson.dumps({"input": "hi", "tools": tools}))
    assert answered.json["output"][0]["namespace"] == "files"


def test_errors_are_worded_as_openai_does(upstream: ScriptedUpstream, client: openai.OpenAI) -> None:
    upstream.play(Reply("slow down", status=429))
    with pytest.raises(openai.RateLimitError, match="slow down") as refused:
        client.responses.create(model="m", input="hi")
    assert refused.value.type == "invalid_request_error"
