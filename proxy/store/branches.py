"""
How did a conversation stand after one of its turns? A head, also where newer ones have replaced it.

Whoever names an answer goes on from there, and may do so twice.
"""

from __future__ import annotations

import orjson

from proxy.store.branch_heads import to_listing
from proxy.store.connection import Ask, Row
from proxy.store.diffs import carried

STANDING = """
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


def head_after(ask: Ask, turn: int) -> Row | None:
    """
    What `heads.head_of` takes; None: no such turn, or a side request's.

    Where the head was replaced, it is rebuilt from the journal. What else it says is taken from the next newer one of
    its conversation: it was replaced by one that carries all of it.
    """
    for row in ask(STANDING, (turn,)):
        return row
    for public, number, event, prompt_tokens, messages, later, lost in ask(LATER, (turn,)):
        rows = ask(LISTED, (orjson.dumps(carried(ask, turn).listing).decode(),))
        answers = sum(owner == turn and position >= messages for *_, owner, position in rows)
        state = orjson.loads(later) | {
            "event": event,
            "tokens": prompt_tokens or 0,
            "request_length": len(rows) - answers,
        }
        return public, number, orjson.dumps(state).decode(), lost, to_listing([row[:4] for row in rows])
    return None
