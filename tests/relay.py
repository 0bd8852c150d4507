"""A relay in front of a PostgreSQL server: counts what a client asks of it, and may be as slow as a network."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

CHUNK_BYTES = 1 << 16
LENGTH_BYTES = 4


class Relay:
    """
    Counts of all connections through it.

    A round trip is counted where a client says something after the server has answered: what it says before that, it
    said without waiting. An answer that is delayed leaves it the time to say so, however busy the machine.
    """

    def __init__(self, port: int) -> None:
        """
        Args:
            port: of the server, on this machine.
        """
        self.statements = 0
        self.round_trips = 0
        self.delay_seconds = 0.0  # of each round trip
        self._server = port
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._door.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._door.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._door.accept()
                _Link(self, client, socket.create_connection(("127.0.0.1", self._server)))


class _Link:
    """One connection."""

    def __init__(self, relay: Relay, client: socket.socket, server: socket.socket) -> None:
        self._relay, self._client, self._server = relay, client, server
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._waits = True  # until somebody asks something
        self._pending = b""
        self._has_begun = False
        threading.Thread(target=self._ask, daemon=True).start()
        threading.Thread(target=self._answer, daemon=True).start()

    def _ask(self) -> None:
        with suppress(OSError):
            while chunk := self._client.recv(CHUNK_BYTES):
                if self._waits:
                    self._waits = False
                    self._relay.round_trips += 1
                self._count(chunk)
                self._server.sendall(chunk)
        self._close()

    def _answer(self) -> None:
        with suppress(OSError):
            while chunk := self._server.recv(CHUNK_BYTES):
                if not self._waits:
                    time.sleep(self._relay.delay_seconds)
                    self._waits = True
                self._client.sendall(chunk)
        self._close()

    def _count(self, chunk: bytes) -> None:
        self._pending += chunk
        while len(self._pending) > LENGTH_BYTES:
            begins = 1 if self._has_begun else 0  # the first message has no letter
            length = begins + int.from_bytes(self._pending[begins : begins + LENGTH_BYTES], "big")
            if len(self._pending) < max(length, begins + LENGTH_BYTES):
                return
            self._relay.statements += self._has_begun and self._pending[:1] in (b"E", b"Q")
            self._has_begun, self._pending = True, self._pending[length:]

    def _close(self) -> None:
        for end in (self._client, self._server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


@contextmanager
def relayed(url: str) -> Iterator[tuple[str, Relay]]:
    """The URL of a database of a server on this machine, through a relay."""
    before, _, behind = url.rpartition("@127.0.0.1:")
    port, _, name = behind.partition("/")
    relay = Relay(int(port))
    try:
        yield f"{before}@127.0.0.1:{relay.port}/{name}?sslmode=disable&gssencmode=disable", relay
    finally:
        relay.close()
