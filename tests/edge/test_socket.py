"""A WebSocket of the Responses API has memory as HTTP has it; whatever else is said on it passes unchanged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import orjson
import pytest
from aiohttp import WSMsgType
from palimpsest.domain import Ending, Json
from palimpsest.domain.ports import Prepared
from palimpsest.evaluation.scripted import ScriptedUpstream

from tests.edge.serving import ScriptedPipeline, edge
from tests.edge.test_tunnel import SocketUpstream
from tests.running import PATIENCE_SECONDS, Proxy, as_headers, memory_in, rows
from tests.test_pipeline_responses import BOAT, FERRY, filler, user

PATH = "/v1/responses"
ASKED = {"type": "response.create", "model": "gpt-4o", "input": "hi"}


@asynccontextmanager
async def joined(
    upstream: SocketUpstream, pipeline: ScriptedPipeline, limit_bytes: int = 1 << 28, **fields: object
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    with edge([{"url": upstream.url}], pipeline, limit_bytes=limit_bytes) as port:
        async with (
            asyncio.timeout(PATIENCE_SECONDS),
            aiohttp.ClientSession() as http,
            http.ws_connect(f"http://127.0.0.1:{port}{PATH}", autoping=False, max_msg_size=0, **fields) as socket,
        ):
            yield socket


async def test_only_requests_are_prepared_and_all_else_passes() -> None:
    pipeline = ScriptedPipeline(b'{"prepared": true}')
    async with SocketUpstream() as upstream, joined(upstream, pipeline, compress=15) as socket:
        for other in ('{"type": "session.update", "x": "\\"response.create\\""}', "no json", '{"a": 1.0}'):
            await socket.send_str(other)
            assert await socket.receive_str() == other
        await socket.send_bytes(b"\x00\x01")
        assert await socket.receive_bytes() == b"\x00\x01"
        await socket.ping(b"beat")
        assert (await socket.receive()).data == b"beat heard"
        assert pipeline.prepared == []
        await socket.send_json(ASKED)
        assert await socket.receive_str() == '{"prepared": true}'
        assert [orjson.loads(body or b"") for _, body in pipeline.prepared] == [ASKED]
        assert socket.compress == 0, "what is compressed could not be read"


async def test_an_answer_is_heard_to_its_end_and_the_end_waits_for_the_archive() -> None:
    events = [{"type": "response.created"}, {"type": "response.completed", "response": {"output": []}}]

    async def answer(socket: Any) -> None:
        async for _ in socket:
            for event in events:
                await socket.send_json(event)

    pipeline = ScriptedPipeline()
    pipeline.permit.clear()
    async with SocketUpstream(answer) as upstream, joined(upstream, pipeline) as socket:
        await socket.send_json(ASKED)
        assert await socket.receive_json() == events[0]
        with pytest.raises(TimeoutError):
            await socket.receive_json(timeout=0.1)
        pipeline.permit.set()
    assert await pipeline.endings() == [Ending.COMPLETE]
    assert b"event: response.completed\ndata: " in pipeline.listeners[0].heard


async def test_an_answer_that_breaks_off_is_told_as_such() -> None:
    async def cut(socket: Any) -> None:
        await socket.receive()
        await socket.send_json({"type": "response.created"})
        await asyncio.sleep(0)  # let it leave
        assert upstream.requests[0].transport is not None
        upstream.requests[0].transport.close()

    pipeline = ScriptedPipeline()
    async with SocketUpstream(cut) as upstream, joined(upstream, pipeline) as socket:
        await socket.send_json(ASKED)
        assert await socket.receive_json() == {"type": "response.created"}
        assert (await socket.receive()).type is WSMsgType.CLOSED
    assert await pipeline.endings() == [Ending.UPSTREAM_BROKE]


class FailingPipeline(ScriptedPipeline):
    async def prepare(self, *_: object, **__: object) -> Prepared:
        raise RuntimeError("memory is broken")


async def test_memory_may_fail_and_the_messages_pass() -> None:
    async with SocketUpstream() as upstream, joined(upstream, FailingPipeline()) as socket:
        await socket.send_json(ASKED)
        assert await socket.receive_json() == ASKED


async def test_a_message_above_the_limit_passes_unread() -> None:
    pipeline = ScriptedPipeline(b"{}")
    async with SocketUpstream() as upstream, joined(upstream, pipeline, limit_bytes=1_000) as socket:
        large = ASKED | {"input": "x" * 3_000_000}
        await socket.send_json(large)
        assert await socket.receive_json() == large
    assert pipeline.prepared == []


class Client:
    """A plain client that keeps one socket, and sends only what is new."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket

    async def send(self, input: Any, **more: object) -> Json:
        """The last event of the answer."""
        await self._socket.send_json(ASKED | {"input": input} | more)
        while True:
            event: Json = await self._socket.receive_json()
            if event["type"] in ("response.completed", "error"):
                return event


@asynccontextmanager
async def client(proxy: Proxy, key: str) -> AsyncIterator[Client]:
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        aiohttp.ClientSession() as http,
        http.ws_connect(f"{proxy.url}/responses", headers=as_headers(key, {}), max_msg_size=0) as socket,
    ):
        yield Client(socket)


@pytest.fixture
def speaking(upstream: ScriptedUpstream) -> Any:
    upstream.has_websockets = True
    upstream.script = lambda body: (
        FERRY
        if len(body["input"]) == 1
        else f"Noted as answer {len(str(body))} of mine, and it will be kept in mind for what comes next."
    )
    yield upstream
    upstream.has_websockets = False


async def test_what_was_said_on_a_socket_is_archived_and_comes_back_on_it(
    proxy: Proxy, speaking: ScriptedUpstream, key: str
) -> None:
    async with client(proxy, key) as socket:
        history = [user("What do you know of the islands?")]
        for number in range(4):
            history += (await socket.send(history))["response"]["output"]
            history.append(user(filler(number)))
        await asyncio.to_thread(proxy.settle)
        await socket.send([user("Summary of the conversation so far: sails. " * 9), *history[-2:], user(BOAT)])
    assert all(got.method == "WEBSOCKET" for got in speaking.received)
    assert "quarter past nine" in memory_in(speaking.received[-1].json)


async def test_a_chain_on_one_socket_is_one_conversation(proxy: Proxy, speaking: ScriptedUpstream, key: str) -> None:
    before = {id for (id,) in rows(proxy.data, "SELECT id FROM conversation")}
    async with client(proxy, key) as socket:
        first = await socket.send("Where shall we begin?", generate=False)
        second = await socket.send("With the sails.", previous_response_id=first["response"]["id"])
        await socket.send("And then?", previous_response_id=second["response"]["id"])
        refused = await socket.send("And then?", previous_response_id="resp_nowhere")
    assert (refused["type"], refused["status"]) == ("error", 400)
    await asyncio.to_thread(proxy.settle, vectors=False)
    told = rows(proxy.data, "SELECT conversation, event FROM turn ORDER BY id")
    told = [(conversation, event) for conversation, event in told if conversation not in before]
    assert [event for _, event in told[:3]] == ["start", "append", "append"]
    assert len({conversation for conversation, _ in told[:3]}) == 1
