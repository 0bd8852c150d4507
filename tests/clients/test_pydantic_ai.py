"""pydantic-ai with a window of its own, on both of OpenAI's wires: what fell out of it comes back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import openai
import pytest
from palimpsest.domain import Json, ToolCall
from palimpsest.evaluation.scripted import Reply, ScriptedUpstream
from pydantic_ai import Agent, BinaryContent
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models import Model
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from tests.clients.conftest import FACT, QUESTION, TALK, answers, newest
from tests.running import Proxy, memory_in, own_texts

pytestmark = pytest.mark.slow

KEEP_MESSAGES = 5


Wire = type[OpenAIChatModel] | type[OpenAIResponsesModel]
WIRES = pytest.mark.parametrize("wire", [OpenAIChatModel, OpenAIResponsesModel], ids=["chat", "responses"])


@asynccontextmanager
async def model(wire: Wire, url: str, key: str) -> AsyncIterator[Model]:
    async with openai.AsyncOpenAI(base_url=url, api_key=key, max_retries=0) as client:
        yield wire("gpt-4o", provider=OpenAIProvider(openai_client=client))


def keep_last(history: list[ModelMessage]) -> list[ModelMessage]:
    """A window that begins with what a user said, as its authors advise."""
    return history[-KEEP_MESSAGES:]


def look_up(name: str) -> str:
    """Look up a service."""
    return f"{name}: owned by the payments team, deployed in three regions."


@WIRES
async def test_fact_that_fell_out_of_the_window_reaches_the_model(
    proxy: Proxy, key: str, upstream: ScriptedUpstream, wire: Wire
) -> None:
    upstream.script = answers
    history: list[ModelMessage] = []
    async with model(wire, proxy.url, key) as answering:
        agent = Agent(answering, instructions="You help with a migration.", capabilities=[ProcessHistory(keep_last)])
        for said, answer in TALK:
            ended = await agent.run(said, message_history=history)
            assert ended.output == answer
            history = ended.all_messages()
        proxy.settle()
        await agent.run(QUESTION, message_history=history)
    reached = upstream.received[-1].json
    assert FACT not in own_texts(reached), "the window did not move"
    assert FACT in memory_in(reached)


@WIRES
async def test_tool_loop_with_an_image_ends_as_without_the_proxy(
    base_url: str, key: str, upstream: ScriptedUpstream, wire: Wire
) -> None:
    def script(body: Json) -> Reply | str:
        if "payments team" in newest(body):
            return "The payments team."
        return Reply(calls=(ToolCall("call_1", "look_up", '{"name": "checkout"}'),), reasoning="Who owns it?")

    upstream.script = script
    async with model(wire, base_url, key) as answering:
        agent = Agent(answering, tools=[look_up])
        ended = await agent.run(["Who owns this?", BinaryContent(b"not really a picture", media_type="image/png")])
    assert ended.output == "The payments team."
    assert b"bm90IHJlYWxseSBhIHBpY3R1cmU=" in upstream.received[-1].body
