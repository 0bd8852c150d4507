"""LangChain with its own ways to forget, on each wire: what it dropped comes back when it is asked for."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, SystemMessage, trim_messages
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from palimpsest.domain import Json, ToolCall
from palimpsest.evaluation.scripted import Reply, ScriptedUpstream

from tests.clients.conftest import FACT, QUESTION, SUMMARY, TALK, answers
from tests.running import Proxy, memory_in, own_texts, texts

pytestmark = pytest.mark.slow

KEEP_MESSAGES = 4
COMPACT_AT_MESSAGES = 11
LATER = "And remind me: the staging gateway, on which port does it listen?"


@tool
def look_up(name: str) -> str:
    """Look up a service."""
    return f"{name}: owned by the payments team, deployed in three regions."


def chat_model(base_url: str, key: str, model: str = "gpt-4o", *, streaming: bool = False) -> ChatOpenAI:
    return ChatOpenAI(model=model, base_url=base_url, api_key=key, max_retries=0, streaming=streaming)


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
def test_fact_that_the_middleware_summarised_away_reaches_the_model(
    proxy: Proxy, key: str, upstream: ScriptedUpstream, streaming: bool
) -> None:
    def script(body: Json) -> Reply | str:
        last = body["messages"][-1]
        if last["role"] == "user" and "Lena owns" in texts({"messages": [last]}):
            return Reply(calls=(ToolCall("call_lookup", "look_up", '{"name": "checkout"}'),))
        return answers(body)

    upstream.script = script
    middleware = SummarizationMiddleware(
        model=chat_model(proxy.url, key, "gpt-4o-mini"),
        trigger=("messages", COMPACT_AT_MESSAGES),
        keep=("messages", KEEP_MESSAGES),
    )
    agent = create_agent(
        chat_model(proxy.url, key, streaming=streaming),
        tools=[look_up],
        system_prompt="You help with a migration.",
        middleware=[middleware],
        checkpointer=InMemorySaver(),
    )

    def ask(text: str) -> Json:
        agent.invoke({"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": "one"}})
        return upstream.received[-1].json

    summarised = False
    for said, _ in TALK:
        reached = ask(said)
        summarised |= SUMMARY in texts(reached)
        if not summarised:
            assert not memory_in(reached)
    proxy.settle()
    reached = ask(QUESTION)
    assert SUMMARY in texts(reached), "the middleware did not compact"
    assert FACT not in own_texts(reached)
    assert FACT in memory_in(reached)
    summaries = [r.json for r in upstream.received if r.json["model"] == "gpt-4o-mini"]
    assert summaries and not any(memory_in(asked) for asked in summaries), "side requests are left alone"
    assert FACT in memory_in(ask(LATER)), "and it is still there one turn later"


def test_chain_of_responses_sends_only_what_is_new(proxy: Proxy, key: str, upstream: ScriptedUpstream) -> None:
    """The provider keeps the history and the client compacts nothing, so there is nothing to give back."""
    upstream.script = answers
    model = ChatOpenAI(
        model="gpt-4o", base_url=proxy.url, api_key=key, max_retries=0, use_previous_response_id=True, store=True
    )
    history: list[Any] = [SystemMessage("You help with a migration.")]
    for said, answer in (*TALK, (QUESTION, "Let me look that up in what you told me before.")):
        history.append(HumanMessage(said))
        history.append(model.invoke(history))
        assert history[-1].text == answer
    asked = [r.json for r in upstream.received]
    assert [len(body["input"]) for body in asked] == [2, *[1] * len(TALK)]
    assert all(body["previous_response_id"] for body in asked[1:])
    assert not any(memory_in(body) for body in asked)


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
def test_fact_that_fell_out_of_an_anthropic_window_reaches_the_model(
    proxy: Proxy, key: str, upstream: ScriptedUpstream, streaming: bool
) -> None:
    upstream.script = answers
    model = ChatAnthropic(
        model="claude-x", base_url=proxy.url.removesuffix("/v1"), api_key=key, max_retries=0, streaming=streaming
    )
    history: list[Any] = [SystemMessage("You help with a migration.")]

    def ask(text: str) -> Json:
        history.append(HumanMessage(text))
        window = trim_messages(
            history, max_tokens=KEEP_MESSAGES, token_counter=len, include_system=True, start_on="human"
        )
        history.append(model.invoke(window))
        return upstream.received[-1].json

    for said, _ in TALK:
        ask(said)
    proxy.settle()
    reached = ask(QUESTION)
    assert FACT not in own_texts(reached), "the window did not move"
    assert FACT in memory_in(reached)
