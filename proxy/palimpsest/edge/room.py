"""
Room for connections: how many a process holds at once, and how many requests, so that each finds a descriptor upstream.

Without a bound, clients that connect and send nothing take all descriptors, and neither the provider nor the database
can be opened for anybody else.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import structlog

RESERVED = 24  # descriptors for what is opened now and then: the database anew, processes, names of hosts
REQUESTS_SHARE = 0.4  # of the rest, each with one upstream; what is left is for connections without a request too
OPEN_ELSEWHERE = 64  # descriptors of this process, where they cannot be counted
MOST_DESCRIPTORS = 65_536  # asked for at a start: more than any machine serves at once

ROOM = "palimpsest.room"
"""Name in every scope's `extensions` of the `Room` of its server; missing where there is no bound."""

log = structlog.get_logger()


class Guest(Protocol):
    """A connection that may be closed to make room."""

    def waits_since(self) -> float | None:
        """When it began to wait for a request, by the event loop's clock; None: it has one."""

    def close_idle(self) -> None:
        """Close it, to make room for another."""


class Room:
    """The connection limits of one server, and their current use."""

    def __init__(self, connections: int, requests: int) -> None:
        self.connections = connections  # held at once, at most
        self.requests = requests  # forwarded at once, at most; fewer than connections, so that others can be told
        self.when_left: Callable[[], object] = lambda: None  # called when a connection has ended
        self.taken = 0  # connections
        self._forwarded = 0
        self._guests: set[Guest] = set()

    @property
    def is_taken(self) -> bool:
        return self.taken >= self.connections

    @property
    def is_busy(self) -> bool:
        return self._forwarded >= self.requests

    def expect(self) -> None:
        """A connection is accepted; `leave` follows, whatever becomes of it."""
        self.taken += 1

    def enter(self, guest: Guest) -> None:
        """A connection is served; while it waits for a request it may be closed to make room."""
        self._guests.add(guest)

    def leave(self, guest: Guest | None) -> None:
        if guest is not None:
            self._guests.discard(guest)
        self.taken -= 1
        self.when_left()

    def dismiss(self, waiting_before: float) -> bool:
        """Close the connection that has waited longest for a request, if since before then; whether there was one."""
        waiting = [(since, guest) for guest in self._guests if (since := guest.waits_since()) is not None]
        since, guest = min(waiting, key=lambda one: one[0], default=(waiting_before, None))
        if guest is None or since >= waiting_before:
            return False
        guest.close_idle()
        return True

    def begin(self) -> None:
        """A request is forwarded; `end` follows."""
        self._forwarded += 1

    def end(self) -> None:
        self._forwarded -= 1


BOUNDLESS = Room(1 << 31, 1 << 31)  # for servers that set no bound


def room_here() -> Room:
    """The room that this process's limit of descriptors leaves."""
    spare = max(_limit() - _open_descriptors() - RESERVED, 5)
    requests = int(spare * REQUESTS_SHARE)
    return Room(spare - requests, requests)


def raise_limit() -> None:
    """Use as many descriptors as this process may; many systems begin with 1,024, and every request takes two."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < most:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        except (ValueError, OSError) as failure:
            log.warning("the limit of open files stays as it is", descriptors=soft, reason=str(failure))


def _limit() -> int:
    try:
        import resource
    except ImportError:
        return MOST_DESCRIPTORS
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft


def _open_descriptors() -> int:
    for folder in ("/proc/self/fd", "/dev/fd"):
        try:
            return sum(1 for _ in Path(folder).iterdir())
        except OSError:
            continue
    return OPEN_ELSEWHERE
