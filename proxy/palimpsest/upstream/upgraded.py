"""A connection that the upstream has upgraded to another protocol, handed over with HTTP done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import aiohttp

from palimpsest.domain import RawHeaders

SWITCHING = 101
WEBSOCKET = [("connection", "Upgrade"), ("upgrade", "websocket")]  # headers of one hop: dropped, and said anew


def asks_to_switch(headers: RawHeaders) -> bool:
    """Whether a request asks for a WebSocket, the only protocol that is passed on; names in lower case."""
    asked = {name: value.lower() for name, value in headers if name in (b"connection", b"upgrade")}
    return asked.get(b"upgrade") == b"websocket" and b"upgrade" in asked.get(b"connection", b"")


class UpgradedAnswer:
    """An `UpstreamAnswer` without a body; the caller has its connection until `aclose`."""

    status = SWITCHING

    def __init__(self, response: aiohttp.ClientResponse, headers: RawHeaders) -> None:
        connection = response.connection
        assert connection is not None and connection.protocol is not None and connection.transport is not None
        self.headers = headers
        self.early = b""  # what the upstream said right behind its headers
        self.transport: asyncio.Transport = connection.transport
        self._response = response
        connection.protocol.set_parser(self, None)  # hands out what came, and no longer minds silence

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        """Called by aiohttp with data; returns that it is not the end and that nothing is left over."""
        self.early += data
        return False, b""

    def feed_eof(self) -> None:
        """Called by aiohttp at the end; the transport reports it as well."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        return
        yield b""

    async def aclose(self) -> None:
        self._response.close()
