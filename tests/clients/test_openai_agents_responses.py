"""openai-agents on the Responses API, its default: a chain that sends no history, tools and hand-offs."""

from __future__ import annotations

from collections.abc import AsyncIterator

import agents
import openai
import pytest

from proxy.domain import Json, ToolCall
from proxy.scripted import Reply, Script, ScriptedUpstream
from tests.clients.conftest import QUESTION, TALK, answers, newest
from tests.running import Proxy, memory_in

agents.set_tracing_disabled(True)


@pytest.fixture
async def client(proxy: Proxy, key: str) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=proxy.url, api_key=key, max_retries=0) as client:
        yield client


@agents.function_tool
def look_up(name: str) -> str:
    """Look up a service."""
    return f"{name}: owned by the payments team, deployed in three regions."


@pytest.fixture
def agent(client: openai.AsyncOpenAI) -> agents.Agent[None]:
    model = agents.OpenAIResponsesModel("gpt-4o", client)
    return agents.Agent(name="Engineer", instructions="You help with a migration.", model=model, tools=[look_up])


def working(body: Json) -> Reply | str:
    """The model of these tests, which thinks and looks something up before its last answer."""
    if "The load test failed" in newest(body):
        return Reply(calls=(ToolCall("call_lookup", "look_up", '{"name": "checkout"}'),), reasoning="Who owns it?")
    return answers(body)


async def test_chain_sends_no_history_and_gets_nothing_added(
    proxy: Proxy, agent: agents.Agent[None], upstream: ScriptedUpstream
) -> None:
    """The provider keeps the history and the client compacts nothing, so there is nothing to give back."""
    upstream.script = working
    last: str | None = None
    for said, _ in (*TALK, (QUESTION, "")):
        run = await agents.Runner.run(agent, said, previous_response_id=last)
        last = run.last_response_id
        assert last
    asked = [r.json for r in upstream.received]
    assert all(len(body["input"]) == 1 for body in asked), "history was sent"
    assert not any(memory_in(body) for body in asked)


async def test_handoff_and_tool_results_arrive_as_the_client_sent_them(
    base_url: str, key: str, upstream: ScriptedUpstream, script: Script
) -> None:
    async with openai.AsyncOpenAI(base_url=base_url, api_key=key, max_retries=0) as client:
        model = agents.OpenAIResponsesModel("gpt-4o", client)
        second = agents.Agent(name="Closer", instructions="You close.", model=model)
        first = agents.Agent(name="Opener", instructions="You open.", model=model, handoffs=[second], tools=[look_up])
        upstream.play(
            Reply(calls=(ToolCall("call_1", "look_up", '{"name": "checkout"}'),)),
            Reply(calls=(ToolCall("call_2", "transfer_to_closer", "{}"),)),
            "closed",
        )
        ended = await agents.Runner.run(first, "hello")
    assert ended.final_output == "closed" and ended.last_agent is second
    outputs = [item["output"] for item in upstream.received[-1].json["input"] if "output" in item]
    assert outputs[0] == "checkout: owned by the payments team, deployed in three regions."
