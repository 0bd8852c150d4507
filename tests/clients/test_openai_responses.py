"""The openai SDK on the Responses API: whatever it sees through the proxy it would see without, and nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest
from palimpsest.domain import Json, ToolCall
from palimpsest.evaluation.scripted import Reply, Script, ScriptedUpstream, error_body

from tests.clients.conftest import FACT, PIXEL, QUESTION, SUMMARY, TALK
from tests.running import Proxy, memory_in, texts

pytestmark = pytest.mark.slow

TOOLS: Any = [{"type": "function", "name": "read_file", "parameters": {"type": "object"}, "strict": False}]
CALL = ToolCall("call_7", "read_file", '{"path": "src/app.py"}')


@pytest.fixture
def client(base_url: str, key: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=base_url, api_key=key, max_retries=0) as client:
        yield client


@pytest.fixture
def through(proxy: Proxy, key: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=proxy.url, api_key=key, max_retries=0) as client:
        yield client


def said_by(response: Any) -> list[Json]:
    """What came out, as it is sent again."""
    return [item.to_dict(mode="json") for item in response.output]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_thought_and_tool_call_go_round_unchanged(
    client: openai.OpenAI, upstream: ScriptedUpstream, streamed: bool
) -> None:
    upstream.play(Reply(calls=(CALL,), reasoning="The file will tell."), "The file holds the application.")
    items: list[Any] = [{"role": "user", "content": "What is in it?"}]
    asked: Any = {"model": "gpt-4o", "tools": TOOLS, "store": False, "include": ["reasoning.encrypted_content"]}
    if streamed:
        with client.responses.stream(input=items, **asked) as stream:
            response: Any = stream.get_final_response()
    else:
        response = client.responses.create(input=items, **asked)
    thought, call = response.output
    assert thought.encrypted_content and (call.call_id, call.arguments) == (CALL.id, CALL.arguments)
    items += [*said_by(response), {"type": "function_call_output", "call_id": call.call_id, "output": "print('hi')"}]
    assert client.responses.create(input=items, **asked).output_text == "The file holds the application."
    assert upstream.received[-1].json["input"] == items


def test_image_arrives_unchanged(client: openai.OpenAI, upstream: ScriptedUpstream) -> None:
    upstream.play("A pixel.")
    parts = [{"type": "input_text", "text": "What is this?"}, {"type": "input_image", "image_url": PIXEL}]
    items: Any = [{"role": "user", "content": parts}]
    assert client.responses.create(model="gpt-4o", input=items).output_text == "A pixel."
    assert upstream.received[-1].json["input"] == items


def test_every_event_arrives_before_the_next_is_sent(client: openai.OpenAI, upstream: ScriptedUpstream) -> None:
    said = "a long answer in many pieces, " * 8
    upstream.play(Reply(said, lockstep=True))
    upstream.permit()
    heard = ""
    for event in client.responses.create(model="gpt-4o", input="hello", stream=True):
        heard += event.delta if event.type == "response.output_text.delta" else ""
        upstream.permit()
    assert heard == said


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, openai.BadRequestError), (401, openai.AuthenticationError), (429, openai.RateLimitError)],
)
@pytest.mark.parametrize("stream", [False, True])
def test_errors_of_the_provider_arrive_verbatim(
    client: openai.OpenAI, upstream: ScriptedUpstream, status: int, kind: type[openai.APIStatusError], stream: bool
) -> None:
    body = error_body(f"no, because {status}", status)
    upstream.play(Reply(status=status, body=body, headers={"retry-after": "7", "x-request-id": "req_1"}))
    with pytest.raises(kind) as refused:
        client.responses.create(model="gpt-4o", input="hello", stream=stream)
    assert refused.value.response.content == body
    assert refused.value.response.headers["retry-after"] == "7" and refused.value.request_id == "req_1"


def test_stored_response_is_followed_fetched_and_deleted(client: openai.OpenAI, upstream: ScriptedUpstream) -> None:
    upstream.play("one", "two")
    first = client.responses.create(model="gpt-4o", input="hello")
    second = client.responses.create(model="gpt-4o", input="go on", previous_response_id=first.id)
    assert upstream.received[-1].json["previous_response_id"] == first.id
    assert client.responses.retrieve(second.id).output_text == "two"
    client.responses.delete(second.id)
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(model="gpt-4o", input="go on", previous_response_id=second.id)
    assert refused.value.code == "previous_response_not_found"


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("summary", ["", SUMMARY], ids=["truncated", "summarised"])
def test_fact_of_a_dropped_item_reaches_the_model(
    proxy: Proxy, through: openai.OpenAI, upstream: ScriptedUpstream, script: Script, summary: str, streamed: bool
) -> None:
    items: list[Any] = []

    def ask(text: str) -> Json:
        items.append({"role": "user", "content": text})
        asked: Any = {"model": "gpt-4o", "input": items, "instructions": "You help with a migration.", "store": False}
        if streamed:
            with through.responses.stream(**asked) as stream:
                items.extend(said_by(stream.get_final_response()))
        else:
            items.extend(said_by(through.responses.create(**asked)))
        return upstream.received[-1].json

    for said, _ in TALK:
        assert ask(said)["input"] == items[:-1], "while nothing is lost, nothing is added"
    proxy.settle()
    items[:] = [*([{"role": "user", "content": f"What happened so far: {summary}"}] if summary else []), *items[-2:]]
    reached = ask(QUESTION)
    assert FACT not in texts({"input": items})
    assert FACT in memory_in(reached)


@pytest.mark.parametrize("chained", [False, True], ids=["items", "previous_response_id"])
def test_fact_behind_an_opaque_compaction_reaches_the_model(
    proxy: Proxy, through: openai.OpenAI, upstream: ScriptedUpstream, script: Script, chained: bool
) -> None:
    """OpenAI compacts by itself: what comes back keeps the user's words, and an item that only it can read."""
    items: list[Any] = []
    last: Any = None
    for said, _ in TALK:
        items.append({"role": "user", "content": said})
        asked: Any = {"input": items[-1:], "previous_response_id": last} if chained else {"input": items}
        response = through.responses.create(model="gpt-4o", **asked)
        items, last = [*items, *said_by(response)], response.id
    proxy.settle()
    window: Any = {"previous_response_id": last} if chained else {"input": items}
    compacted = through.responses.compact(model="gpt-4o", **window)
    opaque = compacted.output[-1].to_dict(mode="json")
    asked_next = [opaque, {"role": "user", "content": QUESTION}]
    through.responses.create(model="gpt-4o", input=asked_next)  # type: ignore[arg-type]
    reached = upstream.received[-1].json
    assert reached["input"][0] == opaque, "what nobody here can read goes on as it came"
    assert FACT in memory_in(reached)


def test_chain_is_a_conversation_although_its_history_is_never_sent(
    proxy: Proxy, through: openai.OpenAI, upstream: ScriptedUpstream, script: Script
) -> None:
    """The user goes on elsewhere, from the last answer alone: what the chain held is remembered."""
    last: Any = None
    for said, _ in TALK:
        asked = {"model": "gpt-4o", "input": said, "previous_response_id": last}
        raw = through.responses.with_raw_response.create(**asked)
        last = raw.parse().id
        assert not memory_in(upstream.received[-1].json), "the provider has it all: nothing is added"
        assert raw.headers["x-palimpsest-event"] == ("append" if asked["previous_response_id"] else "start")
    proxy.settle()
    again = [{"role": "user", "content": TALK[-1][0]}, {"role": "assistant", "content": TALK[-1][1]}]
    through.responses.create(model="gpt-4o", input=[*again, {"role": "user", "content": QUESTION}])  # type: ignore[list-item]
    assert FACT in memory_in(upstream.received[-1].json)
