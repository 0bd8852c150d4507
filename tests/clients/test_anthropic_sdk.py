"""The anthropic SDK: whatever it sees through the proxy it would see without, and nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import pytest
from palimpsest.domain import Json, ToolCall
from palimpsest.evaluation.scripted import Reply, Script, ScriptedUpstream

from tests.clients.conftest import FACT, PIXEL, QUESTION, SUMMARY, TALK
from tests.running import Proxy, memory_in, texts

pytestmark = pytest.mark.slow

TOOLS: Any = [{"name": "read_file", "description": "Read a file", "input_schema": {"type": "object"}}]
CALL = ToolCall("toolu_7", "read_file", '{"path":"src/app.py"}')
MARK = {"cache_control": {"type": "ephemeral"}}
HELLO: Any = {"model": "claude-x", "max_tokens": 500}


def of(url: str, key: str) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=url.removesuffix("/v1"), api_key=key, max_retries=0)


@pytest.fixture
def client(base_url: str, key: str) -> Iterator[anthropic.Anthropic]:
    with of(base_url, key) as client:
        yield client


@pytest.fixture
def through(proxy: Proxy, key: str) -> Iterator[anthropic.Anthropic]:
    with of(proxy.url, key) as client:
        yield client


def say(client: anthropic.Anthropic, asked: Json, *, streamed: bool) -> Any:
    if not streamed:
        return client.messages.create(**HELLO, **asked)
    with client.messages.stream(**HELLO, **asked) as stream:
        return stream.get_final_message()


def said_by(message: Any) -> Json:
    """What came out, as it is sent again."""
    blocks = [block.to_dict(mode="json") for block in message.content]
    return {"role": "assistant", "content": blocks}


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_thought_and_tool_call_go_round_unchanged(
    client: anthropic.Anthropic, upstream: ScriptedUpstream, streamed: bool
) -> None:
    upstream.play(Reply("Let me look.", (CALL,), "The file will tell."), "The file holds the application.")
    messages: list[Any] = [{"role": "user", "content": "What is in it?"}]
    thinking = {"type": "enabled", "budget_tokens": 1024}
    answer = say(client, {"messages": messages, "tools": TOOLS, "thinking": thinking}, streamed=streamed)
    thought, _, call = answer.content
    assert thought.thinking == "The file will tell." and thought.signature
    assert (answer.stop_reason, call.id, call.input) == ("tool_use", CALL.id, {"path": "src/app.py"})
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "print('hi')"}
    redacted = {"type": "redacted_thinking", "data": "only the provider reads this"}
    again = said_by(answer)
    messages += [again | {"content": [redacted, *again["content"]]}, {"role": "user", "content": [result]}]
    answer = say(client, {"messages": messages, "tools": TOOLS, "thinking": thinking}, streamed=streamed)
    assert answer.content[0].text == "The file holds the application."
    assert upstream.received[-1].json["messages"] == messages


def test_image_arrives_unchanged(client: anthropic.Anthropic, upstream: ScriptedUpstream) -> None:
    upstream.play("A pixel.")
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL.partition(",")[2]}
    messages = [{"role": "user", "content": [{"type": "image", "source": source}, {"type": "text", "text": "What?"}]}]
    assert say(client, {"messages": messages}, streamed=False).content[0].text == "A pixel."
    assert upstream.received[-1].json["messages"] == messages


def test_every_event_arrives_before_the_next_is_sent(client: anthropic.Anthropic, upstream: ScriptedUpstream) -> None:
    said = "a long answer in many pieces, " * 8
    upstream.play(Reply(said, lockstep=True))
    upstream.permit(2)  # the SDK reads over a ping
    heard = ""
    for event in client.messages.create(**HELLO, messages=[{"role": "user", "content": "hello"}], stream=True):
        heard += getattr(event.delta, "text", "") if event.type == "content_block_delta" else ""
        upstream.permit()
    assert heard == said


@pytest.mark.parametrize(
    ("status", "kind", "name"),
    [
        (400, anthropic.BadRequestError, "invalid_request_error"),
        (401, anthropic.AuthenticationError, "authentication_error"),
        (429, anthropic.RateLimitError, "rate_limit_error"),
        (529, anthropic.InternalServerError, "overloaded_error"),
    ],
)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_errors_of_the_provider_arrive_as_it_said_them(
    client: anthropic.Anthropic,
    upstream: ScriptedUpstream,
    status: int,
    kind: type[anthropic.APIStatusError],
    name: str,
    streamed: bool,
) -> None:
    upstream.play(Reply("no", status=status, headers={"retry-after": "7", "request-id": "req_1"}))
    with pytest.raises(kind, match="no") as refused:
        say(client, {"messages": [{"role": "user", "content": "hello"}]}, streamed=streamed)
    assert refused.value.type == name
    assert refused.value.response.headers["retry-after"] == "7" and refused.value.request_id == "req_1"


def test_models_and_token_counts_pass(client: anthropic.Anthropic) -> None:
    assert [model.display_name for model in client.models.list()] == ["gpt-4o", "gpt-4o-mini"]
    counted = client.messages.count_tokens(model="claude-x", messages=[{"role": "user", "content": "hello"}])
    assert counted.input_tokens > 0


def test_what_a_beta_asks_for_reaches_the_provider(client: anthropic.Anthropic, upstream: ScriptedUpstream) -> None:
    upstream.play("hello")
    asked: Any = {"messages": [{"role": "user", "content": "hello"}], "extra_query": {"beta": "true"}}
    client.beta.messages.create(**HELLO, **asked, betas=["context-1m-2025-08-07"])
    assert upstream.received[-1].path == "/v1/messages?beta=true"
    assert upstream.received[-1].headers["anthropic-beta"] == "context-1m-2025-08-07"


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("summary", ["", SUMMARY], ids=["truncated", "summarised"])
def test_fact_of_a_dropped_message_reaches_the_model(
    proxy: Proxy, through: anthropic.Anthropic, upstream: ScriptedUpstream, script: Script, summary: str, streamed: bool
) -> None:
    """The client marks what the provider shall cache: what stands up to its last mark is what it sent, to the byte."""
    system = [{"type": "text", "text": "You help with a migration.", **MARK}]
    messages: list[Any] = []

    def ask(text: str) -> Json:
        messages.append({"role": "user", "content": [{"type": "text", "text": text, **MARK}]})
        asked = {"system": system, "tools": TOOLS, "messages": messages}
        messages.append(said_by(say(through, asked, streamed=streamed)))
        messages[-2]["content"][0].pop("cache_control")
        return upstream.received[-1].json

    for said, _ in TALK:
        assert not memory_in(ask(said)), "while nothing is lost, nothing is added"
    proxy.settle()
    note = [{"role": "user", "content": f"What happened so far: {summary}"}] if summary else []
    messages[:] = [*note, *messages[-2:]]
    reached = ask(QUESTION)
    assert FACT not in texts({"messages": messages})
    assert FACT in memory_in(reached)
    assert reached["system"] == system and reached["messages"][:-1] == messages[:-2]
    assert reached["messages"][-1]["content"][0] == {"type": "text", "text": QUESTION, **MARK}


def test_memory_is_shared_with_the_other_wires(
    proxy: Proxy, through: anthropic.Anthropic, upstream: ScriptedUpstream, script: Script, key: str
) -> None:
    """One user, one credential: a conversation that began on chat completions goes on here."""
    history: list[Any] = []
    for said, answer in TALK:
        history.append({"role": "user", "content": said})
        proxy.chat({"model": "gpt-4o", "messages": history}, key)
        history.append({"role": "assistant", "content": answer})
    proxy.settle()
    messages = [*history[-2:], {"role": "user", "content": QUESTION}]
    say(through, {"messages": messages}, streamed=False)
    assert FACT in memory_in(upstream.received[-1].json)
