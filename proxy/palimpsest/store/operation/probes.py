"""Probes as rows: which messages may be asked for, where their answers stand, and what became of the newest probes."""

from __future__ import annotations

from palimpsest.core.recall.gaps import GapEstimate, estimate
from palimpsest.domain import BLOCK_OPEN, HeadFlag, frozen
from palimpsest.store.engine import Ask, Row, Transaction

KEPT = 200  # probes that make an estimate: its 95 % interval is then 7 points to either side at most

# What a person or a tool said, that is neither out of use nor said in a request beside its conversation; nor what tools
# quote of memory, which memory leaves alone.
NEWEST = f"""
SELECT occurrence.id, occurrence.role, conversation.id, conversation.public, conversation.user_id, conversation.scope,
    tenant.id, tenant.name, occurrence.created_at
FROM occurrence JOIN conversation ON conversation.id = occurrence.conversation
JOIN tenant ON tenant.id = conversation.tenant JOIN turn ON turn.id = occurrence.turn
WHERE occurrence.id > (SELECT max(id) FROM occurrence) - ? AND occurrence.role IN ('user', 'tool', 'function')
    AND occurrence.flags & {int(HeadFlag.ERASED | HeadFlag.RETIRED)} = 0 AND turn.role <> 'side'
ORDER BY occurrence.id
"""
TEXT = "SELECT text FROM occurrence JOIN content ON content.id = occurrence.content WHERE occurrence.id = ?"
HOLDING = """
SELECT memory.id, vector.memory IS NOT NULL FROM memory LEFT JOIN vector ON vector.memory = memory.id
WHERE memory.occurrence = ? AND memory.start <= ? AND memory.stop >= ? ORDER BY memory.id
"""


@frozen
class ProbedMessage:
    """A stored message that may be asked for, and whose it is; row ids but for `public`, a conversation's public id."""

    occurrence: int
    role: str
    conversation: int
    public: str
    user: str
    project: str
    tenant: int
    tenant_name: str
    created_at: float


def newest_messages(ask: Ask, limit: int) -> list[ProbedMessage]:
    """The newest messages of all tenants that may be probed, in order."""
    return [ProbedMessage(*row) for row in ask(NEWEST, (limit,))]


def set_aside_since(ask: Ask, at: float) -> int:
    """How many parts of turns could not be stored since then."""
    return int(ask("SELECT count(*) FROM quarantine WHERE created_at >= ?", (at,))[0][0])


def text_of(ask: Ask, occurrence: int) -> str:
    """The text of a message; "" where it is gone, or quotes memory."""
    text = next((str(text) for (text,) in ask(TEXT, (occurrence,))), "")
    return "" if BLOCK_OPEN in text else text


def passages_at(ask: Ask, occurrence: int, start: int, stop: int) -> list[Row]:
    """Rows of id, and whether it has a vector: the passages of a message that hold text[start:stop] whole."""
    return ask(HOLDING, (occurrence, start, stop))


def passages_in(ask: Ask, condition: str, args: tuple[object, ...], limit: int) -> int:
    """How many passages a scope holds (`Scope.condition`), counted no further than so many."""
    sql = f"SELECT count(*) FROM (SELECT 1 FROM memory WHERE {condition} LIMIT ?) AS counted"
    return int(ask(sql, (*args, limit))[0][0])


def save(transaction: Transaction, at: float, stage: str) -> None:
    """Store the stage of a probe, and drop the oldest."""
    transaction.write("INSERT INTO probe(at, stage) VALUES (?, ?)", [(at, stage)])
    transaction.write("DELETE FROM probe WHERE id <= (SELECT max(id) FROM probe) - ?", [(KEPT,)])


def live_estimate(ask: Ask) -> GapEstimate:
    """The estimate from the newest probes."""
    rows = ask("SELECT at, stage FROM probe ORDER BY id")
    return estimate([stage for _, stage in rows], *((rows[0][0], rows[-1][0]) if rows else ()))
