"""
Clients that cannot compact, in front of a model with a small window: their conversations go on past it.

By hand at any size: `OVERFLOW_WINDOW_TOKENS=16000 OVERFLOW_TURNS=330` and `--timeout 0` is 400,000 tokens.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import agents
import openai
import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from palimpsest.domain import Json, ToolCall
from palimpsest.evaluation.scripted import Reply, ScriptedUpstream
from palimpsest.evaluation.scripted.rules import violations

from tests.clients.conftest import FACT, QUESTION, TALK, newest
from tests.refusals import PROVIDERS, prompt_tokens, within
from tests.running import Proxy, memory_in, texts

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("words_only")]

WINDOW_TOKENS = int(os.environ.get("OVERFLOW_WINDOW_TOKENS", "5000"))
# Each with some 1,200 tokens: the libraries take a time that grows as the square of the number of messages.
TURNS = int(os.environ.get("OVERFLOW_TURNS", "25"))
LINES = "\n".join(f"line {number} of the log: worker {number} is fine and its queue is empty" for number in range(66))
CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"

agents.set_tracing_disabled(True)


@pytest.fixture
def trimming(upstream: ScriptedUpstream, tmp_path: Path) -> Iterator[Proxy]:
    with Proxy(tmp_path / "data", upstream.url, {"overflow": "trim"}) as running:
        yield running


def llama(path: str) -> Callable[[Json], Reply | str]:
    """A server like llama.cpp's: it refuses what is too long, and any template refuses what is out of order."""
    calls = 0

    def say(asked: Json) -> Reply | str:
        nonlocal calls
        if wrong := violations(path, asked):
            return Reply(f"the template refuses: {wrong[0]}", status=400)
        last = newest(asked)
        if "read the log" in last:
            calls += 1
            return Reply(calls=(ToolCall(f"call_{calls}", "read_log", '{"name": "worker"}'),))
        return next((answer for said, answer in TALK if said in last), "All of them are fine, as the log says.")

    return within(WINDOW_TOKENS, PROVIDERS["llama.cpp"], say)


def check(upstream: ScriptedUpstream, proxy: Proxy) -> None:
    """The answers were all answered within the window, the question among them, with what was said long before."""
    asked = [got.json for got in upstream.received]
    assert FACT in memory_in(asked[-1])
    assert proxy.metric("palimpsest_overflow_total", what="cut") > 2
    refused = [got for got in asked if prompt_tokens(got) > WINDOW_TOKENS]
    assert len(refused) <= 1, "the first refusal told the window"


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
async def test_openai_agents_go_on_past_the_window(
    trimming: Proxy, key: str, upstream: ScriptedUpstream, path: str
) -> None:
    upstream.script = llama(path)

    @agents.function_tool
    def read_log(name: str) -> str:
        """Read a log."""
        return LINES

    async with openai.AsyncOpenAI(base_url=trimming.url, api_key=key, max_retries=0) as client:
        kind = agents.OpenAIChatCompletionsModel if path == CHAT else agents.OpenAIResponsesModel
        model = kind("local-model", client)
        agent = agents.Agent(name="Engineer", instructions="You help.", model=model, tools=[read_log])
        session = agents.SQLiteSession("one")
        for said, _ in TALK:
            await agents.Runner.run(agent, said, session=session)
        for turn in range(TURNS):
            told = await agents.Runner.run(agent, f"{turn}: please read the log", session=session)
            assert "fine" in str(told.final_output)
        trimming.settle(vectors=False)
        await agents.Runner.run(agent, QUESTION, session=session)
        items = await session.get_items()
        session.close()
    assert len(str(items)) / 4 > 4 * WINDOW_TOKENS, "the client keeps everything"
    check(upstream, trimming)


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
def test_langchain_goes_on_past_the_window(
    trimming: Proxy, key: str, upstream: ScriptedUpstream, streaming: bool
) -> None:
    upstream.script = llama(CHAT)

    @tool
    def read_log(name: str) -> str:
        """Read a log."""
        return LINES

    model = ChatOpenAI(
        model="local-model", base_url=trimming.url, api_key=key, max_retries=0, streaming=streaming, stream_usage=True
    )
    agent = create_agent(model, tools=[read_log], system_prompt="You help.", checkpointer=InMemorySaver())

    def ask(text: str) -> str:
        told = agent.invoke({"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": "one"}})
        return str(told["messages"][-1].content)

    for said, answer in TALK:
        assert ask(said) == answer
    for turn in range(TURNS):
        assert "fine" in ask(f"{turn}: please read the log")
    trimming.settle(vectors=False)
    ask(QUESTION)
    check(upstream, trimming)
    assert QUESTION in texts(upstream.received[-1].json)


def test_plain_client_of_a_model_server_that_refuses_nothing_loses_nothing_in_silence(
    upstream: ScriptedUpstream, key: str, tmp_path: Path
) -> None:
    """Ollama drops the beginning of what is longer than its `num_ctx`, and says nothing of it."""
    upstream.script = lambda asked: Reply(
        next((answer for said, answer in TALK if said in newest(asked)), "All of them are fine, as the log says."),
        prompt_tokens=prompt_tokens(asked),
    )
    settings = {"overflow": "trim", "pressure": {"window_tokens": {"qwen*": WINDOW_TOKENS}}}
    history: list[Json] = []
    with Proxy(tmp_path / "data", upstream.url, settings) as proxy:
        client = openai.OpenAI(base_url=proxy.url, api_key=key, max_retries=0)

        def say(text: str) -> None:
            history.append({"role": "user", "content": text})
            told = client.chat.completions.create(model="qwen3:8b", messages=history)  # type: ignore[arg-type]
            history.append({"role": "assistant", "content": told.choices[0].message.content})

        for said, _ in TALK:
            say(said)
        for turn in range(TURNS):
            say(f"{turn}: here is the log, is it fine?\n{LINES}")
        proxy.settle(vectors=False)
        say(QUESTION)
        client.close()
        asked = [got.json for got in upstream.received]
        assert len(str(history)) / 4 > 4 * WINDOW_TOKENS, "the client keeps everything"
        assert max(map(prompt_tokens, asked)) <= WINDOW_TOKENS and not any(violations(CHAT, one) for one in asked)
        assert FACT in memory_in(asked[-1]) and QUESTION in texts(asked[-1])
        assert proxy.metric("palimpsest_overflow_total", what="cut") > 2
