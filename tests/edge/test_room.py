"""The room for connections: who has waited longest goes first, and nobody who is served."""

from __future__ import annotations

from dataclasses import dataclass

from palimpsest.edge.room import RESERVED, Room, raise_limit, room_here


@dataclass(eq=False)
class Visitor:
    since: float | None
    is_gone: bool = False

    def waits_since(self) -> float | None:
        return self.since

    def close_idle(self) -> None:
        self.is_gone = True


def test_the_connection_that_has_waited_longest_is_dismissed() -> None:
    room, served, old, older = Room(4, 2), Visitor(None), Visitor(5.0), Visitor(3.0)
    for visitor in (served, old, older):
        room.expect()
        room.enter(visitor)
    assert not room.dismiss(waiting_before=3.0)
    assert room.dismiss(waiting_before=9.0)
    assert (served.is_gone, old.is_gone, older.is_gone) == (False, False, True)


def test_whoever_leaves_makes_room_and_whoever_waits_for_it_is_told() -> None:
    room, told = Room(1, 1), []
    room.when_left = lambda: told.append(room.is_taken)
    visitor = Visitor(None)
    room.expect()
    room.enter(visitor)
    assert room.is_taken
    room.leave(visitor)
    assert told == [False]


def test_requests_are_counted_apart_from_connections() -> None:
    room = Room(2, 1)
    room.begin()
    assert room.is_busy and not room.is_taken
    room.end()
    assert not room.is_busy


def test_each_request_has_a_descriptor_upstream_besides_its_connection() -> None:
    import resource

    raise_limit()
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    room = room_here()
    assert 0 < room.requests < room.connections
    assert room.connections + room.requests <= soft - RESERVED
