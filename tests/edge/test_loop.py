"""Connections are accepted while there is room; those that send nothing go for those that wait."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack

import orjson
import pytest
from palimpsest.edge.loop import Loop
from palimpsest.edge.room import Room
from palimpsest.evaluation.scripted import Reply, ScriptedUpstream

from tests.running import PATIENCE_SECONDS, Answered, Proxy, as_headers, request
from tests.wirelevel import Line, connected

LIMIT = 128  # descriptors
STREAMS = 90
HALF_OPEN = 200
HELLO = b"hello"


class Greeted(asyncio.Protocol):
    """A connection that waits until it has received something, and answers it."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._since: float | None = loop.time()
        assert loop.room is not None
        self._room = loop.room

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self._room.enter(self)

    def data_received(self, data: bytes) -> None:
        self._since = None
        self._transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._room.leave(self)

    def waits_since(self) -> float | None:
        return self._since

    def close_idle(self) -> None:
        self._transport.close()


def serving(connections: int, visit: Callable[[int], Awaitable[None]]) -> None:
    """Run this against a server that has room for so many connections."""

    async def run() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, Loop)
        room = loop.room = Room(connections, connections)
        server = await loop.create_server(lambda: Greeted(loop), "127.0.0.1", 0)
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await visit(server.sockets[0].getsockname()[1])
        finally:
            server.close()
            await emptied(room)
            await server.wait_closed()
            await asyncio.sleep(0)  # uvloop closes the sockets of ended connections behind its callbacks

    with asyncio.Runner(loop_factory=Loop) as runner:
        runner.run(run())


async def emptied(room: Room) -> None:
    """Wait until the last connection has ended: the loop leaves those that are open unclosed."""
    ended = asyncio.Event()
    room.when_left = lambda: None if room.taken else ended.set()
    room.when_left()
    async with asyncio.timeout(PATIENCE_SECONDS):
        await ended.wait()


async def greeted(line: Line) -> None:
    await line.send(HELLO)
    assert await line.exactly(len(HELLO)) == HELLO


def test_a_connection_that_sends_nothing_goes_when_another_one_waits() -> None:
    async def visit(port: int) -> None:
        async with AsyncExitStack() as lines:
            silent = [await lines.enter_async_context(connected(port)) for _ in range(7)]
            async with connected(port) as late:
                await greeted(late)
            assert await silent[0].closed() == b""

    serving(2, visit)


def test_a_connection_that_is_served_stays_and_the_next_waits_for_its_end() -> None:
    async def visit(port: int) -> None:
        async with AsyncExitStack() as lines:
            served = [await lines.enter_async_context(connected(port)) for _ in range(2)]
            for line in served:
                await greeted(line)
            late = await lines.enter_async_context(connected(port))
            waiting = asyncio.create_task(greeted(late))
            done, _ = await asyncio.wait([waiting], timeout=1.0)
            assert not done
            for line in served[1:]:
                await greeted(line)
            served[0].cut()
            await waiting
            await greeted(served[1])

    serving(2, visit)


@pytest.mark.slow
def test_with_few_descriptors_silent_connections_starve_nobody_and_what_is_too_much_is_told(
    own_proxy: Proxy, upstream: ScriptedUpstream
) -> None:
    upstream.script = lambda _: Reply("word " * 40, pace_seconds=0.05)
    own_proxy.under = ["bash", "-c", f'ulimit -n {LIMIT}; exec "$@"', "bash"]
    own_proxy.start()

    def ask(number: int) -> Answered:
        said = {"model": "m", "stream": True, "messages": [{"role": "user", "content": f"hi {number}"}]}
        return request(own_proxy.port, "POST", "/v1/chat/completions", orjson.dumps(said), as_headers("sk", {}))

    async def run() -> None:
        async with AsyncExitStack() as lines:
            for _ in range(HALF_OPEN):
                await lines.enter_async_context(connected(own_proxy.port))
            assert (await asyncio.to_thread(ask, 0)).status == 200
        with ThreadPoolExecutor(STREAMS) as threads:
            streams = [*threads.map(ask, range(STREAMS))]
        served = [one for one in streams if one.status == 200]
        assert served and all(b"[DONE]" in one.body for one in served)
        assert {one.json["error"]["code"] for one in streams if one.status != 200} == {"overloaded"}
        assert {one.status for one in streams} == {200, 503}

    asyncio.run(run())
    assert own_proxy.get("/healthz").status == 200
