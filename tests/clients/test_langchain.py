"""LangChain's agent with its own summarisation middleware: what it summarised away comes back when asked for."""

from __future__ import annotations

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver

from proxy.domain import Json, ToolCall
from proxy.scripted import Reply, ScriptedUpstream
from tests.clients.conftest import FACT, QUESTION, SUMMARY, TALK, answers
from tests.running import Proxy, memory_in, texts

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
    assert FACT not in texts(reached).replace(memory_in(reached), "")
    assert FACT in memory_in(reached)
    summaries = [r.json for r in upstream.received if r.json["model"] == "gpt-4o-mini"]
    assert summaries and not any(memory_in(asked) for asked in summaries), "side requests are left alone"
    assert FACT in memory_in(ask(LATER)), "and it is still there one turn later"
