"""
Branch heads: how a conversation stood after a turn, as a row: a listing that an answer is appended to, and the rest.

Whoever names an answer goes on from there, and may do so twice: a head that a newer one has replaced is made again from
the journal.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import chain

import orjson

from proxy.domain import Event, Head, Role, Shape, StoredBlock, Turn
from proxy.store.connection import Ask, Row
from proxy.store.diffs import message_list

HEAD = """
SELECT conversation.public, head.turn, head.state, head.lost, head.listing
FROM head JOIN conversation ON conversation.id = head.conversation WHERE head.turn = ?
"""
LATER = """
SELECT conversation.public, turn.id, turn.event, turn.prompt_tokens, turn.messages, head.state, head.lost
FROM turn JOIN conversation ON conversation.id = turn.conversation
JOIN head ON head.conversation = turn.conversation AND head.turn > turn.id
WHERE turn.id = ? AND turn.role <> 'side' ORDER BY head.turn LIMIT 1
"""
LISTED = """
SELECT full, opening, occurrence.id, flags, occurrence.turn, position
FROM json_each(?) AS asked CROSS JOIN occurrence ON occurrence.id = asked.value ORDER BY asked.key
"""

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
    return array("q", chain.from_iterable(rows)).tobytes()


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


def head_after(ask: Ask, turn: int) -> Row | None:
    """
    What `head_of` takes; None: no such turn, or a side request's.

    Where the head was replaced, it is rebuilt from the journal. What else it says is taken from the next newer one of
    its conversation: it was replaced by one that carries all of it.
    """
    for row in ask(HEAD, (turn,)):
        return row
    for public, number, event, prompt_tokens, messages, later, lost in ask(LATER, (turn,)):
        rows = ask(LISTED, (orjson.dumps(message_list(ask, turn).listing).decode(),))
        answers = sum(owner == turn and position >= messages for *_, owner, position in rows)
        state = orjson.loads(later) | {
            "event": event,
            "tokens": prompt_tokens or 0,
            "request_length": len(rows) - answers,
        }
        return public, number, orjson.dumps(state).decode(), lost, to_listing([row[:4] for row in rows])
    return None


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
