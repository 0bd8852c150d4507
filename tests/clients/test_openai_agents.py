"""openai-agents on chat completions: a session that keeps only its last items gets back what fell out of it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import agents
import openai
import pytest
from agents.extensions import ToolOutputTrimmer
from palimpsest.domain import Json, ToolCall
from palimpsest.evaluation.scripted import Reply, Script, ScriptedUpstream

from tests.clients.conftest import FACT, QUESTION, TALK, answers
from tests.running import Proxy, memory_in, own_texts, texts

pytestmark = pytest.mark.slow

WINDOW_ITEMS = 4

agents.set_tracing_disabled(True)


@pytest.fixture
async def model(proxy: Proxy, key: str) -> AsyncIterator[agents.OpenAIChatCompletionsModel]:
    async with openai.AsyncOpenAI(base_url=proxy.url, api_key=key, max_retries=0) as client:
        yield agents.OpenAIChatCompletionsModel("gpt-4o", client)


def last_items(history: list[Json], new: list[Json]) -> list[Json]:
    return [*history[-WINDOW_ITEMS:], *new]


async def run(
    agent: agents.Agent[None], text: str, session: agents.Session, config: agents.RunConfig, *, streamed: bool
) -> str:
    if not streamed:
        return str((await agents.Runner.run(agent, text, session=session, run_config=config)).final_output)
    result = agents.Runner.run_streamed(agent, text, session=session, run_config=config)
    async for _ in result.stream_events():
        pass
    return str(result.final_output)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_fact_that_fell_out_of_the_session_reaches_the_model(
    proxy: Proxy, model: agents.Model, upstream: ScriptedUpstream, script: Script, streamed: bool
) -> None:
    agent = agents.Agent(name="Engineer", instructions="You help with a migration.", model=model)
    session = agents.SQLiteSession("one")
    config = agents.RunConfig(session_input_callback=last_items)
    for said, answer in TALK:
        assert await run(agent, said, session, config, streamed=streamed) == answer
    proxy.settle()
    await run(agent, QUESTION, session, config, streamed=streamed)
    reached = upstream.received[-1].json
    assert FACT not in own_texts(reached), "the session did not truncate"
    assert FACT in memory_in(reached)
    session.close()


async def test_trimmed_tool_output_changes_nothing_by_itself(
    proxy: Proxy, model: agents.Model, upstream: ScriptedUpstream
) -> None:
    """Cleared tool results restore nothing: the client may have cleared them to make room."""
    upstream.script = lambda body: (
        Reply(calls=(ToolCall(f"call_{len(body['messages'])}", "read_log", "{}"),))
        if body["messages"][-1]["role"] == "user" and "log" in texts({"messages": body["messages"][-1:]})
        else answers(body)
    )

    @agents.function_tool
    def read_log() -> str:
        """Read the log."""
        return "\n".join(f"line {n} of the log says that worker {n} is fine" for n in range(40))

    agent = agents.Agent(name="Engineer", instructions="You help.", model=model, tools=[read_log])
    session = agents.SQLiteSession("two")
    trimmer = ToolOutputTrimmer(recent_turns=1, max_output_chars=200, preview_chars=50)
    config = agents.RunConfig(call_model_input_filter=trimmer)
    for text in ("Please read the log.", "Thank you, that is all about it.", "Now tell me a joke about gateways."):
        await run(agent, text, session, config, streamed=False)
    reached = upstream.received[-1].json
    assert "line 39 of the log" not in texts(reached), "the trimmer did not trim"
    assert not memory_in(reached)
    session.close()
