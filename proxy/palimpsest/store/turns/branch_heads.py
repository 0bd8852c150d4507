"""
Branch heads: how a conversation stood after a turn, as a row: a listing that an answer is appended to, and the rest.

A long listing begins with a row of the table `listing`, which the heads of a branch share: what a turn writes of it is
what it adds. Whoever names an answer goes on from there, and may do so twice: a head that a newer one has replaced is
made again from the journal.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from itertools import chain

import orjson

from palimpsest.domain import Cut, Event, Head, Json, Role, Shape, StoredBlock, Turn
from palimpsest.store.engine import Ask, Row
from palimpsest.store.turns.diffs import message_list

HEAD = """
SELECT conversation.public, head.turn, head.state, head.lost, listing.rows, head.listing
FROM head JOIN conversation ON conversation.id = head.conversation LEFT JOIN listing ON listing.turn = head.base
WHERE head.turn = ?
"""
COMPACTED = """
SELECT conversation.public, head.turn, head.state, head.lost, listing.rows, head.listing
FROM (SELECT id, tenant, public FROM conversation
    WHERE tenant = (SELECT id FROM tenant WHERE name = ?1) AND role = 'main' AND (?2 = '' OR public = ?2)
        AND (?3 = '' OR user_id = ?3) AND (?4 = '' OR scope = ?4)
    ORDER BY id DESC LIMIT ?5) AS conversation
JOIN head ON head.conversation = conversation.id AND length(head.lost) > 0
    AND head.turn = (SELECT max(turn) FROM head AS newest WHERE newest.conversation = conversation.id)
LEFT JOIN listing ON listing.turn = head.base
ORDER BY head.turn DESC LIMIT ?6
"""
NEWEST_CONVERSATIONS = 200  # of a tenant, looked through for compacted ones
LATER = """
SELECT conversation.public, turn.id, turn.event, turn.prompt_tokens, turn.messages, head.state, head.lost
FROM turn JOIN conversation ON conversation.id = turn.conversation
JOIN head ON head.conversation = turn.conversation AND head.turn > turn.id
WHERE turn.id = ? AND turn.role <> 'side' ORDER BY head.turn LIMIT 1
"""
LISTED = """
SELECT fingerprint, opening, occurrence.id, flags, occurrence.turn, position
FROM numbers(?) AS asked INNER JOIN occurrence ON occurrence.id = asked.value ORDER BY asked.key
"""

WIDTH = 4  # int64 of each message: full, opening, occurrence, flags

NO_CUT = Cut()
CUT_PARTS = ("drops", "stubs", "clips")

Listed = tuple[int, int, int, int]
"""One message of a listing."""


def to_listing(rows: Iterable[Listed]) -> bytes:
    return array("q", chain.from_iterable(rows)).tobytes()


def to_lost(occurrences: Iterable[int]) -> bytes:
    return array("q", occurrences).tobytes()


def to_state(turn: Turn, request_length: int, restored_at: int, cut: Cut = NO_CUT) -> str:
    """
    The state of a branch after a turn, as JSON for its row.

    Args:
        request_length: messages of the listing that the client sent.
        restored_at: as in `Head`.
        cut: likewise.
    """
    return orjson.dumps(
        ({"cut": cut} if cut else {})
        | ({"is_named": True} if turn.is_named else {})
        | ({"is_untold": True} if turn.is_untold else {})
        | {
            "role": turn.role,
            "event": turn.event,
            "compactions": turn.compactions,
            "tokens": turn.tokens,
            "request_length": request_length,
            "restored_at": restored_at,
            "shape": turn.shape,
        }
    ).decode()


def head_of(row: Row, blocks: tuple[StoredBlock, ...]) -> Head:
    """
    Args:
        row: public id of the conversation, turn, state, lost, the beginning of the listing or None, and the rest of it.
    """
    conversation, turn, state, lost, begins, listing = row
    said = orjson.loads(state)
    shape = said["shape"] | {name: tuple(said["shape"][name]) for name in ("tool_names", "instructions")}
    numbers = int64_of((begins or b"") + listing)
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
        lost=int64_of(lost),
        restored_at=said.get("restored_at", 0),
        is_untold=said.get("is_untold", False),
        blocks=blocks,
        tokens=said.get("tokens", 0),
        cut=_cut_of(said["cut"]) if said.get("cut") else NO_CUT,
        is_named=said.get("is_named", False),
    )


def _cut_of(said: Json) -> Cut:
    drops, stubs, clips = (tuple((one, other) for one, other in said.get(name, ())) for name in CUT_PARTS)
    return Cut(drops, stubs, clips, said["is_untold"])


def lost_heads(ask: Ask, tenant: str, conversation: str, user: str, scope: str, limit: int) -> list[Head]:
    """
    The newest heads of conversations that a compaction took something away from, the newest first.

    Args:
        conversation: public id; "" with `user` and `scope`: whichever.
    """
    where = (tenant, conversation, user, scope, NEWEST_CONVERSATIONS, limit)
    return [head_of(row, ()) for row in ask(COMPACTED, where)]


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
        return public, number, orjson.dumps(state).decode(), lost, None, to_listing([row[:4] for row in rows])
    return None


def int64_of(blob: bytes) -> array[int]:
    numbers = array("q")
    numbers.frombytes(blob)
    return numbers
