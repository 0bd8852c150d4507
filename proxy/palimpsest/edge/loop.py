"""
The event loop of the server: uvloop's, which accepts a connection only while there is room for it.

uvloop accepts whatever comes, and where no descriptor is left it closes what waits. Here those wait with the system,
for moments, until another connection has ended or one that sends nothing is closed.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import structlog
import uvloop

from palimpsest.edge.room import Room, room_here

PRESSED_SECONDS = 0.5  # that a connection may take to begin its request while others wait for its room
LOOK_SECONDS = 0.1  # between looks whether one has taken that long
AT_A_TIME = 64  # connections accepted before others have their turn

log = structlog.get_logger()


class Loop(uvloop.Loop):
    """`loop=` of uvicorn's configuration; `room` is there once a server is."""

    room: Room | None = None

    async def create_server(self, protocol_factory: Any, *args: Any, backlog: int = 100, **more: Any) -> Any:
        """A server as asyncio's; it keeps to the descriptors of this process."""
        bound = await super().create_server(protocol_factory, *args, **more, backlog=backlog, start_serving=False)
        self.room = self.room or room_here()
        log.info("room for connections", connections=self.room.connections, requests=self.room.requests)
        return Listening(self, bound, protocol_factory, self.room, backlog)


class Listening:
    """The sockets of one server, and the accepting of connections."""

    def __init__(
        self, loop: Loop, bound: Any, protocol_factory: Callable[[], asyncio.Protocol], room: Room, backlog: int
    ) -> None:
        self.sockets = bound.sockets
        self._loop, self._bound, self._room = loop, bound, room
        self._protocol_factory = protocol_factory
        self._own = [socket.socket(fileno=socket.dup(one.fileno())) for one in self.sockets]
        self._resting: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        for one in self._own:
            one.setblocking(False)
            one.listen(backlog)
        room.when_left = self._go_on
        self._accept_on()

    def close(self) -> None:
        self._rest()
        if self._resting is not None:
            self._resting.cancel()
        for one in self._own:
            one.close()
        self._own = []
        self._bound.close()

    async def wait_closed(self) -> None:
        await asyncio.gather(*self._tasks)
        await self._bound.wait_closed()

    def _accept_on(self) -> None:
        self._resting = None
        for one in self._own:
            self._loop.add_reader(one.fileno(), self._accept, one)

    def _rest(self) -> None:
        for one in self._own:
            self._loop.remove_reader(one.fileno())

    def _wait(self) -> None:
        """Leave what comes with the system until there is room again."""
        if self._resting is None:
            self._rest()
            self._resting = self._loop.call_later(LOOK_SECONDS, self._accept_on)

    def _go_on(self) -> None:
        if self._resting is not None and not self._room.is_taken:
            self._resting.cancel()
            self._accept_on()

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(AT_A_TIME):
            if self._room.is_taken:
                self._room.dismiss(self._loop.time() - PRESSED_SECONDS)
                self._wait()
                return
            try:
                connection, _ = listening.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionAbortedError:  # it went before
                continue
            except OSError as failure:  # no descriptor is left, whatever has taken them
                log.warning("connections wait, because none can be accepted", reason=str(failure))
                self._wait()
                return
            self._room.expect()
            task = self._loop.create_task(self._serve(connection))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _serve(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._protocol_factory, connection)
        except OSError:  # it went meanwhile
            connection.close()
            self._room.leave(None)
