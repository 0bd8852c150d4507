"""Where a statement stands in the archive: messages that hold it, what is derived of them, blocks that quote them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile

import orjson

from palimpsest.domain import HeadFlag, frozen
from palimpsest.store.engine import Ask, ids

# Sides are left out: what a summariser was sent repeats everything.
SAID = """
SELECT occurrence.id, occurrence.role, occurrence.flags, content.text,
    (SELECT count(*) FROM turn AS other WHERE other.conversation = turn.conversation AND other.id <= turn.id)
FROM conversation JOIN occurrence ON occurrence.conversation = conversation.id
JOIN content ON content.id = occurrence.content JOIN turn ON turn.id = occurrence.turn
WHERE conversation.public = ?1 AND conversation.tenant = (SELECT id FROM tenant WHERE name = ?2)
    AND turn.role <> 'side' ORDER BY occurrence.id
"""
OTHERS = """
SELECT conversation.public, content.text
FROM conversation JOIN occurrence ON occurrence.conversation = conversation.id
JOIN content ON content.id = occurrence.content
WHERE conversation.public <> ?1 AND conversation.tenant = (SELECT id FROM tenant WHERE name = ?2)
    AND instr(lower(content.text), ?3) > 0 ORDER BY occurrence.id DESC LIMIT ?4
"""
DERIVED = """
SELECT count(*), count(vector.memory)
FROM memory LEFT JOIN vector ON vector.memory = memory.id WHERE memory.occurrence = ?1
"""
QUOTING = """
SELECT block.occurrence, block.occurrences,
    (SELECT count(*) FROM turn AS other WHERE other.conversation = block.conversation AND other.id <= block.turn)
FROM block JOIN turn ON turn.id = ?1 WHERE block.conversation = turn.conversation AND block.turn <= ?1
    AND (block.shed = 0 OR block.shed > ?1) ORDER BY block.turn
"""


@frozen
class Message:
    """A stored message; `turn` is its number in its conversation, from 1."""

    occurrence: int
    role: str
    flags: int
    text: str
    turn: int

    @property
    def is_erased(self) -> bool:
        return bool(self.flags & HeadFlag.ERASED)

    @property
    def is_retired(self) -> bool:
        return bool(self.flags & HeadFlag.RETIRED)


def messages(ask: Ask, tenant: str, conversation: str) -> list[Message]:
    """All messages of a conversation, in the order in which they were archived."""
    return [Message(*row) for row in ask(SAID, (conversation, tenant))]


def other_conversations(
    ask: Ask, tenant: str, conversation: str, words: str, holds: Callable[[str], bool], limit: int
) -> list[str]:
    """
    Public ids of other conversations of the tenant that hold a statement, the newest first.

    Args:
        words: lower case; only texts with these words are looked at.
    """
    rows = ask(OTHERS, (conversation, tenant, words, limit))
    return list(dict.fromkeys(public for public, text in rows if holds(text)))


def passages(ask: Ask, occurrence: int) -> tuple[int, int]:
    """How many passages a message has, and how many of them wait for a vector."""
    ((count, embedded),) = ask(DERIVED, (occurrence,))
    return count, count - embedded


def quoting_blocks(ask: Ask, turn: int, occurrence: int, standing: Sequence[int]) -> list[int]:
    """
    Numbers of the turns whose blocks quote a message, and stand in this turn's request.

    Args:
        turn: row of the turn.
        standing: occurrences that it carried; a block is repeated while the message that carries it stands.
    """
    carried = frozenset(standing)
    return [
        number
        for anchor, quoted, number in ask(QUOTING, (turn,))
        if anchor in carried and occurrence in takewhile(bool, orjson.loads(quoted))  # behind a 0: only mentioned
    ]


def quarantined_parts(ask: Ask, tenant: str, conversation: str) -> int:
    """How many parts of a conversation's turns could not be stored."""
    ((count,),) = ask(
        "SELECT count(*) FROM quarantine JOIN turn ON turn.key = quarantine.turn"
        " JOIN conversation ON conversation.id = turn.conversation"
        " WHERE conversation.public = ? AND conversation.tenant = (SELECT id FROM tenant WHERE name = ?)",
        (conversation, tenant),
    )
    return int(count)


def fulls(ask: Ask, occurrences: Sequence[int]) -> frozenset[int]:
    """Fingerprints of these messages."""
    rows = ask(
        "SELECT fingerprint FROM numbers(?) AS asked JOIN occurrence ON occurrence.id = asked.value",
        (ids(occurrences),),
    )
    return frozenset(full for (full,) in rows)
