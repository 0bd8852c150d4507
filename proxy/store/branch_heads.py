"""
How does the newest state of a branch look on disk? One row: a listing that an answer is appended to, and the rest.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import asdict, dataclass

import orjson

from proxy.domain import Event, Head, Role, Shape, StoredBlock, Turn
from proxy.store.connection import Row

WIDTH = 4  # int64 of each message: full, opening, occurrence, flags

Listed = tuple[int, int, int, int]
"""One message of a listing."""


@dataclass(frozen=True, slots=True)
class Parent:
    """The turn that a new one continues. Its listing is None where another turn has replaced its head."""

    tenant: int
    is_open: bool
    lost: tuple[int, ...]
    listing: dict[int, Listed] | None  # by occurrence, in order


def to_listing(rows: Iterable[Listed]) -> bytes:
    return array("q", [number for row in rows for number in row]).tobytes()


def to_lost(occurrences: Iterable[int]) -> bytes:
    return array("q", occurrences).tobytes()


def to_state(turn: Turn, request_length: int) -> str:
    """
    Args:
        request_length: messages of the listing that the client sent.
    """
    return orjson.dumps(
        {
            "role": turn.role,
            "event": turn.event,
            "compactions": turn.compactions,
            "tokens": turn.tokens,
            "request_length": request_length,
            "shape": asdict(turn.shape),
        }
    ).decode()


def head_of(row: Row, blocks: tuple[StoredBlock, ...]) -> Head:
    """
    Args:
        row: public id of the conversation, turn, state, lost, listing.
    """
    conversation, turn, state, lost, listing = row
    said = orjson.loads(state)
    shape = said["shape"] | {name: tuple(said["shape"][name]) for name in ("tool_names", "instructions")}
    numbers = _numbers(listing)
    return Head(
        conversation=conversation,
        turn=turn,
        role=Role(said["role"]),
        fulls=numbers[0::WIDTH],
        openings=numbers[1::WIDTH],
        occurrences=numbers[2::WIDTH],
        flags=numbers[3::WIDTH],
        shape=Shape(**shape),
        request_length=said["request_length"],
        compactions=said["compactions"],
        event=Event(said["event"]),
        lost=_numbers(lost),
        blocks=blocks,
        tokens=said.get("tokens", 0),
    )


def parent_of(tenant: int, ending: str, lost: bytes | None, listing: bytes | None) -> Parent:
    numbers = _numbers(listing or b"")
    rows = zip(numbers[0::WIDTH], numbers[1::WIDTH], numbers[2::WIDTH], numbers[3::WIDTH], strict=True)
    return Parent(
        tenant=tenant,
        is_open=ending == "open",
        lost=tuple(_numbers(lost or b"")),
        listing=None if listing is None else {row[2]: row for row in rows},
    )


def _numbers(blob: bytes) -> array[int]:
    numbers = array("q")
    numbers.frombytes(blob)
    return numbers
