"""openai-agents on the Responses API, its default: compaction by the provider, and a chain that sends no history."""

from __future__ import annotations

from collections.abc import AsyncIterator

import agents
import openai
import pytest
from agents.memory import OpenAIResponsesCompactionSession
from palimpsest.domain import Json, ToolCall
from palimpsest.evaluation.scripted import Reply, Script, ScriptedUpstream

from tests.clients.conftest import FACT, QUESTION, TALK, answers, newest
from tests.running import Proxy, memory_in, own_texts

pytestmark = pytest.mark.slow

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


@pytest.mark.parametrize("mode", ["input", "previous_response_id"])
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_fact_behind_the_compaction_of_a_session_reaches_the_model(
    proxy: Proxy,
    client: openai.AsyncOpenAI,
    agent: agents.Agent[None],
    upstream: ScriptedUpstream,
    mode: str,
    streamed: bool,
) -> None:
    upstream.script = working
    inner = agents.SQLiteSession("one")
    session = OpenAIResponsesCompactionSession(
        "one",
        inner,
        client=client,
        model="gpt-4o",
        compaction_mode=mode,  # type: ignore[arg-type]
        should_trigger_compaction=lambda seen: len(seen["compaction_candidate_items"]) > len(TALK),
    )
    config = agents.RunConfig(model_settings=agents.ModelSettings(store=True))
    for said, _ in TALK:
        if streamed:
            run = agents.Runner.run_streamed(agent, said, session=session, run_config=config)
            async for _ in run.stream_events():
                pass
        else:
            await agents.Runner.run(agent, said, session=session, run_config=config)
    (compact,) = [r for r in upstream.received if r.endpoint == "/v1/responses/compact"]
    assert set(compact.json) == {"model", mode}
    proxy.settle()
    await agents.Runner.run(agent, QUESTION, session=session, run_config=config)
    reached = next(r.json for r in reversed(upstream.received) if r.endpoint == "/v1/responses")
    assert "compaction" in {item.get("type") for item in reached["input"]}, "the session did not compact"
    assert FACT not in own_texts(reached)
    assert FACT in memory_in(reached)
    inner.close()


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
