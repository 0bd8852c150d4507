"""A WebSocket passes: what one side says is what the other hears, whatever it is, and however it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self

import aiohttp
import pytest
from aiohttp import WSCloseCode, WSMsgType, web
from palimpsest.settings.policy import KeyPolicy

from tests.edge.serving import HELD, edge
from tests.running import PATIENCE_SECONDS, Proxy, free_port
from tests.wirelevel import HttpMessage, Line, RawUpstream, answer, connected, request

PATH = "/v1/realtime?model=m"
LARGE_BYTES = 5 << 20  # more than every buffer on the way
HANDSHAKE = [
    (b"connection", b"keep-alive, Upgrade"),
    (b"upgrade", b"WebSocket"),
    (b"sec-websocket-version", b"13"),
    (b"sec-websocket-key", b"dGhlIHNhbXBsZSBub25jZQ=="),
]
CONSENT = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nX-Odd: yes\r\n\r\n"

Handler = Callable[[web.WebSocketResponse], Awaitable[None]]


async def echo(socket: web.WebSocketResponse) -> None:
    """Say everything back until it ends."""
    async for message in socket:
        if message.type is WSMsgType.TEXT:
            await socket.send_str(message.data)
        elif message.type is WSMsgType.BINARY:
            await socket.send_bytes(message.data)
        elif message.type is WSMsgType.PING:
            await socket.pong(message.data + b" heard")


class SocketUpstream:
    """A provider that speaks WebSocket; it keeps what it was asked with, and the sockets that it had."""

    def __init__(self, handler: Handler = echo, **fields: object) -> None:
        self.handler, self.fields = handler, fields
        self.requests: list[web.BaseRequest] = []
        self.sockets: list[web.WebSocketResponse] = []
        self.ended = asyncio.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def __aenter__(self) -> Self:
        self._runner = web.ServerRunner(web.Server(self._serve), shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _serve(self, asked: web.BaseRequest) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(autoping=False, max_msg_size=0, **self.fields)  # type: ignore[arg-type]
        self.requests.append(asked)
        self.sockets.append(socket)
        await socket.prepare(asked)
        try:
            await self.handler(socket)
        finally:
            self.ended.set()
        return socket


@asynccontextmanager
async def tunnelled(
    upstream: SocketUpstream, headers: dict[str, str] | None = None, **fields: object
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    """A client's end of a WebSocket through the proxy."""
    with edge([{"url": upstream.url}]) as port:
        url = f"http://127.0.0.1:{port}{PATH}"
        async with (
            asyncio.timeout(PATIENCE_SECONDS),
            aiohttp.ClientSession() as http,
            http.ws_connect(url, headers=headers, autoping=False, max_msg_size=0, **fields) as socket,
        ):
            yield socket


async def test_text_and_bytes_pass_both_ways() -> None:
    async with SocketUpstream() as upstream, tunnelled(upstream) as socket:
        for number in range(3):
            await socket.send_str(f"Zeile {number}: ä ✓")
            assert await socket.receive_str() == f"Zeile {number}: ä ✓"
            await socket.send_bytes(bytes(range(256)))
            assert await socket.receive_bytes() == bytes(range(256))


async def test_large_messages_pass_while_nobody_waits_for_the_other() -> None:
    async with SocketUpstream() as upstream, tunnelled(upstream) as socket:
        large = [bytes([number]) * LARGE_BYTES for number in range(3)]
        sending = asyncio.create_task(_send_all(socket, large))
        assert [await socket.receive_bytes() for _ in large] == large
        await sending


async def _send_all(socket: aiohttp.ClientWebSocketResponse, messages: list[bytes]) -> None:
    for message in messages:
        await socket.send_bytes(message)


async def test_pings_are_answered_by_the_other_side_and_not_on_the_way() -> None:
    async def ping(socket: web.WebSocketResponse) -> None:
        await socket.ping(b"are you there")
        message = await socket.receive()
        await socket.send_str(f"{message.type.name} {message.data.decode()}")

    async with SocketUpstream() as upstream, tunnelled(upstream) as socket:
        await socket.ping(b"beat")
        message = await socket.receive()
        assert (message.type, message.data) == (WSMsgType.PONG, b"beat heard")
    async with SocketUpstream(ping) as upstream, tunnelled(upstream) as socket:
        message = await socket.receive()
        assert (message.type, message.data) == (WSMsgType.PING, b"are you there")
        await socket.pong(b"yes")
        assert await socket.receive_str() == "PONG yes"


async def test_the_client_says_why_it_closes() -> None:
    async with SocketUpstream() as upstream:
        async with tunnelled(upstream) as socket:
            await socket.close(code=4001, message=b"enough")
        await asyncio.wait_for(upstream.ended.wait(), PATIENCE_SECONDS)
        assert upstream.sockets[0].close_code == 4001


async def test_the_upstream_says_why_it_closes() -> None:
    async def refuse(socket: web.WebSocketResponse) -> None:
        await socket.send_str("the last word")
        await socket.close(code=WSCloseCode.POLICY_VIOLATION, message=b"no more")

    async with SocketUpstream(refuse) as upstream, tunnelled(upstream, autoclose=False) as socket:
        assert await socket.receive_str() == "the last word"
        message = await socket.receive()
        assert (message.type, message.data, message.extra) == (WSMsgType.CLOSE, 1008, "no more")


async def test_a_side_that_breaks_off_breaks_the_other() -> None:
    async def cut(socket: web.WebSocketResponse) -> None:
        await socket.receive()
        assert upstream.requests[0].transport is not None
        upstream.requests[0].transport.abort()

    async with SocketUpstream(cut) as upstream, tunnelled(upstream) as socket:
        await socket.send_str("go")
        assert (await socket.receive()).type in (WSMsgType.CLOSED, WSMsgType.ERROR)
        assert socket.close_code == WSCloseCode.ABNORMAL_CLOSURE
    async with SocketUpstream() as upstream:
        with edge([{"url": upstream.url}]) as port:
            async with connected(port) as line:
                await line.send(request(PATH.encode(), method=b"GET", headers=HANDSHAKE))
                assert (await line.head()).status == 101
                line.cut()
            await asyncio.wait_for(upstream.ended.wait(), PATIENCE_SECONDS)


async def test_a_subprotocol_and_compression_are_between_the_two() -> None:
    async with SocketUpstream(protocols=("realtime",)) as upstream:
        async with tunnelled(upstream, protocols=("other", "realtime"), compress=15) as socket:
            assert (socket.protocol, socket.compress) == ("realtime", 15)
            await socket.send_str("squeeze " * 1000)
            assert await socket.receive_str() == "squeeze " * 1000
        async with tunnelled(upstream) as socket:
            assert (socket.protocol, socket.compress) == (None, 0)


async def test_headers_are_those_of_a_request_that_passes() -> None:
    sent = {"authorization": "Bearer sk-own", "x-palimpsest-user": "ann", "openai-beta": "sockets=1"}
    async with SocketUpstream() as upstream, tunnelled(upstream, sent):
        received = upstream.requests[0]
        assert received.raw_path == PATH
        assert received.headers["authorization"] == "Bearer sk-own"
        assert received.headers["openai-beta"] == "sockets=1"
        assert received.headers["host"] == f"127.0.0.1:{upstream.port}"
        assert not any(name.lower().startswith("x-palimpsest") for name in received.headers)
        assert received.headers.getall("upgrade") == ["websocket"]


async def test_a_held_key_stands_in_for_the_clients_and_only_keys_of_ours_come_in() -> None:
    keys = {"sk-ours": KeyPolicy(name="team", key_env="K")}
    async with SocketUpstream() as upstream:
        held = {"url": upstream.url, "auth": "held", "key_env": next(iter(HELD))}
        with edge([held], keys=keys) as port:
            async with aiohttp.ClientSession() as http:
                url = f"http://127.0.0.1:{port}{PATH}"
                with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                    await http.ws_connect(url, headers={"authorization": "Bearer sk-other"})
                assert (refused.value.status, upstream.requests) == (401, [])
                async with http.ws_connect(url, headers={"authorization": "Bearer sk-ours"}):
                    assert upstream.requests[0].headers.getall("authorization") == ["Bearer sk-held"]


async def test_a_refused_handshake_is_the_upstreams_own_and_ends_the_connection() -> None:
    async def refuse(asked: HttpMessage, line: Line) -> None:
        await line.send(answer(b'{"error":"no sockets"}', b"426 Upgrade Required", [(b"X-Why", b"because")]))

    async with RawUpstream(refuse) as upstream:
        with edge([{"url": upstream.url}]) as port:
            async with connected(port) as line:
                await line.send(request(PATH.encode(), method=b"GET", headers=HANDSHAKE))
                got = await line.message()
                assert (got.status, got.body) == (426, b'{"error":"no sockets"}')
                assert got.values(b"x-why") == [b"because"]
                assert await line.closed() == b""


@pytest.mark.parametrize(
    ("memory", "path", "status"),
    [
        ({"websockets": "decline"}, "/v1/responses", 426),
        ({"websockets": "decline"}, "/v1/realtime", 101),
        ({"websockets": "decline", "mode": "off"}, "/v1/responses", 101),
        ({}, "/v1/responses", 101),
    ],
)
async def test_a_websocket_may_be_declined_where_memory_acts(memory: dict[str, str], path: str, status: int) -> None:
    async with SocketUpstream() as upstream:
        with edge([{"url": upstream.url}], memory=memory) as port:
            async with connected(port) as line:
                await line.send(request(path.encode(), method=b"GET", headers=HANDSHAKE))
                assert (await line.head()).status == status
        assert len(upstream.requests) == (status == 101)


async def test_what_the_upstream_says_with_its_consent_is_not_lost() -> None:
    async def consent(asked: HttpMessage, line: Line) -> None:
        await line.send(CONSENT + b"\x81\x05early")
        assert await line.exactly(4) == b"late"
        await line.finish()

    async with RawUpstream(consent) as upstream:
        with edge([{"url": upstream.url}]) as port:
            async with connected(port) as line:
                await line.send(request(PATH.encode(), method=b"GET", headers=HANDSHAKE))
                head = await line.head()
                assert (head.status, head.values(b"x-odd")) == (101, [b"yes"])
                assert head.values(b"upgrade") == [b"websocket"] and head.values(b"connection") == [b"Upgrade"]
                assert await line.exactly(7) == b"\x81\x05early"
                await line.send(b"late")
                assert await line.closed() == b""


async def test_an_upstream_that_consents_and_goes_is_passed_on() -> None:
    async def consent(asked: HttpMessage, line: Line) -> None:
        await line.send(CONSENT + b"\x88\x02\x03\xe8")
        await line.finish()

    async with RawUpstream(consent) as upstream:
        with edge([{"url": upstream.url}]) as port:
            async with connected(port) as line:
                await line.send(request(PATH.encode(), method=b"GET", headers=HANDSHAKE))
                assert (await line.head()).status == 101
                assert await line.closed() == b"\x88\x02\x03\xe8"


@pytest.mark.parametrize(
    ("target", "status"), [(b"/v1//responses", 400), (b"/v1/%2e%2e/responses", 400), (b"/v1/responses", 502)]
)
async def test_paths_and_outages_are_answered_as_for_any_request(target: bytes, status: int) -> None:
    with edge([{"url": f"http://127.0.0.1:{free_port()}"}]) as port:
        async with connected(port) as line:
            await line.send(request(target, method=b"GET", headers=HANDSHAKE))
            assert (await line.message()).status == status


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        (b"GET", [(b"connection", b"Upgrade"), (b"upgrade", b"h2c")]),
        (b"GET", HANDSHAKE[1:]),
        (b"POST", HANDSHAKE),
    ],
)
async def test_nothing_but_a_websocket_is_asked_for(method: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    async with RawUpstream() as upstream:
        with edge([{"url": upstream.url}]) as port:
            async with connected(port) as line:
                await line.send(request(b"/v1/models", method=method, headers=headers))
                assert (await line.message()).status == 200
        assert upstream.requests[0].names.isdisjoint({b"upgrade", b"connection"})


async def test_a_server_that_gives_no_connection_away_says_so() -> None:
    async def consent(asked: HttpMessage, line: Line) -> None:
        await line.send(CONSENT)

    async with RawUpstream(consent) as upstream:
        with edge([{"url": upstream.url}], http="h11") as port:
            async with connected(port) as line:
                await line.send(request(b"/v1/responses", method=b"GET", headers=HANDSHAKE))
                assert (await line.message()).status == 502


async def test_an_upstream_that_switches_unasked_speaks_no_http() -> None:
    async def consent(asked: HttpMessage, line: Line) -> None:
        await line.send(CONSENT)

    async with RawUpstream(consent) as upstream:
        with edge([{"url": upstream.url}]) as port:
            async with connected(port) as line:
                await line.send(request(b"/v1/models", method=b"GET"))
                assert (await line.message()).status == 502


@pytest.mark.slow
async def test_the_log_says_that_memory_did_not_see_it(tmp_path: Path) -> None:
    async with SocketUpstream() as upstream:
        proxy = Proxy(tmp_path / "data", upstream.url)
        await asyncio.to_thread(proxy.start)
        try:
            async with aiohttp.ClientSession() as http, http.ws_connect(f"{proxy.url}/realtime?secret=x") as socket:
                await socket.send_str("hello")
                assert await socket.receive_str() == "hello"
            said = proxy.log.read_text()
        finally:
            await asyncio.to_thread(proxy.close)
    assert "a WebSocket passes through, without memory" in said and "path=/v1/realtime" in said
    assert "secret" not in said and "hello" not in said


async def test_a_server_that_stops_ends_what_has_no_end_of_its_own() -> None:
    async with SocketUpstream() as upstream:
        with edge([{"url": upstream.url}]) as port:
            http = aiohttp.ClientSession()
            socket = await http.ws_connect(f"http://127.0.0.1:{port}{PATH}")
            await socket.send_str("still there")
            assert await socket.receive_str() == "still there"
        assert (await socket.receive(PATIENCE_SECONDS)).type is WSMsgType.CLOSED
        await http.close()
        await asyncio.wait_for(upstream.ended.wait(), PATIENCE_SECONDS)
