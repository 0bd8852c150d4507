"""The tools through the running proxy, by the SDK's client in both generations of the protocol, and by real agents."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import agents
import httpx2
import openai
import orjson
import pytest
from agents.mcp import MCPServerStreamableHttp
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, InputRequiredResult, TextContent
from palimpsest.domain import Json, ToolCall
from palimpsest.evaluation.scripted import Reply, ScriptedUpstream

from tests.commands.test_cli import palimpsest
from tests.running import PATIENCE_SECONDS, ROOT, Conversation, Proxy, request, upstream_on_a_thread

pytestmark = pytest.mark.slow

KEY = "sk-mcp"
FACT = "The metrics exporter listens on port 9417."
QUESTION = "Which port does the metrics exporter listen on?"
SETTINGS: Json = {"memory": {"reach": "tenant"}, "mcp": {"enabled": True}}
WRITES = {"remember_fact": False, "forget_fact": True, "forget_memory": True}  # and whether it takes something away
ERAS = ("legacy", "auto")

agents.set_tracing_disabled(True)


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedUpstream]:
    with upstream_on_a_thread() as upstream:
        upstream.script = lambda _question: "Noted."
        yield upstream


@pytest.fixture(scope="module")
def proxy(upstream: ScriptedUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """A proxy that serves tools, and has heard the fact in a conversation that is compacted."""
    tools = [*TOOLS, "search", "fetch", "forget_memory", "remember_fact", "forget_fact"]
    settings = SETTINGS | {"mcp": {"enabled": True, "tools": tools}, "facts": {"policy": "suggest"}}
    with Proxy(tmp_path_factory.mktemp("mcp") / "data", upstream.url, settings) as proxy:
        talk = Conversation(proxy, KEY)
        for text in (FACT, "My sister Clara plays the violin.", "The roof needs repair.", "The garden too."):
            talk.say(text)
        talk.keep_last(2)
        talk.say("What is next?")
        proxy.settle(vectors=False)
        yield proxy


TOOLS = ("search_memory", "fetch_memory", "recall_lost", "recall_facts")


@asynccontextmanager
async def asking(proxy: Proxy, mode: str = "auto", key: str = KEY) -> AsyncIterator[Client]:
    async with httpx2.AsyncClient(headers={"authorization": f"Bearer {key}"}) as http:
        transport = streamable_http_client(f"http://127.0.0.1:{proxy.port}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


@pytest.mark.parametrize("mode", ERAS)
async def test_tools_are_listed_with_what_an_agent_needs_to_choose(proxy: Proxy, mode: str) -> None:
    async with asking(proxy, mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(tools) == {*TOOLS, "search", "fetch", *WRITES}
    for name, tool in tools.items():
        assert tool.description is not None
        assert tool.description.startswith("Use when")
        assert bool(tool.output_schema) is (name in ("search", "fetch")), "else the text would be said twice"
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint is (name not in WRITES)
        assert tool.annotations.destructive_hint is WRITES.get(name, False)


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("tool", [("search_memory", {"query": QUESTION}), ("recall_lost", {"query": QUESTION})])
async def test_a_tool_quotes_what_was_said(proxy: Proxy, mode: str, tool: tuple[str, Json]) -> None:
    async with asking(proxy, mode) as client:
        found = await client.call_tool(*tool)
        assert not found.is_error
        assert found.structured_content is None and len(found.content) == 1
        assert "9417" in text_of(found)
        id = text_of(found).rpartition("in this order: ")[2].split(", ")[0]
        fetched = await client.call_tool("fetch_memory", {"id": id})
    assert not fetched.is_error
    assert "Use when" not in str(fetched.content)


def text_of(found: CallToolResult | InputRequiredResult) -> str:
    assert isinstance(found, CallToolResult)
    (part,) = found.content
    assert isinstance(part, TextContent)
    return part.text


async def test_what_a_third_person_asks_is_understood(proxy: Proxy) -> None:
    async with asking(proxy) as client:
        found = text_of(await client.call_tool("search_memory", {"query": "What does the user's sister Clara play?"}))
    assert "violin" in found and "Nothing is likely" not in found


@pytest.mark.parametrize("tool", ["search_memory", "recall_lost", "recall_facts"])
async def test_whatever_is_asked_is_called_query_and_unknown_arguments_are_refused(proxy: Proxy, tool: str) -> None:
    async with asking(proxy) as client:
        (schema,) = [one.input_schema for one in (await client.list_tools()).tools if one.name == tool]
        assert "query" in schema["properties"]
        refused = await client.call_tool(tool, {"question": QUESTION})
    assert refused.is_error
    assert text_of(refused).startswith(f"question: unknown to {tool}; it takes query, ")


async def test_search_and_fetch_answer_in_the_shape_that_chatgpt_wants(proxy: Proxy) -> None:
    async with asking(proxy) as client:
        hits = (await client.call_tool("search", {"query": QUESTION})).structured_content
        assert hits is not None
        assert set(hits["results"][0]) == {"id", "title", "url"}
        documents = [await client.call_tool("fetch", {"id": hit["id"]}) for hit in hits["results"]]
    told = [document.structured_content or {} for document in documents]
    assert any("9417" in document["text"] for document in told)
    assert set(told[0]) == {"id", "title", "text", "url", "metadata"}


async def test_another_key_finds_nothing(proxy: Proxy) -> None:
    async with asking(proxy, key="sk-other") as client:
        found = await client.call_tool("search_memory", {"query": QUESTION})
    assert "9417" not in str(found)


async def test_a_wrong_argument_and_an_unknown_id_are_errors_in_words(proxy: Proxy) -> None:
    async with asking(proxy) as client:
        unknown = await client.call_tool("fetch_memory", {"id": "c-1/999"})
        assert unknown.is_error
        assert "no such message" in str(unknown.content)
        for wrong in ({"query": ""}, {}, {"query": "x", "limit": 0}):
            refused = await client.call_tool("search_memory", wrong)
            assert refused.is_error
            assert "search_memory takes query, conversation, limit" in text_of(refused)
            assert "pydantic" not in text_of(refused)


def test_no_cache_keeps_an_answer(proxy: Proxy) -> None:
    asked = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'
    sent = {"authorization": f"Bearer {KEY}", "content-type": "application/json", "accept": "application/json"}
    answered = request(proxy.port, "POST", "/mcp", asked, sent)
    assert (answered.status, answered.headers["cache-control"]) == (200, "no-store")


def test_a_call_that_names_no_tenant_is_refused(proxy: Proxy) -> None:
    passing = "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmVk"  # another one within the hour
    sent = {"content-type": "application/json", "authorization": passing}
    answered = request(proxy.port, "POST", "/mcp", b"{}", sent)
    assert answered.status == 401
    assert "authorization" in answered.json["error"]["message"]


async def test_forgetting_is_previewed_and_then_confirmed(proxy: Proxy) -> None:
    Conversation(proxy, "sk-forgetful").say("The spare key is under the zebrafish tank.")
    proxy.settle(vectors=False)
    async with asking(proxy, key="sk-forgetful") as client:
        told = text_of(await client.call_tool("forget_memory", {"matching": "zebrafish"}))
        preview = orjson.loads(told.removeprefix("Nothing is erased yet. "))
        assert preview["would_forget"]["messages"] == 1
        again = {"matching": "zebrafish", "confirm": preview["confirm"]}
        done = text_of(await client.call_tool("forget_memory", again))
    assert orjson.loads(done.removeprefix("Erased. The receipt: "))["erased"]["messages"] == 1


@pytest.mark.parametrize("mode", ERAS)
async def test_facts_are_remembered_recalled_and_forgotten(proxy: Proxy, mode: str) -> None:
    async with asking(proxy, mode, key=f"sk-facts-{mode}") as client:
        fact = {"subject": "project", "slot": "port", "value": "9417", "category": "setting"}
        told = text_of(await client.call_tool("remember_fact", fact))
        assert "project, port: 9417" in told and "by remember_fact" in told
        assert text_of(await client.call_tool("recall_facts", {"query": "port", "category": "setting"})) == told
        id = told.partition(", id ")[2].partition(")")[0]
        forgotten = text_of(await client.call_tool("forget_fact", {"id": id}))
        assert forgotten == f"The fact {id} is forgotten; it had been stated 1 times."
        assert text_of(await client.call_tool("recall_facts", {})) == "Facts: nothing is known about this."
        assert (await client.call_tool("remember_fact", fact | {"category": "rumour"})).is_error
        gone = await client.call_tool("forget_fact", {"id": "f-1"})
    assert gone.is_error and "no such fact" in str(gone.content)


async def test_an_extracted_fact_names_the_message_that_states_it(proxy: Proxy) -> None:
    Conversation(proxy, "sk-namesake").say("Hello, my name is Zebulon.")
    async with asking(proxy, key="sk-namesake") as client:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while "Zebulon" not in (found := text_of(await client.call_tool("recall_facts", {}))):  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        message = await client.call_tool("fetch_memory", {"id": found.partition(", by ")[2].partition(",")[0]})
    assert "my name is Zebulon" in text_of(message)


async def test_tools_of_facts_are_not_there_where_no_facts_are_kept(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    settings = SETTINGS | {"mcp": {"enabled": True, "tools": [*TOOLS, "remember_fact", "forget_fact"]}}
    with Proxy(tmp_path / "data", upstream.url, settings) as proxy:
        async with asking(proxy) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == set(TOOLS) - {"recall_facts"}


def test_a_proxy_that_serves_no_tools_passes_the_path_on(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    with Proxy(tmp_path / "data", upstream.url) as proxy:
        request(proxy.port, "POST", "/mcp", b"{}", {"authorization": f"Bearer {KEY}"})
    assert upstream.received[-1].path.endswith("/mcp")


async def test_the_command_serves_the_same_tools_on_standard_input_and_output(proxy: Proxy) -> None:
    command = ["-m", "palimpsest", "mcp", "--url", f"http://127.0.0.1:{proxy.port}"]
    env = {"OPENAI_API_KEY": KEY, "PYTHONPATH": str(ROOT / "proxy")}
    async with Client(stdio_client(StdioServerParameters(command=sys.executable, args=command, env=env))) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} >= set(TOOLS)
        found = await client.call_tool("search_memory", {"query": QUESTION})
    assert "9417" in str(found.content)


def calls_then_answers(question: Json) -> Reply | str:
    """A model that calls the first memory tool it is offered once, and answers with what came back."""
    results = [message["content"] for message in question["messages"] if message["role"] == "tool"]
    if results:
        return "It was in memory."
    names = [tool["function"]["name"] for tool in question.get("tools", ())]
    name = next(name for name in names if name.endswith("search_memory"))
    return Reply(calls=(ToolCall("call-1", name, '{"query": "Which port does the metrics exporter listen on?"}'),))


async def test_an_agent_of_openais_sdk_uses_the_tools_and_its_results_are_not_remembered_again(
    proxy: Proxy, upstream: ScriptedUpstream
) -> None:
    upstream.script = calls_then_answers
    params = {"url": f"http://127.0.0.1:{proxy.port}/mcp", "headers": {"authorization": f"Bearer {KEY}"}}
    async with (
        openai.AsyncOpenAI(base_url=proxy.url, api_key=KEY, max_retries=0) as client,
        MCPServerStreamableHttp(params, name="palimpsest") as server,
    ):
        model = agents.OpenAIChatCompletionsModel("gpt-4o", client)
        agent = agents.Agent(name="Engineer", instructions="You help.", model=model, mcp_servers=[server])
        result = await agents.Runner.run(agent, "What did I decide about the exporter?")
    assert result.final_output == "It was in memory."
    sent = upstream.received[-1].json["messages"]
    assert "9417" in str(next(message for message in sent if message["role"] == "tool"))
    proxy.settle(vectors=False)
    async with asking(proxy) as client:
        found = text_of(await client.call_tool("search_memory", {"query": QUESTION}))
    assert "9417" in found and "\ntool: " not in found


def remembers_then_answers(question: Json) -> Reply | str:
    """A model that notes down what it is asked to remember."""
    if any(message["role"] == "tool" for message in question["messages"]):
        return "Noted down."
    name = next(tool["function"]["name"] for tool in question["tools"] if "remember_fact" in tool["function"]["name"])
    fact = '{"subject": "user", "slot": "dog", "value": "Rex", "category": "identity"}'
    return Reply(calls=(ToolCall("call-1", name, fact),))


async def test_what_an_agent_remembers_is_a_fact_and_its_result_states_none(
    proxy: Proxy, upstream: ScriptedUpstream
) -> None:
    upstream.script = remembers_then_answers
    key = "sk-remembering"
    params = {"url": f"http://127.0.0.1:{proxy.port}/mcp", "headers": {"authorization": f"Bearer {key}"}}
    async with (
        openai.AsyncOpenAI(base_url=proxy.url, api_key=key, max_retries=0) as client,
        MCPServerStreamableHttp(params, name="palimpsest") as server,
    ):
        model = agents.OpenAIChatCompletionsModel("gpt-4o", client)
        agent = agents.Agent(name="Friend", instructions="You help.", model=model, mcp_servers=[server])
        result = await agents.Runner.run(agent, "Please keep in mind how my dog is called.")
    assert result.final_output == "Noted down."
    proxy.settle(vectors=False)
    async with asking(proxy, key=key) as asked:
        found = text_of(await asked.call_tool("recall_facts", {}))
    assert found.count("\nfact: ") == 1
    assert "user, dog: Rex" in found and "by remember_fact" in found


@pytest.mark.parametrize("answer", [Reply("hello"), Reply(status=404), Reply(status=400)], ids=["200", "404", "400"])
def test_the_command_says_that_the_tools_are_off_where_the_provider_answers_in_their_place(
    proxy: Proxy, upstream: ScriptedUpstream, answer: Reply
) -> None:
    upstream.script = lambda _question: answer
    with Proxy(proxy.data.with_name("without-tools"), upstream.url) as without:
        ended = palimpsest("mcp", "--url", f"http://127.0.0.1:{without.port}")
    assert ended.returncode == 1 and ended.stderr.startswith("palimpsest: asking") and "mcp.enabled" in ended.stderr
