"""The openai SDK as people use it: whatever it sees through the proxy it would see without."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import openai
import orjson
import pytest
from palimpsest.domain import Json, ToolCall
from palimpsest.evaluation.scripted import Reply, Script, ScriptedUpstream, error_body
from pydantic import BaseModel

from tests.clients.conftest import FACT, QUESTION, SUMMARY, TALK
from tests.running import Proxy, memory_in

pytestmark = pytest.mark.slow

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "read_file",
            "description": "Read a file",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
        },
    }
]
HELLO = [{"role": "user", "content": "hello"}]


@pytest.fixture
def client(base_url: str, key: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=base_url, api_key=key, max_retries=0) as client:
        yield client


def test_answer_and_usage_arrive_as_sent(client: openai.OpenAI, upstream: ScriptedUpstream) -> None:
    upstream.play(Reply("hi there", prompt_tokens=9))
    answer = client.chat.completions.create(model="gpt-4o", messages=HELLO)
    assert answer.choices[0].message.content == "hi there"
    assert answer.usage is not None and (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (9, 3)


def test_every_chunk_arrives_before_the_next_is_sent(client: openai.OpenAI, upstream: ScriptedUpstream) -> None:
    """The upstream waits for the client to have read a chunk: a proxy that holds one back would stand still here."""
    said = "a long answer in many pieces, " * 8
    upstream.play(Reply(said, lockstep=True))
    upstream.permit()
    heard = []
    for chunk in client.chat.completions.create(model="gpt-4o", messages=HELLO, stream=True):
        heard.append(chunk.choices[0].delta.content or "")
        upstream.permit()
    upstream.permit()
    assert "".join(heard) == said
    assert len(heard) > len(said) / 30


def test_streamed_tool_calls_and_their_results_make_a_round(client: openai.OpenAI, upstream: ScriptedUpstream) -> None:
    call = ToolCall("call_7", "read_file", '{"path": "src/app.py"}')
    upstream.play(Reply(calls=(call,)), "The file holds the application.")
    messages: list[dict[str, object]] = [*HELLO]
    with client.chat.completions.stream(model="gpt-4o", messages=messages, tools=TOOLS) as stream:
        asked = stream.get_final_completion().choices[0].message
    assert asked.tool_calls is not None and asked.tool_calls[0].function.arguments == call.arguments
    messages += [asked.to_dict(), {"role": "tool", "tool_call_id": "call_7", "content": "print('hi')"}]
    answer = client.chat.completions.create(model="gpt-4o", messages=messages, tools=TOOLS)
    assert answer.choices[0].message.content == "The file holds the application."
    assert upstream.received[-1].json["messages"] == messages


def test_structured_output_is_parsed(client: openai.OpenAI, upstream: ScriptedUpstream) -> None:
    class Place(BaseModel):
        host: str
        port: int

    upstream.play('{"host": "staging", "port": 8731}')
    parsed = client.chat.completions.parse(model="gpt-4o", messages=HELLO, response_format=Place)
    assert parsed.choices[0].message.parsed == Place(host="staging", port=8731)
    assert upstream.received[-1].json["response_format"]["json_schema"]["name"] == "Place"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, openai.BadRequestError),
        (401, openai.AuthenticationError),
        (404, openai.NotFoundError),
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
        (529, openai.InternalServerError),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_errors_of_the_provider_arrive_verbatim(
    client: openai.OpenAI, upstream: ScriptedUpstream, status: int, kind: type[openai.APIStatusError], stream: bool
) -> None:
    body = error_body(f"no, because {status}")
    upstream.play(Reply(status=status, body=body, headers={"retry-after": "7", "x-request-id": "req_1"}))
    with pytest.raises(kind) as refused:
        client.chat.completions.create(model="gpt-4o", messages=HELLO, stream=stream)
    assert refused.value.response.content == body
    assert refused.value.response.headers["retry-after"] == "7"
    assert refused.value.request_id == "req_1"


def test_retry_of_the_sdk_succeeds(base_url: str, key: str, upstream: ScriptedUpstream) -> None:
    upstream.play(Reply(status=500, body=error_body("busy"), headers={"retry-after-ms": "1"}), "now it works")
    with openai.OpenAI(base_url=base_url, api_key=key, max_retries=1) as client:
        answer = client.chat.completions.create(model="gpt-4o", messages=HELLO)
    assert answer.choices[0].message.content == "now it works"
    assert [r.headers["x-stainless-retry-count"] for r in upstream.received] == ["0", "1"]


def test_models_are_listed(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["gpt-4o", "gpt-4o-mini"]


def test_endpoints_without_memory_pass_untouched(client: openai.OpenAI, upstream: ScriptedUpstream) -> None:
    body = b'{"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}], "model": "e"}'
    upstream.play(Reply(body=body))
    answer = client.embeddings.create(model="e", input="text", encoding_format="float")
    assert answer.data[0].embedding == [0.5]
    assert upstream.received[-1].path == "/v1/embeddings"


async def test_many_streams_at_once_do_not_mix(base_url: str, key: str, upstream: ScriptedUpstream) -> None:
    upstream.script = lambda body: Reply(f"echo of {body['messages'][-1]['content']}, " * 20, pace_seconds=0.002)

    async def talk(client: openai.AsyncOpenAI, name: str) -> str:
        asked = [{"role": "user", "content": name}]
        stream = await client.chat.completions.create(model="gpt-4o", messages=asked, stream=True)
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

    names = [f"speaker {n}" for n in range(12)]
    async with openai.AsyncOpenAI(base_url=base_url, api_key=key, max_retries=0) as client:
        heard = await asyncio.gather(*(talk(client, name) for name in names))
    assert heard == [f"echo of {name}, " * 20 for name in names]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("summary", ["", SUMMARY], ids=["truncated", "summarised"])
def test_fact_of_a_dropped_message_reaches_the_model(
    proxy: Proxy, key: str, upstream: ScriptedUpstream, script: Script, summary: str, stream: bool
) -> None:
    """A hand-written loop compacts its history; the very next request carries what it lost, and says so."""
    client = openai.OpenAI(base_url=proxy.url, api_key=key, max_retries=0)
    history: list[dict[str, str]] = [{"role": "system", "content": "You help with a migration."}]

    def ask(text: str) -> dict[str, str]:
        history.append({"role": "user", "content": text})
        with client.chat.completions.with_streaming_response.create(
            model="gpt-4o", messages=history, stream=stream
        ) as raw:
            headers = dict(raw.headers)
            if stream:
                said = "".join(c.choices[0].delta.content or "" for c in raw.parse())  # type: ignore[attr-defined]
            else:
                said = raw.parse().choices[0].message.content  # type: ignore[union-attr]
        history.append({"role": "assistant", "content": said})
        return headers

    for said, _ in TALK:
        headers = ask(said)
        assert headers["x-palimpsest-added-tokens"] == "0"
        assert upstream.received[-1].json["messages"] == history[:-1]
    home = headers["x-palimpsest-conversation"]
    proxy.settle()
    note = [{"role": "user", "content": f"Here is what happened so far: {summary}"}] if summary else []
    history[1:] = [*note, *history[-2:]]
    headers = ask(QUESTION)
    assert headers["x-palimpsest-event"] == ("compaction:summary" if summary else "compaction:truncate")
    assert headers["x-palimpsest-conversation"] == home
    reached = upstream.received[-1].json
    assert FACT in memory_in(reached)
    assert int(headers["x-palimpsest-added-tokens"]) > 0 and int(headers["x-palimpsest-recalled"]) > 0
    assert orjson.dumps(reached["messages"][0]) == orjson.dumps(history[0])
    client.close()


def test_agent_that_compacts_in_the_middle_of_its_work_gets_back_what_the_summary_does_not_name(
    proxy: Proxy, key: str, upstream: ScriptedUpstream, script: Script
) -> None:
    """The next request ends with what a tool returned and asks nothing; nothing in it is like what was lost."""
    history: list[Json] = [{"role": "system", "content": "You help with a migration."}]
    for said, _ in TALK:
        history.append({"role": "user", "content": said})
        answer = proxy.chat({"model": "gpt-4o", "messages": history, "tools": TOOLS}, key)
        history.append({"role": "assistant", "content": answer.text})
    call = ToolCall("call_9", "read_file", '{"path": "Makefile"}')
    upstream.script = lambda body: Reply(calls=(call,))
    history.append({"role": "user", "content": "Is there a lint target?"})
    proxy.chat({"model": "gpt-4o", "messages": history, "tools": TOOLS}, key)
    proxy.settle(vectors=False)
    called = {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
    left = [
        history[0],
        {"role": "user", "content": f"Here is what happened so far: {SUMMARY} See checkout_via_gateway."},
        history[-1],
        {"role": "assistant", "content": None, "tool_calls": [called]},
        {"role": "tool", "tool_call_id": call.id, "content": "lint:\n\truff check ."},
    ]
    upstream.script = script
    answer = proxy.chat({"model": "gpt-4o", "messages": left, "tools": TOOLS}, key)
    assert answer.headers["x-palimpsest-event"] == "compaction:summary"
    restored = memory_in(upstream.received[-1].json)
    assert "migrations/0042_add_refund_ledger.sql" in restored and "E4410" in restored
    assert int(answer.headers["x-palimpsest-added-tokens"]) > 0
