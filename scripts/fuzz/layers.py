"""
How much of the proxy a fuzzed body goes through: the wires alone, the routes with memory, or all of it over sockets.

Memory only reads here (`x-palimpsest-memory: read-only`): each request finds the conversations as they were told.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import orjson
from palimpsest.core.caller.client_table import read_signals
from palimpsest.core.caller.proxy_keys import ProxyKeys
from palimpsest.domain import Chat, Insertion, RawHeaders
from palimpsest.domain.errors import WireError
from palimpsest.domain.ports import Body
from palimpsest.edge.proxy_routes import ProxyRoutes
from palimpsest.features.registry import FEATURES
from palimpsest.memory.service import MemoryService
from palimpsest.pipeline import Pipeline
from palimpsest.settings.load import read_yaml, shipped
from palimpsest.settings.policy import Policy
from palimpsest.telemetry.metrics import Metrics
from palimpsest.wire.layout import known_body, layout_of
from palimpsest.wire.registry import WIRES

from scripts.fuzz.bodies import PATHS, Sent, Talk, plainly_written
from scripts.fuzz.comparison import ADDED, SAME, difference, without_blocks
from tests.running import Proxy, until
from tests.wirelevel import HttpMessage, Line, RawUpstream, answer, chunk, connected, request

SECRET = b"f" * 32
MARK = b"x-fuzz"  # a header with the number of a request
READS = (b"x-palimpsest-memory", b"read-only")
PATIENT_MS = 60_000.0
AT_ONCE = 8
BLOCK = '<palimpsest-memory kind="recall">\nQuoted:\nuser: said "before" \\ 漢\n> more\n</palimpsest-memory>'
FRAMED_IN_CHUNKS = 0.3  # share of requests over sockets without a length


class Result(NamedTuple):
    """What became of a request, as `comparison.difference` says it, and what the provider was sent."""

    told: str
    forwarded: bytes = b""


class Layer(Protocol):
    """One way through; an async context manager."""

    async def result(self, sent: Sent) -> Result:
        """What became of a request."""


class Wires:
    """`wire` alone: parse, with what was parsed before, and render with a block in any message of the user's."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._before: dict[str, Chat] = {}

    async def result(self, sent: Sent) -> Result:
        wire, body = WIRES[PATHS[sent.wire]], sent.plain
        try:
            before = self._before.get(sent.wire)
            known = before and known_body(body, before, wire.LISTED, wire.FOLDS)
            chat = wire.parse(body, known or None)
            if known is None:
                chat = replace(chat, layout=layout_of(body, chat.raw, wire.LISTED))
            if chat.layout is not None and self._random.random() < 0.5:
                self._before[sent.wire] = chat
            users = [at for at, message in enumerate(chat.messages) if message.role == "user"]
            chosen = sorted(self._random.sample(users, min(len(users), self._random.choice((0, 1, 1, 2)))))
            rendered = wire.render(chat, [Insertion(at, BLOCK) for at in chosen])
        except WireError:
            return Result(SAME)  # it is passed on untouched
        if rendered == body:
            return Result(SAME if not chosen else "a block was to be added, and was not")
        return Result(ADDED if without_blocks(rendered, body) else "the body differs by more than blocks", rendered)


class _Answer:
    """An `UpstreamAnswer` that is there at once."""

    status = 200
    headers: RawHeaders = ((b"content-type", b"application/json"),)

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._body

    async def aclose(self) -> None:
        pass


class Routes:
    """`ProxyRoutes` with real memory, in this process; the provider keeps what it is sent."""

    def __init__(self, folder: Path, talks: Sequence[Talk]) -> None:
        there: dict[str, Any] = {"download": "never", "cache": folder / "no model"}
        memory = {"deadline_ms": PATIENT_MS}
        policy = Policy.model_validate({"data": folder / "data", "memory": memory, "model": there})
        metrics, keys = Metrics(), ProxyKeys({})
        self._memory = MemoryService(policy, SECRET, metrics, sources=FEATURES)
        signals = read_signals(read_yaml(shipped("clients.yaml")))
        self._pipeline = Pipeline(policy, signals, SECRET, keys, self._memory, metrics, time.time)
        self._routes = ProxyRoutes(policy, self._pipeline, self, keys)
        self._talks = talks
        self._text = ""  # of the next answer
        self._received: dict[bytes, tuple[RawHeaders, bytes]] = {}
        self._numbers = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Layer]:
        try:
            await self._memory.open()
            for talk, body, text in _told(self._talks):
                self._text = text
                await self._ask(PATHS[talk.wire], talk.headers(), body)
            await asyncio.to_thread(until, lambda: not self._memory.archivist.backlog, "the archive to be idle")
            yield self
        finally:
            await self._pipeline.close()
            await self._memory.close()

    async def send(self, model: str, method: str, target: str, headers: RawHeaders, body: Body) -> _Answer:
        """The provider: implements `palimpsest.domain.ports.Sender`."""
        assert isinstance(body, bytes)
        self._received[_mark(headers)] = headers, body
        return _Answer(answer_of(target, self._text))

    async def result(self, sent: Sent) -> Result:
        self._numbers += 1
        mark = b"%d" % self._numbers
        await self._ask(PATHS[sent.wire], (*sent.headers, READS, (MARK, mark)), sent.body)
        if mark not in self._received:
            return Result("it never came to the provider")
        headers, forwarded = self._received.pop(mark)
        return Result(difference(sent.body, sent.headers, forwarded, headers), forwarded)

    async def _ask(self, path: str, headers: RawHeaders, body: bytes) -> None:
        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            pass

        scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b""}
        await self._routes({**scope, "headers": list(headers)}, receive, send)


class Sockets:
    """A running proxy between a client and a provider who write and read HTTP by hand."""

    def __init__(self, folder: Path, talks: Sequence[Talk], seed: int) -> None:
        self._folder, self._talks = folder, talks
        self._random = random.Random(seed)
        self._upstream = RawUpstream(script=self._answer)
        self._received: dict[bytes, HttpMessage] = {}
        self._text = ""
        self._numbers = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Layer]:
        async with self._upstream as upstream:
            settings = {
                "listen": {"allowed_hosts": ["proxy.local"]},  # what `request` names
                "model": {"cache": str(self._folder / "no model")},
            }
            proxy = Proxy(self._folder / "data", upstream.url, settings)
            await asyncio.to_thread(proxy.start)
            try:
                self._port = proxy.port
                for talk, body, text in _told(self._talks):
                    self._text = text
                    await self._ask(PATHS[talk.wire], talk.headers(), body)
                await asyncio.to_thread(proxy.settle, vectors=False)
                yield self
            finally:
                await asyncio.to_thread(proxy.close)

    async def result(self, sent: Sent) -> Result:
        self._numbers += 1
        mark = b"%d" % self._numbers
        status = await self._ask(PATHS[sent.wire], (*sent.headers, READS, (MARK, mark)), sent.body)
        if mark not in self._received:
            return Result(f"it never came to the provider; status {status}")
        received = self._received.pop(mark)
        return Result(difference(sent.body, sent.headers, received.body, tuple(received.headers)), received.body)

    async def _ask(self, path: str, headers: RawHeaders, body: bytes) -> int:
        async with connected(self._port) as line:
            if self._random.random() < FRAMED_IN_CHUNKS:
                framed = (*headers, (b"transfer-encoding", b"chunked"))
                await line.send(request(path.encode(), headers=[*framed]))
                for piece in self._pieces(body):
                    await line.send(chunk(piece))
                await line.send(chunk(b""))
            else:
                length = [] if body else [(b"content-length", b"0")]
                await line.send(request(path.encode(), body, headers=[*headers, *length]))
            return (await line.message()).status

    def _pieces(self, body: bytes) -> Iterator[bytes]:
        at = 0
        while at < len(body):
            size = self._random.randrange(1, len(body) + 1)
            yield body[at : at + size]
            at += size

    async def _answer(self, received: HttpMessage, line: Line) -> None:
        self._upstream.requests.clear()
        self._received[_mark(tuple(received.headers))] = received
        path = received.first.split()[1].decode()
        json_type = [(b"Content-Type", b"application/json")]
        await line.send(answer(answer_of(path, self._text), headers=json_type))


def _told(talks: Sequence[Talk]) -> Iterator[tuple[Talk, bytes, str]]:
    """Requests that tell the conversations, each with its answer: whole, then compacted, so that a block is added."""
    for talk in talks:
        *before, (_, last) = talk.messages
        yield talk, plainly_written(talk.body(before)), last
        yield talk, plainly_written(talk.body([*talk.compacted(), ("user", talk.asked)])), talk.answer


def _mark(headers: RawHeaders) -> bytes:
    return next((value for name, value in headers if name.lower() == MARK), b"")


def answer_of(path: str, text: str) -> bytes:
    """A whole answer as the provider of a wire gives it."""
    said: dict[str, Any]
    if path == PATHS["responses"]:
        message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
        said = {"id": "resp_1", "object": "response", "status": "completed", "output": [message]}
    elif path == PATHS["messages"]:
        said = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": text}]}
    else:
        said = {"choices": [{"index": 0, "message": {"role": "assistant", "content": text}}]}
    return orjson.dumps(said)
