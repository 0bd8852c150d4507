"""
The tunnel of a WebSocket: bytes copied both ways between client and provider.

The handshake is the client's and the upstream's own, so that subprotocols, compression, pings, sizes and closing are
between the two. Nothing is assembled or kept: a side that does not read makes the other wait. Memory is not consulted.
"""

from __future__ import annotations

import asyncio

import structlog
from starlette.types import Scope

from palimpsest.domain.errors import UpstreamUnreachable
from palimpsest.edge.http import SWITCH, can_switch
from palimpsest.upstream.upgraded import UpgradedAnswer

log = structlog.get_logger()


async def tunnel(scope: Scope, answer: UpgradedAnswer) -> None:
    """
    Send the client the upstream's 101, and join the two connections until one of them ends.

    Raises `UpstreamUnreachable`: the server cannot hand over its connection; ours can (`edge.http`).
    """
    client = open_tunnel(scope, answer, answer.early)
    log.info("a WebSocket passes through, without memory", path=scope["path"])
    # both are checked and joined without a pause, in which one could end unheard
    if client.is_closing() or answer.transport.is_closing():
        client.close()
        return
    ends = [_End(client, answer.transport), _End(answer.transport, client)]
    await asyncio.wait([end.over for end in ends])


def open_tunnel(scope: Scope, answer: UpgradedAnswer, early: bytes) -> asyncio.Transport:
    """Send the client the upstream's 101, and what follows it; returns the client's connection. Raises as `tunnel`."""
    if not can_switch(scope):
        raise UpstreamUnreachable("passing a WebSocket: this server cannot; run palimpsest serve")
    client: asyncio.Transport = scope["extensions"][SWITCH]()
    lines = [b"%s: %s\r\n" % header for header in answer.headers]
    client.write(b"HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n")
    client.write(b"".join([*lines, b"\r\n", early]))
    return client


class _End(asyncio.Protocol):
    """The protocol of one of the two connections while they are joined."""

    def __init__(self, own: asyncio.Transport, other: asyncio.Transport) -> None:
        self.over = asyncio.get_running_loop().create_future()
        self._other = other
        self._former = own.get_protocol()  # counts connections: it must hear that this one ended
        own.set_protocol(self)

    def data_received(self, data: bytes) -> None:
        self._other.write(data)

    def pause_writing(self) -> None:
        self._other.pause_reading()

    def resume_writing(self) -> None:
        self._other.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is None:
            self._other.close()  # when it has sent what is left
        else:
            self._other.abort()  # as this one broke, so does that one
        self._former.connection_lost(exc)
        if not self.over.done():
            self.over.set_result(None)
