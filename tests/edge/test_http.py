"""A client that stops in the middle of a request is let go; one that is slow is served."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, suppress

import pytest
from palimpsest.edge.http import HEAD_BYTES, Connection

from tests.edge.serving import Prompt, edge
from tests.wirelevel import Headers, HttpMessage, Line, RawUpstream, answer, chunk, chunked_head, connected, request

FILES = b"/v1/files"
LISTING = request(b"/v1/models", method=b"GET")
MOMENT_SECONDS = 0.2


class Lingering(Connection):
    """Waits for a last request for as long as a busy machine may need to send it."""

    last_seconds = 60.0


class Impatient(Prompt):
    """Waits for moments instead of minutes."""

    head_seconds = 5 * MOMENT_SECONDS
    silence_seconds = 5 * MOMENT_SECONDS


@pytest.fixture
async def upstream() -> AsyncIterator[RawUpstream]:
    async with RawUpstream() as running:
        yield running


@pytest.fixture
def port(upstream: RawUpstream) -> Iterator[int]:
    with edge([{"url": upstream.url}], http=Impatient, idle_seconds=1) as running:
        yield running


STOPS = {
    "nothing": b"",
    "a line end": b"\r\n",
    "a line": b"GET /v1/mod",
    "headers": LISTING[:-2],
    "a line end behind": LISTING + b"\r\n",
    "headers behind": LISTING + LISTING[:-2],
    "a body": request(FILES, headers=[(b"content-length", b"100")]) + b"half",
    "read": request(b"/v1/chat/completions", headers=[(b"content-length", b"100")]) + b"half",
    "chunks": request(FILES, headers=[(b"transfer-encoding", b"chunked")]) + chunk(b"half"),
}


async def test_clients_that_stop_in_the_middle_are_let_go(port: int) -> None:
    async def is_let_go(sent: bytes) -> bool:
        try:
            async with connected(port) as line:
                await line.send(sent)
                await line.closed()
        except TimeoutError:
            return False
        return True

    let_go = await asyncio.gather(*map(is_let_go, STOPS.values()))
    assert dict(zip(STOPS, let_go, strict=True)) == dict.fromkeys(STOPS, True)
    async with connected(port) as line:
        await line.send(LISTING)
        assert (await line.message()).status == 200


async def test_headers_that_come_byte_by_byte_do_not_hold_a_connection(port: int) -> None:
    async with connected(port) as line:
        closed = asyncio.create_task(line.closed())
        while not closed.done():
            await line.send(b"a")
            await asyncio.wait([closed], timeout=MOMENT_SECONDS)
    async with connected(port) as line:
        await line.send(LISTING)
        assert (await line.message()).status == 200


async def test_a_slow_body_takes_as_long_as_it_takes(upstream: RawUpstream, port: int) -> None:
    pieces = [b"%d" % number for number in range(8)]
    async with connected(port) as line:
        await line.send(request(FILES, headers=[(b"content-length", b"%d" % len(pieces))]))
        for piece in pieces:
            await asyncio.sleep(MOMENT_SECONDS)
            await line.send(piece)
        assert (await line.message()).status == 200
    assert upstream.requests[0].body == b"".join(pieces)


async def test_a_slow_answer_takes_as_long_as_it_takes(upstream: RawUpstream, port: int) -> None:
    async def script(_: HttpMessage, line: Line) -> None:
        await asyncio.sleep(6 * MOMENT_SECONDS)
        await line.send(chunked_head() + chunk(b"one"))
        await asyncio.sleep(6 * MOMENT_SECONDS)
        await line.send(chunk(b"two") + chunk(b""))

    upstream.script = script
    async with connected(port) as line:
        await line.send(LISTING)
        assert (await line.message()).body == b"onetwo"


@pytest.mark.parametrize("method", [b"GET", b"HEAD"])
async def test_an_answer_to_http_1_0_is_not_chunked_and_ends_with_its_connection(
    upstream: RawUpstream, port: int, method: bytes
) -> None:
    async def script(_: HttpMessage, line: Line) -> None:
        await line.send(chunked_head() + (chunk(b"one") + chunk(b"two") + chunk(b"") if method == b"GET" else b""))

    upstream.script = script
    async with connected(port) as line:
        await line.send(request(b"/v1/models", method=method).replace(b"HTTP/1.1", b"HTTP/1.0"))
        head = await line.head()
        assert head.values(b"connection") == [b"close"]
        assert head.values(b"transfer-encoding") == head.values(b"content-length") == []
        assert await line.closed() == (b"onetwo" if method == b"GET" else b"")


async def test_the_length_of_an_answer_to_http_1_0_is_passed_on_where_it_is_known(
    upstream: RawUpstream, port: int
) -> None:
    async def script(_: HttpMessage, line: Line) -> None:
        await line.send(answer(b"onetwo"))

    upstream.script = script
    async with connected(port) as line:
        await line.send(LISTING.replace(b"HTTP/1.1", b"HTTP/1.0"))
        assert (await line.message()).body == b"onetwo"
        assert await line.closed() == b""


async def test_an_upstream_that_reads_slowly_is_not_the_clients_silence(upstream: RawUpstream, port: int) -> None:
    body = bytes(20_000_000)

    async def script(_: HttpMessage, line: Line) -> None:
        await asyncio.sleep(10 * MOMENT_SECONDS)
        assert await line.exactly(len(body)) == body
        await line.send(answer())

    upstream.script, upstream.reads_bodies = script, False
    async with connected(port) as line:
        await line.send(request(FILES, body))
        assert (await line.message()).status == 200


async def test_headers_without_end_are_refused(upstream: RawUpstream, port: int) -> None:
    for header in (b"x: " + b"y" * HEAD_BYTES * 2, b"x: y\r\n" * (HEAD_BYTES // 3)):
        async with connected(port) as line:
            await line.send(LISTING[:-2] + header)
            got = await line.message()
            assert got.status == 431 and b'"code":"headers_too_large"' in got.body
            assert any(name == b"x-request-id" for name, _ in got.headers)
    assert upstream.requests == []


async def test_long_headers_pass(upstream: RawUpstream, port: int) -> None:
    long = [(b"x-%d" % number, b"y" * 4000) for number in range(30)]
    async with connected(port) as line:
        await line.send(request(b"/v1/models", method=b"GET", headers=long))
        assert (await line.message()).status == 200
    assert set(long) <= set(upstream.requests[0].headers)


H2C = [(b"connection", b"Upgrade, HTTP2-Settings"), (b"upgrade", b"h2c"), (b"http2-settings", b"AAEAAEAAAAIAAAAB")]
"""What `java.net.http` sends with its first request to any address without TLS."""


@pytest.mark.parametrize("size", [10, 1_000_000])
async def test_a_request_that_asks_for_http_2_is_answered_in_http_1_with_its_body_read(
    upstream: RawUpstream, port: int, size: int
) -> None:
    whole = request(FILES, bytes(size), headers=H2C)
    chunks = request(FILES, headers=[*H2C, (b"transfer-encoding", b"chunked")]) + chunk(bytes(size)) + chunk(b"")
    async with connected(port) as line:
        for sent in (whole, chunks):
            begun = sent.index(b"h2c")
            for piece in (sent[:begun], sent[begun : begun + 200], sent[begun + 200 :]):
                await line.send(piece)
                await asyncio.sleep(MOMENT_SECONDS / 4)
            assert (await line.message()).status == 200
        for _ in range(2):
            await line.send(whole * 2 + LISTING)
            assert [(await line.message()).status for _ in range(3)] == [200, 200, 200]
        await line.send(request(FILES, bytes(size), headers=[(b"connection", b"close")]) + LISTING)
        assert (await line.message()).status == 200, "what follows the last request is not read"
    assert [len(one.body) for one in upstream.requests] == [size, size, *([size, size, 0] * 2), size]
    assert all(one.names.isdisjoint({b"upgrade", b"connection", b"http2-settings"}) for one in upstream.requests)


@pytest.mark.parametrize("headers", [[], H2C])
async def test_a_tunnel_to_elsewhere_is_refused(upstream: RawUpstream, port: int, headers: Headers) -> None:
    async with connected(port) as line:
        await line.send(request(b"elsewhere:443", method=b"CONNECT", headers=headers))
        assert (await line.message()).status == 400
    assert upstream.requests == []


async def stop(running: ExitStack, port: int) -> asyncio.Task[None]:
    """Tell the server to stop; returns when it takes no more connections."""
    stopping = asyncio.create_task(asyncio.to_thread(running.close))
    with suppress(OSError):
        while True:
            async with connected(port):
                await asyncio.sleep(0.01)
    return stopping


@pytest.mark.parametrize("sent_before", [b"", LISTING[:20]], ids=["nothing", "half a request"])
async def test_a_request_that_is_on_its_way_at_a_stop_is_answered_and_the_last_one(
    upstream: RawUpstream, sent_before: bytes
) -> None:
    running = ExitStack()
    port = running.enter_context(edge([{"url": upstream.url}], http=Lingering, stop_seconds=60))
    async with connected(port) as kept, connected(port) as fresh:
        await kept.send(LISTING)
        assert (await kept.message()).status == 200
        for line in (kept, fresh):
            await line.send(sent_before)
        stopping = await stop(running, port)
        for line in (kept, fresh):
            await line.send(LISTING[len(sent_before) :])
            assert (await line.message()).status == 200
            await line.closed()
        await stopping


async def test_a_connection_without_a_request_does_not_hold_up_a_stop(upstream: RawUpstream) -> None:
    running = ExitStack()
    port = running.enter_context(edge([{"url": upstream.url}], http=Connection, stop_seconds=600))
    async with connected(port) as idle:
        await (await stop(running, port))
        await idle.closed()
