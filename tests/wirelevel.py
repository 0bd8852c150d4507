"""HTTP by hand, for tests of single bytes and closed connections: a provider and a client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from tests.running import PATIENCE_SECONDS

Headers = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class HttpMessage:
    """One request or answer: its first line, headers in order, body without its framing."""

    first: bytes
    headers: Headers
    body: bytes = b""

    def values(self, name: bytes) -> list[bytes]:
        return [value for key, value in self.headers if key.lower() == name]

    @property
    def names(self) -> set[bytes]:
        return {key.lower() for key, _ in self.headers}

    @property
    def status(self) -> int:
        return int(self.first.split()[1])


class Line:
    """One end of a connection: sends bytes as they are, reads messages piece by piece."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._framing = b""

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def head(self) -> HttpMessage:
        """First line and headers of the next message. Raises `IncompleteReadError` when there is none."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            first, *lines = (await self._reader.readuntil(b"\r\n\r\n"))[:-4].split(b"\r\n")
        pairs = (line.partition(b": ") for line in lines)
        head = HttpMessage(first, [(name, value) for name, _, value in pairs])
        self._framing = (head.values(b"transfer-encoding") or head.values(b"content-length") or [b"0"])[0]
        return head

    async def piece(self) -> bytes:
        """The next chunk of a chunked body, b"" at its end."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            size = int(await self._reader.readuntil(b"\r\n"), 16)
            return (await self._reader.readexactly(size + 2))[:-2]

    async def exactly(self, size: int) -> bytes:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self._reader.readexactly(size)

    async def body(self) -> bytes:
        """All of it. Raises `IncompleteReadError` when it breaks off."""
        if self._framing != b"chunked":
            return await self.exactly(int(self._framing))
        pieces = []
        while piece := await self.piece():
            pieces.append(piece)
        return b"".join(pieces)

    async def message(self, bodiless: bool = False) -> HttpMessage:
        head = await self.head()
        return HttpMessage(head.first, head.headers, b"" if bodiless else await self.body())

    async def closed(self) -> bytes:
        """Wait until the other end closes; what it still said."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            try:
                return await self._reader.read()
            except ConnectionError:
                return b""

    def cut(self) -> None:
        """Close at once."""
        self._writer.transport.abort()

    async def finish(self) -> None:
        self._writer.close()


Script = Callable[[HttpMessage, Line], Awaitable[None]]
"""What the provider does with one request; its body has been read unless the script is `reads_itself`."""


def answer(body: bytes = b"{}", status: bytes = b"200 OK", headers: Headers | None = None) -> bytes:
    """A whole answer with its length."""
    lines = [b"%s: %s\r\n" % pair for pair in [*(headers or []), (b"Content-Length", b"%d" % len(body))]]
    return b"HTTP/1.1 %s\r\n%s\r\n%s" % (status, b"".join(lines), body)


def chunked_head(content_type: bytes = b"text/event-stream") -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n" % content_type


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


async def plainly(request: HttpMessage, line: Line) -> None:
    await line.send(answer())


@dataclass
class RawUpstream:
    """A provider whose every byte the test decides."""

    script: Script = plainly
    reads_bodies: bool = True
    requests: list[HttpMessage] = field(default_factory=list)
    connections: int = 0
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 20)
        self.port = self._server.sockets[0].getsockname()[1]
        self._serving: dict[Line, asyncio.Task[None] | None] = {}
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        serving = [task for task in self._serving.values() if task is not None]
        for line in list(self._serving):
            line.cut()
        await asyncio.gather(*serving)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = Line(reader, writer)
        self._serving[line] = asyncio.current_task()
        self.connections += 1
        try:
            while True:
                request = await (line.message() if self.reads_bodies else line.head())
                self.requests.append(request)
                await self.script(request, line)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            del self._serving[line]
            writer.close()


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[Line]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 26)
    line = Line(reader, writer)
    try:
        yield line
    finally:
        line.cut()


def request(target: bytes, body: bytes = b"", method: bytes = b"POST", headers: Headers | None = None) -> bytes:
    """A whole request with its length."""
    lines = [(b"host", b"proxy.local"), *(headers or [])]
    if body:
        lines.append((b"content-length", b"%d" % len(body)))
    return b"%s %s HTTP/1.1\r\n%s\r\n%s" % (method, target, b"".join(b"%s: %s\r\n" % pair for pair in lines), body)
