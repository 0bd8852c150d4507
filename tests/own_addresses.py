"""
Providers' own addresses without their providers: `https://api.anthropic.com` leads to the scripted upstream.

Programs reach it through `HTTPS_PROXY`, a proxy of the network that speaks TLS itself, with certificates of an
authority that they are told to trust. What passes is not touched; every other host is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import trustme
from palimpsest.evaluation.scripted import ScriptedUpstream

HOSTS = ("api.anthropic.com", "api.openai.com")
CHUNK_BYTES = 1 << 16
ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
REFUSED = b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n"
TRUSTING = ("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
"""Where Node and Bun, OpenSSL and rustls, and requests look for authorities."""


class OwnAddresses:
    """The network as a client sees it; an async context manager."""

    def __init__(self, upstream: ScriptedUpstream, folder: Path) -> None:
        """
        Args:
            folder: for the authority's certificate.
        """
        authority = trustme.CA()
        self.certificate = folder / "authority.pem"
        authority.cert_pem.write_to_path(str(self.certificate))
        self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        authority.issue_cert(*HOSTS).configure_cert(self._tls)
        self._upstream = upstream
        self.port = 0
        self.refused: set[str] = set()
        self._open: set[asyncio.Task[object]] = set()

    def __repr__(self) -> str:
        return f"<OwnAddresses at 127.0.0.1:{self.port} [{len(self.refused)} refused]>"

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment of a program on this network."""
        url = f"http://127.0.0.1:{self.port}"
        return {"HTTPS_PROXY": url, "HTTP_PROXY": url, **dict.fromkeys(TRUSTING, str(self.certificate))}

    async def __aenter__(self) -> OwnAddresses:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        task.add_done_callback(self._open.discard)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError, ssl.SSLError):
            method, target, *_ = (await reader.readuntil(b"\r\n\r\n")).decode().split()
            host = target.rpartition(":")[0]
            if method == "CONNECT" and host in HOSTS:
                writer.write(ESTABLISHED)
                await writer.start_tls(self._tls)
                await self._join(reader, writer)
            else:
                self.refused.add(target)
                writer.write(REFUSED)
        writer.close()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, forth = await asyncio.open_connection("127.0.0.1", self._upstream.port)
        try:
            ways = [asyncio.create_task(_copy(reader, forth)), asyncio.create_task(_copy(back, writer))]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
        finally:
            forth.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK_BYTES):
            writer.write(data)
            await writer.drain()


@contextmanager
def own_addresses(upstream: ScriptedUpstream, folder: Path) -> Iterator[OwnAddresses]:
    """The network on a thread of its own, for programs that are waited for."""
    network = OwnAddresses(upstream, folder)
    up, over = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        async with network:
            up.set()
            await over.wait()

    def work() -> None:
        try:
            loop.run_until_complete(serve())
        finally:
            loop.close()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert up.wait(60)
        yield network
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
