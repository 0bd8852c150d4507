"""Bytes in, bytes out, as they come; memory looks on, and is told exactly once how each answer ended."""

from __future__ import annotations

import asyncio
import gzip
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, ClassVar

import brotli  # type: ignore[import-untyped]
import orjson
import pytest
from palimpsest.core.caller.proxy_keys import ProxyKeys
from palimpsest.core.caller.received import ReceivedRequest
from palimpsest.domain import Ending, Json, RawHeaders, TooLong
from palimpsest.domain.ports import Body, Prepared, Wire
from palimpsest.edge.proxy_routes import ProxyRoutes
from palimpsest.settings.policy import KeyPolicy, Policy

from tests.edge.serving import NOTE, ScriptedPipeline, edge
from tests.refusals import PROVIDERS
from tests.running import PATIENCE_SECONDS, free_port
from tests.wirelevel import Headers, HttpMessage, Line, RawUpstream, answer, chunk, chunked_head, connected, request

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

CHAT = b"/v1/chat/completions"
BODY = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
COMPLETION = b'{"choices":[{"message":{"role":"assistant","content":"hello"}}]}'
EVENT = b'data: {"choices":[{"delta":{"content":"word "}}]}\n\n'
DONE = b"data: [DONE]\n\n"
TEAM = {"pk-team": KeyPolicy(name="team", key_env="TEAM"), "pk-other": KeyPolicy(name="other", key_env="OTHER")}


@pytest.fixture
def pipeline() -> ScriptedPipeline:
    return ScriptedPipeline()


@pytest.fixture
async def upstream() -> AsyncIterator[RawUpstream]:
    async with RawUpstream() as running:
        yield running


@pytest.fixture
def port(upstream: RawUpstream, pipeline: ScriptedPipeline) -> Iterator[int]:
    with edge([{"url": upstream.url}], pipeline) as running:
        yield running


@asynccontextmanager
async def asked(port: int, asking: bytes) -> AsyncIterator[Line]:
    async with connected(port) as line:
        await line.send(asking)
        yield line


async def told(port: int, asking: bytes, bodiless: bool = False) -> HttpMessage:
    """One request and its whole answer."""
    async with asked(port, asking) as line:
        return await line.message(bodiless)


def error(message: HttpMessage) -> Json:
    assert message.values(b"content-type") == [b"application/json"]
    body = orjson.loads(message.body)
    assert body.keys() == {"error"} and body["error"].keys() == {"message", "type", "param", "code"}
    assert body["error"]["param"] is None
    return dict(body["error"])


async def patiently(event: asyncio.Event) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        await event.wait()


# --- everything passes ---------------------------------------------------------------------------


@pytest.mark.parametrize("method", [b"GET", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS", b"PROPFIND", b"PURGE"])
async def test_every_method_and_target_reaches_the_upstream_as_it_is(
    upstream: RawUpstream, port: int, method: bytes
) -> None:
    for target in (b"/v1/models", b"/v1/chat/completions/x?y=1", b"/v1/a%2Fb?q=%2F+a&&b=%zz&c", b"/"):
        got = await told(port, request(target, method=method))
        assert (got.status, got.body) == (200, b"{}")
        assert upstream.requests[-1].first == b"%s %s HTTP/1.1" % (method, target)


@pytest.mark.parametrize("target", [b"/", CHAT])
async def test_a_probe_with_head_passes(upstream: RawUpstream, port: int, target: bytes) -> None:
    async def script(received: HttpMessage, line: Line) -> None:
        await line.send(b"HTTP/1.1 405 No\r\nContent-Length: 77\r\nAllow: POST\r\n\r\n")

    upstream.script = script
    async with asked(port, request(target, method=b"HEAD") * 2) as line:
        for _ in range(2):
            got = await line.message(bodiless=True)
            assert (got.status, got.values(b"content-length"), got.values(b"allow")) == (405, [b"77"], [b"POST"])


async def test_headers_pass_both_ways(upstream: RawUpstream, port: int) -> None:
    given = [(b"x-codex-turn", b"1"), (b"authorization", b"Bearer sk-client"), (b"accept-encoding", b"br")]
    sent_back = [(b"Set-Cookie", b"a=1"), (b"x-request-id", b"7"), (b"Set-Cookie", b"b=2"), (b"Server", b"them")]

    async def script(received: HttpMessage, line: Line) -> None:
        await line.send(answer(b"ok", headers=sent_back))

    upstream.script = script
    got = await told(port, request(b"/v1/models", method=b"GET", headers=given))
    assert upstream.requests[0].headers[1:] == given
    assert [(name.lower(), value) for name, value in got.headers] == [
        *((name.lower(), value) for name, value in sent_back),
        (b"content-length", b"2"),
    ]


async def test_only_a_memory_endpoint_is_prepared(upstream: RawUpstream, port: int, pipeline: ScriptedPipeline) -> None:
    for asking in (
        request(b"/v1/embeddings", BODY),
        request(b"/v1/responses/resp_1/cancel", BODY),
        request(b"/v1/messages/count_tokens?beta=true", BODY),
        request(CHAT, method=b"GET"),
    ):
        assert NOTE not in (await told(port, asking)).headers
    assert pipeline.prepared == []
    assert NOTE in (await told(port, request(CHAT + b"?x=1", BODY))).headers
    assert [body for _, body in pipeline.prepared] == [BODY]


async def test_what_memory_says_is_added_to_the_answer_and_never_to_the_request(
    upstream: RawUpstream, port: int, pipeline: ScriptedPipeline
) -> None:
    got = await told(port, request(CHAT, BODY, headers=[(b"x-palimpsest-user", b"ann")]))
    assert got.values(b"x-palimpsest-note") == [b"scripted"]
    assert (b"x-palimpsest-user", b"ann") in pipeline.prepared[0][0]
    assert not any(name.startswith(b"x-palimpsest") for name in upstream.requests[0].names)
    assert upstream.requests[0].body == BODY


@pytest.mark.parametrize(
    ("encoding", "pack"), [(b"gzip", gzip.compress), (b"br", brotli.compress), (b"zstd", zstd.compress)]
)
async def test_a_compressed_body_is_read_and_loses_its_encoding_only_where_it_is_rewritten(
    upstream: RawUpstream, port: int, pipeline: ScriptedPipeline, encoding: bytes, pack: Callable[[bytes], bytes]
) -> None:
    encoded = [(b"content-encoding", encoding), (b"content-type", b"application/json")]
    packed = pack(BODY)  # once: gzip tells the time
    await told(port, request(CHAT, packed, headers=encoded))
    assert pipeline.prepared[0][1] == BODY
    assert upstream.requests[0].body == packed
    assert upstream.requests[0].values(b"content-encoding") == [encoding]
    pipeline.body = BODY + b" "
    await told(port, request(CHAT, packed, headers=encoded))
    assert upstream.requests[1].body == BODY + b" "
    assert upstream.requests[1].values(b"content-length") == [b"%d" % len(BODY + b" ")]
    assert upstream.requests[1].values(b"content-encoding") == []


async def test_what_decodes_to_more_than_memory_reads_passes_as_it_was_sent(
    upstream: RawUpstream, pipeline: ScriptedPipeline
) -> None:
    bomb, encoded = gzip.compress(bytes(10_000_000)), [(b"content-encoding", b"gzip")]
    with edge([{"url": upstream.url}], pipeline, limit_bytes=1_000_000) as port:
        assert NOTE in (await told(port, request(CHAT, bomb, headers=encoded))).headers
    assert [body for _, body in pipeline.prepared] == [None]
    assert (upstream.requests[0].body, upstream.requests[0].values(b"content-encoding")) == (bomb, [b"gzip"])


@pytest.mark.parametrize("target", [CHAT, b"/v1/embeddings"])
async def test_where_the_model_decides_what_cannot_be_read_is_refused(
    upstream: RawUpstream, pipeline: ScriptedPipeline, target: bytes
) -> None:
    encoded = [(b"content-encoding", b"gzip"), (b"content-type", b"application/json")]
    with edge([{"url": upstream.url, "models": ["gpt-*"]}], pipeline, limit_bytes=1_000_000) as port:
        got = await told(port, request(target, gzip.compress(bytes(10_000_000)), headers=encoded))
    assert (got.status, error(got)["code"]) == (413, "request_too_large")
    assert "32 MiB" in error(got)["message"]
    assert (upstream.requests, pipeline.prepared) == ([], [])


class Adding(ScriptedPipeline):
    """Adds to every request, and takes it out again where that is too long."""

    async def prepare(self, request: ReceivedRequest, wire: Wire, arrived: float | None = None) -> Prepared:
        prepared = await super().prepare(request, wire)
        bare = replace(prepared, body=b"", headers=((b"x-palimpsest-note", b"too-long"),))

        async def without(_: TooLong) -> Prepared:
            return bare

        return replace(prepared, body=(request.body or b"") + b" ", without=without)


async def test_request_that_is_too_long_with_what_was_added_goes_once_more_as_the_client_sent_it(
    upstream: RawUpstream,
) -> None:
    encoded = [(b"content-encoding", b"gzip"), (b"content-type", b"application/json")]
    packed = gzip.compress(BODY)

    async def script(received: HttpMessage, line: Line) -> None:
        if received.body == packed:
            await line.send(answer(COMPLETION))
        else:
            await line.send(answer(PROVIDERS["openai"].said(9, 2048), status=b"400 Bad Request"))

    upstream.script = script
    pipeline = Adding()
    with edge([{"url": upstream.url}], pipeline) as port:
        got = await told(port, request(CHAT, packed, headers=encoded))
    assert (got.status, got.body, got.values(b"x-palimpsest-note")) == (200, COMPLETION, [b"too-long"])
    assert [sent.body for sent in upstream.requests] == [BODY + b" ", packed]
    assert upstream.requests[1].values(b"content-encoding") == [b"gzip"]
    assert await pipeline.endings() == [Ending.COMPLETE]


class Watched(bytes):
    """A body that says when nobody holds it any more."""

    gone: ClassVar[threading.Event]

    def __del__(self) -> None:
        self.gone.set()


class Rewriting(ScriptedPipeline):
    """Forwards a watched body, of which it keeps nothing."""

    async def prepare(self, request: ReceivedRequest, wire: Wire, arrived: float | None = None) -> Prepared:
        return Prepared(Watched(BODY + b" "), (NOTE,))


async def test_a_body_is_not_kept_while_its_answer_is_awaited(upstream: RawUpstream) -> None:
    Watched.gone = threading.Event()
    permit = asyncio.Event()

    async def script(_: HttpMessage, line: Line) -> None:
        await line.send(chunked_head() + chunk(EVENT))
        await patiently(permit)
        await line.send(chunk(DONE) + chunk(b""))

    upstream.script = script
    with edge([{"url": upstream.url}], Rewriting()) as port:
        async with asked(port, request(CHAT, BODY)) as line:
            await line.head()
            assert await line.piece() == EVENT
            assert await asyncio.to_thread(Watched.gone.wait, PATIENCE_SECONDS)
            permit.set()
            assert await line.body() == DONE
    assert upstream.requests[0].body == BODY + b" "


@pytest.mark.parametrize("target", [CHAT, b"/v1/files"])
async def test_a_body_of_20_megabytes_arrives_intact(upstream: RawUpstream, port: int, target: bytes) -> None:
    body = bytes(range(256)) * (20_000_000 // 256)
    assert (await told(port, request(target, body))).status == 200
    assert upstream.requests[0].body == body


async def test_a_chunked_body_arrives_intact(upstream: RawUpstream, port: int) -> None:
    for target in (CHAT, b"/v1/files"):
        head = request(target, headers=[(b"transfer-encoding", b"chunked")])
        await told(port, head + chunk(BODY[:10]) + chunk(BODY[10:]) + chunk(b""))
        assert upstream.requests[-1].body == BODY


@pytest.mark.parametrize("body", [b"", b"\xff\x00 not json", b"[" * 1000, b'{"messages": 7}'])
async def test_what_is_no_chat_request_passes_untouched(upstream: RawUpstream, port: int, body: bytes) -> None:
    assert (await told(port, request(CHAT, body))).status == 200
    assert upstream.requests[0].body == body


async def test_compressed_answers_pass_byte_for_byte(
    upstream: RawUpstream, port: int, pipeline: ScriptedPipeline
) -> None:
    body = gzip.compress(COMPLETION)

    async def script(received: HttpMessage, line: Line) -> None:
        await line.send(answer(body, headers=[(b"Content-Encoding", b"gzip")]))

    upstream.script = script
    got = await told(port, request(CHAT, BODY))
    assert (got.body, got.values(b"content-encoding")) == (body, [b"gzip"])
    assert pipeline.listeners[0].heard == body


@pytest.mark.parametrize("status", [b"301 Moved", b"400 Bad Request", b"429 Too Many Requests", b"503 Busy"])
async def test_the_upstreams_own_word_is_passed_on_and_a_refusal_is_told(
    upstream: RawUpstream, port: int, pipeline: ScriptedPipeline, status: bytes
) -> None:
    async def script(received: HttpMessage, line: Line) -> None:
        await line.send(answer(b'{"error": "theirs"}', status, [(b"Location", b"/x"), (b"retry-after", b"3")]))

    upstream.script = script
    got = await told(port, request(CHAT, BODY))
    assert (got.status, got.body) == (int(status[:3]), b'{"error": "theirs"}')
    assert got.values(b"retry-after") == [b"3"] and NOTE in got.headers
    assert pipeline.listeners[0].status == got.status
    assert await pipeline.endings() == [Ending.COMPLETE if got.status == 301 else Ending.REFUSED]


# --- streams -------------------------------------------------------------------------------------


@pytest.mark.parametrize("content_type", [b"text/event-stream", b"application/json"])
async def test_each_chunk_arrives_before_the_next_is_sent(
    upstream: RawUpstream, port: int, pipeline: ScriptedPipeline, content_type: bytes
) -> None:
    received = asyncio.Event()

    async def script(_: HttpMessage, line: Line) -> None:
        await line.send(chunked_head(content_type))
        for piece in (b"data: fir", b"st\n", b"\n", EVENT, b""):
            await patiently(received)
            received.clear()
            await line.send(chunk(piece))

    upstream.script = script
    async with asked(port, request(CHAT, BODY)) as line:
        assert (await line.head()).status == 200
        for expected in (b"data: fir", b"st\n", b"\n", EVENT, b""):
            received.set()
            assert await line.piece() == expected
    assert await pipeline.endings() == [Ending.COMPLETE]


async def test_pieces_of_an_upload_are_passed_on_before_the_next_is_sent(upstream: RawUpstream, port: int) -> None:
    arrived: asyncio.Queue[bytes] = asyncio.Queue()

    async def script(_: HttpMessage, line: Line) -> None:
        while piece := await line.piece():
            arrived.put_nowait(piece)
        await line.send(answer(b"stored"))

    upstream.script, upstream.reads_bodies = script, False
    async with asked(port, request(b"/v1/files", headers=[(b"transfer-encoding", b"chunked")])) as line:
        for piece in (b"one", b"two", b"three"):
            await line.send(chunk(piece))
            async with asyncio.timeout(PATIENCE_SECONDS):
                assert await arrived.get() == piece
        await line.send(chunk(b""))
        assert (await line.message()).body == b"stored"


async def test_the_terminal_event_waits_for_the_commit_and_nothing_before_it_does(
    upstream: RawUpstream, port: int, pipeline: ScriptedPipeline
) -> None:
    async def script(_: HttpMessage, line: Line) -> None:
        await line.send(chunked_head() + chunk(EVENT) + chunk(EVENT + DONE) + chunk(b""))

    upstream.script = script
    pipeline.permit = threading.Event()
    async with asked(port, request(CHAT, BODY)) as line:
        await line.head()
        before = b""
        while len(before) < len(EVENT * 2):  # however the network cut it
            before += await line.piece()
        assert before == EVENT * 2
        assert await pipeline.endings() == [Ending.COMPLETE]  # told, not yet committed
        last = asyncio.create_task(line.piece())
        assert (await asyncio.wait([last], timeout=0.1))[1], "the terminal event was sent before the commit"
        pipeline.permit.set()
        assert await last + await line.body() == DONE
    assert pipeline.listeners[0].endings == [Ending.COMPLETE]


async def test_the_terminal_event_does_not_wait_for_an_upstream_that_keeps_the_connection_open(
    upstream: RawUpstream, port: int, pipeline: ScriptedPipeline
) -> None:
    received = asyncio.Event()

    async def script(_: HttpMessage, line: Line) -> None:
        await line.send(chunked_head() + chunk(EVENT + DONE))
        await patiently(received)
        await line.send(chunk(b": bye\n\n") + chunk(b""))

    upstream.script = script
    async with asked(port, request(CHAT, BODY)) as line:
        await line.head()
        assert [await line.piece(), await line.piece()] == [EVENT, DONE]
        received.set()
        assert await line.body() == b": bye\n\n"
    assert await pipeline.endings() == [Ending.COMPLETE]


async def test_the_last_bytes_of_a_plain_answer_wait_for_the_commit(
    upstream: RawUpstream, port: int, pipeline: ScriptedPipeline
) -> None:
    async def script(_: HttpMessage, line: Line) -> None:
        await line.send(answer(COMPLETION))

    upstream.script = script
    pipeline.permit = threading.Event()
    async with asked(port, request(CHAT, BODY)) as line:
        await line.head()
        body = asyncio.create_task(line.body())
        assert await pipeline.endings() == [Ending.COMPLETE]
        assert (await asyncio.wait([body], timeout=0.1))[1], "the answer was complete before the commit"
        pipeline.permit.set()
        assert await body == COMPLETION


# --- somebody leaves, something breaks -----------------------------------------------------------


async def test_a_client_that_leaves_in_mid_stream_ends_the_upstream_request(
    upstream: RawUpstream, port: int, pipeline: ScriptedPipeline
) -> None:
    gone = asyncio.Event()

    async def script(_: HttpMessage, line: Line) -> None:
        await line.send(chunked_head() + chunk(EVENT))
        await line.closed()
        gone.set()

    upstream.script = script
    async with asked(port, request(CHAT, BODY)) as line:
        await line.head()
        await line.piece()
    await patiently(gone)
    assert await pipeline.endings() == [Ending.CLIENT_GONE]
    assert pipeline.listeners[0].heard == EVENT


@pytest.mark.parametrize("size_bytes", [0, 300_000], ids=["small", "large"])  # uvicorn reads no more behind a large one
async def test_a_client_that_leaves_before_the_answer_ends_the_upstream_request(
    upstream: RawUpstream, port: int, pipeline: ScriptedPipeline, size_bytes: int
) -> None:
    asking, gone = asyncio.Event(), asyncio.Event()

    async def script(_: HttpMessage, line: Line) -> None:
        asking.set()
        await line.closed()
        gone.set()

    upstream.script = script
    async with asked(port, request(CHAT, BODY + b" " * size_bytes)):
        await patiently(asking)
    await patiently(gone)
    assert await pipeline.endings() == [Ending.CLIENT_GONE]
    assert pipeline.listeners[0].status == 0


async def test_a_client_that_leaves_while_the_commit_is_awaited_has_a_complete_answer(
    upstream: RawUpstream, port: int, pipeline: ScriptedPipeline
) -> None:
    async def script(_: HttpMessage, line: Line) -> None:
        await line.send(answer(COMPLETION))

    upstream.script = script
    pipeline.permit = threading.Event()
    async with asked(port, request(CHAT, BODY)) as line:
        await line.head()
        assert await pipeline.endings() == [Ending.COMPLETE]
    pipeline.permit.set()
    assert (await told(port, request(b"/v1/models", method=b"GET"))).status == 200
    assert pipeline.listeners[0].endings == [Ending.COMPLETE]


async def test_a_client_that_leaves_in_its_own_body_is_not_prepared(
    upstream: RawUpstream, port: int, pipeline: ScriptedPipeline
) -> None:
    async with asked(port, request(CHAT, headers=[(b"content-length", b"100")]) + b"half"):
        pass
    assert (await told(port, request(b"/v1/models", method=b"GET"))).status == 200
    assert (pipeline.prepared, pipeline.listeners, len(upstream.requests)) == ([], [], 1)


async def test_a_client_that_leaves_in_mid_upload_ends_the_upstream_request(upstream: RawUpstream, port: int) -> None:
    asking, gone = asyncio.Event(), asyncio.Event()

    async def script(_: HttpMessage, line: Line) -> None:
        asking.set()
        assert await line.closed() == b"half"
        gone.set()

    upstream.script, upstream.reads_bodies = script, False
    async with asked(port, request(b"/v1/files", headers=[(b"content-length", b"100")]) + b"half"):
        await patiently(asking)
    await patiently(gone)


@pytest.mark.parametrize(
    "head", [chunked_head() + chunk(EVENT), b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n" + EVENT],
    ids=["chunked", "with a length"],
)  # fmt: skip
async def test_an_upstream_that_breaks_off_breaks_the_clients_answer_too(
    upstream: RawUpstream, port: int, pipeline: ScriptedPipeline, head: bytes
) -> None:
    async def script(_: HttpMessage, line: Line) -> None:
        await line.send(head)
        await line.finish()

    upstream.script = script
    async with asked(port, request(CHAT, BODY)) as line:
        await line.head()
        assert EVENT in await line.exactly(len(EVENT) + (6 if b"chunked" in head else 0))
        with pytest.raises(asyncio.IncompleteReadError):
            await line.body()
    assert await pipeline.endings() == [Ending.UPSTREAM_BROKE]
    assert pipeline.listeners[0].heard == EVENT


async def test_garbage_is_answered_in_the_upstreams_place(
    upstream: RawUpstream, port: int, pipeline: ScriptedPipeline
) -> None:
    async def script(_: HttpMessage, line: Line) -> None:
        await line.send(b"\x15\x03\x01 garbage \r\n\r\n")
        await line.finish()

    upstream.script = script
    got = await told(port, request(CHAT, BODY))
    assert (got.status, error(got)["code"]) == (502, "upstream_unreachable")
    assert NOTE in got.headers
    assert await pipeline.endings() == [Ending.UPSTREAM_BROKE]


async def test_a_dead_upstream_is_a_502_in_the_shape_of_an_error(pipeline: ScriptedPipeline) -> None:
    with edge([{"url": f"http://127.0.0.1:{free_port()}/v1", "name": "home"}], pipeline) as port:
        got = await told(port, request(CHAT, BODY))
    said = error(got)
    assert (got.status, said["code"], said["type"]) == (502, "upstream_unreachable", "api_error")
    assert "'home'" in said["message"]
    assert NOTE in got.headers
    assert await pipeline.endings() == [Ending.UPSTREAM_BROKE]
    assert pipeline.listeners[0].status == 0


async def test_a_slow_upstream_is_a_504_in_the_shape_of_an_error(
    upstream: RawUpstream, pipeline: ScriptedPipeline
) -> None:
    async def script(_: HttpMessage, line: Line) -> None:
        await line.closed()

    upstream.script = script
    with edge([{"url": upstream.url, "silence_timeout_seconds": 0.05}], pipeline) as port:
        got = await told(port, request(CHAT, BODY))
    assert (got.status, error(got)["code"]) == (504, "upstream_timeout")
    assert await pipeline.endings() == [Ending.UPSTREAM_BROKE]


async def test_after_an_upstream_error_the_client_may_ask_again_on_its_connection(
    upstream: RawUpstream, port: int
) -> None:
    async def broken(_: HttpMessage, line: Line) -> None:
        line.cut()

    async def well(_: HttpMessage, line: Line) -> None:
        await line.send(answer(COMPLETION))

    upstream.script = broken
    async with asked(port, request(CHAT, BODY)) as line:
        assert (await line.message()).status == 502
        upstream.script = well
        await line.send(request(CHAT, BODY))
        assert (await line.message()).body == COMPLETION


# --- what we refuse ------------------------------------------------------------------------------


STRANGE = [
    b"//elsewhere/v1/models",
    b"/v1//models",
    b"/v1/../admin",
    b"/v1/./models",
    b"/v1/..",
    b"/v1/%2e%2e/admin",
    b"/v1/.%2E/admin",
    b"/v1/..%2fadmin",
    b"/v1/%2f%2e%2e%2fadmin",
    b"/v1/..;/admin",
    b"/v1\\..\\admin",
    b"/v1/%5c..%5cadmin",
    b"http://elsewhere/v1/models",
    b"http://elsewhere:99/v1/chat/completions",
]
ORDINARY = [b"/v1/models/a..b", b"/v1/.well-known", b"/v1/a%2Fb", b"/v1/x?u=http://a//b/../c"]


async def test_a_target_that_could_be_read_in_two_ways_is_refused(upstream: RawUpstream, port: int) -> None:
    for target in STRANGE:
        got = await told(port, request(target, method=b"GET"))
        assert (target, got.status, error(got)["code"]) == (target, 400, "invalid_path")
    assert upstream.requests == []


async def test_a_target_that_only_looks_strange_passes(upstream: RawUpstream, port: int) -> None:
    for target in ORDINARY:
        assert (await told(port, request(target, method=b"GET"))).status == 200
    assert [received.first.split()[1] for received in upstream.requests] == ORDINARY


@pytest.mark.parametrize("target", [CHAT, b"/v1/files"])
@pytest.mark.parametrize("framing", ["declared", "chunked"])
async def test_only_a_body_above_the_limit_is_too_large(
    upstream: RawUpstream, pipeline: ScriptedPipeline, target: bytes, framing: str
) -> None:
    def asking(size: int) -> bytes:
        if framing == "declared":
            return request(target, b"x" * size)
        pieces = chunk(b"x" * 600) + chunk(b"x" * (size - 600)) + chunk(b"")
        return request(target, headers=[(b"transfer-encoding", b"chunked")]) + pieces

    with edge([{"url": upstream.url}], pipeline, limit_bytes=1000) as port:
        assert (await told(port, asking(1000))).status == 200
        async with asked(port, asking(1001)) as line:
            got = await line.message()
            assert (got.status, error(got)["code"]) == (413, "request_too_large")
            await line.send(request(b"/v1/models", method=b"GET"))  # what was too large is not read as a request
            assert (await line.message()).status == 200
    assert len(pipeline.prepared) == (target == CHAT)


KEYED: list[Headers] = [
    [(b"authorization", b"Bearer pk-team")],
    [(b"authorization", b"bearer pk-other")],
    [(b"x-api-key", b"pk-team")],
    [(b"authorization", b"Bearer sk-own"), (b"api-key", b"pk-team")],
]
UNKEYED: list[Headers] = [
    [],
    [(b"authorization", b"Bearer pk-tea")],
    [(b"authorization", b"Bearer ")],
    [(b"authorization", b"pk-team extra")],
    [(b"x-other", b"pk-team")],
]


async def test_with_keys_those_who_have_one_may_pass_and_no_credential_of_theirs_does(upstream: RawUpstream) -> None:
    with edge([{"url": upstream.url, "auth": "held", "key_env": "HELD"}], keys=TEAM) as port:
        for headers in KEYED:
            assert (await told(port, request(CHAT, BODY, headers=headers))).status == 200
            received = upstream.requests[-1]
            assert received.values(b"authorization") == [b"Bearer sk-held"]
            assert not any(b"pk-" in value or b"sk-own" in value for _, value in received.headers)


async def test_with_keys_strangers_are_refused(upstream: RawUpstream, pipeline: ScriptedPipeline) -> None:
    with edge([{"url": upstream.url}], pipeline, keys=TEAM) as port:
        for headers in UNKEYED:
            for target in (CHAT, b"/v1/models", b"/"):
                got = await told(port, request(target, BODY, headers=headers))
                assert (got.status, error(got)["code"]) == (401, "invalid_api_key")
    assert (upstream.requests, pipeline.prepared) == ([], [])


# --- several upstreams ---------------------------------------------------------------------------


async def test_the_model_chooses_the_upstream(upstream: RawUpstream, pipeline: ScriptedPipeline) -> None:
    async with RawUpstream() as other:
        with edge(
            [
                {"name": "one", "url": upstream.url, "models": ["gpt-*"]},
                {"name": "other", "url": other.url, "models": ["claude-*"]},
            ],
            pipeline,
        ) as port:
            json = [(b"content-type", b"application/json; charset=utf-8")]
            for asking, goes_to in (
                (request(b"/v1/embeddings", b'{"model":"claude-3"}', headers=json), other),
                (request(b"/v1/embeddings", b'{"model":"gpt-4o"}', headers=json), upstream),
                (request(b"/v1/embeddings", b"not json", headers=json), upstream),
                (request(b"/v1/embeddings", b"[]", headers=json), upstream),
                (request(b"/v1/files", method=b"GET"), upstream),
                (request(b"/v1/realtime?model=claude-3&x=1", method=b"GET"), other),
            ):
                before = len(goes_to.requests)
                assert (await told(port, asking)).status == 200
                assert len(goes_to.requests) == before + 1
            pipeline.model = "claude-3"
            assert (await told(port, request(CHAT, BODY))).status == 200
            assert len(other.requests) == 3


async def test_each_api_goes_to_its_own_upstream(upstream: RawUpstream) -> None:
    async with RawUpstream() as other:
        ways = [
            {"name": "one", "url": upstream.url, "wire": "openai"},
            {"name": "other", "url": other.url, "wire": "anthropic"},
        ]
        with edge(ways) as port:
            version = [(b"anthropic-version", b"2023-06-01")]
            for asking, goes_to in (
                (request(b"/v1/messages?beta=true", b'{"model":"m"}'), other),
                (request(b"/v1/models", method=b"GET", headers=version), other),
                (request(b"/v1/models", method=b"GET"), upstream),
                (request(b"/v1/responses", b'{"model":"claude-3"}'), upstream),
            ):
                before = len(goes_to.requests)
                assert (await told(port, asking)).status == 200
                assert len(goes_to.requests) == before + 1


async def test_an_api_that_nobody_serves_is_not_found(upstream: RawUpstream) -> None:
    with edge([{"url": upstream.url, "wire": "openai"}]) as port:
        got = await told(port, request(b"/v1/messages", b"{}"))
    assert (got.status, upstream.requests) == (404, [])
    assert b"'/v1/messages'" in got.body


async def test_a_model_that_nobody_serves_is_not_found(upstream: RawUpstream, pipeline: ScriptedPipeline) -> None:
    pipeline.model = "claude-3"
    with edge([{"url": upstream.url, "models": ["gpt-*"]}], pipeline) as port:
        got = await told(port, request(CHAT, BODY))
    assert (got.status, error(got)["code"]) == (404, "model_not_found")
    assert "'claude-3'" in error(got)["message"]
    assert NOTE in got.headers
    assert (upstream.requests, await pipeline.endings()) == ([], [Ending.REFUSED])


class SlowToClose:
    """An answer that takes a while to be closed, as one of a library on another thread."""

    status = 200
    headers: RawHeaders = ()

    def __init__(self) -> None:
        self.closed: bool | None = None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield COMPLETION

    async def aclose(self) -> None:
        self.closed = False
        for _ in range(10):
            await asyncio.sleep(0)
        self.closed = True


class Sends:
    """The way to an upstream that answers with one thing."""

    def __init__(self, answer: SlowToClose) -> None:
        self.answer = answer

    async def send(self, model: str, method: str, target: str, headers: RawHeaders, body: Body) -> SlowToClose:
        return self.answer


async def test_client_that_has_the_whole_answer_interrupts_nothing(pipeline: ScriptedPipeline) -> None:
    """A server says that the client is gone as soon as the answer is complete."""
    answer, complete = SlowToClose(), asyncio.Event()
    asking = iter([{"type": "http.request", "body": BODY, "more_body": False}])

    async def receive() -> MutableMapping[str, Any]:
        for message in asking:
            return message
        await complete.wait()
        return {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            complete.set()

    routes = ProxyRoutes(Policy(), pipeline, Sends(answer), ProxyKeys({}))
    scope = {"method": "POST", "raw_path": CHAT, "path": CHAT.decode(), "query_string": b"", "headers": []}
    await routes({"type": "http", **scope}, receive, send)
    assert answer.closed is True
    assert await pipeline.endings() == [Ending.COMPLETE]


async def test_answers_are_counted_and_what_was_refused_here_is_none(upstream: RawUpstream) -> None:
    counted: list[int] = []
    with edge([{"url": upstream.url}], answered=counted.append) as port:
        await told(port, request(CHAT, BODY))
        await told(port, request(b"/v1//models", method=b"GET"))
    with edge([{"url": f"http://127.0.0.1:{free_port()}"}], answered=counted.append) as port:
        await told(port, request(CHAT, BODY))
    assert counted == [200, 502]
