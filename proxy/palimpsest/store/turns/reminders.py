"""
Reminders as rows: passages that somebody wants in the next request of their conversation, once.

One waits until a turn takes it up, it is withdrawn, or its time is over; it goes with its passage.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from palimpsest.store.engine import Ask, Transaction, ids
from palimpsest.store.operation.changes import REMINDERS, count

ADD = """
INSERT INTO reminder(tenant, memory, until, turn) SELECT tenant, id, ?2, 0 FROM memory WHERE id = ?1
ON CONFLICT (tenant, memory) DO UPDATE SET until = excluded.until, turn = 0
"""
WAITING = """
SELECT reminder.memory, tenant.name, conversation.public, reminder.until, occurrence.role,
    substr(content.text, memory.start + 1, memory.stop - memory.start)
FROM reminder INNER JOIN memory ON memory.id = reminder.memory
JOIN conversation ON conversation.id = memory.conversation JOIN tenant ON tenant.id = memory.tenant
JOIN occurrence ON occurrence.id = memory.occurrence JOIN content ON content.id = occurrence.content
WHERE reminder.turn = 0 AND reminder.until > ? ORDER BY reminder.memory
"""
STATES = "SELECT memory, turn <> 0, until FROM reminder WHERE memory IN (SELECT value FROM numbers(?))"


def remind(transaction: Transaction, memory: int, until: float) -> None:
    """Let a passage wait; once more, where it came before. Every process knows it within a second."""
    transaction.write(ADD, [(memory, until)])
    count(transaction, REMINDERS)


def withdraw(transaction: Transaction, memory: int) -> None:
    """Let a passage wait no longer."""
    transaction.write("DELETE FROM reminder WHERE memory = ? AND turn = 0", [(memory,)])
    count(transaction, REMINDERS)


def take_up(transaction: Transaction, taken: Sequence[tuple[int, int]]) -> None:
    """Note in which turns passages came: turn, passage."""
    if taken:
        transaction.write("UPDATE reminder SET turn = ? WHERE memory = ?", taken)
        count(transaction, REMINDERS)


def wait_again(transaction: Transaction, turns: Sequence[int]) -> None:
    """Let wait what came in requests that did not reach the model."""
    came = turns and transaction.read(
        "SELECT 1 FROM reminder WHERE turn IN (SELECT value FROM numbers(?)) LIMIT 1", (ids(turns),)
    )
    if came:
        transaction.write("UPDATE reminder SET turn = 0 WHERE turn = ?", [(turn,) for turn in turns])
        count(transaction, REMINDERS)


def waiting_reminders(ask: Ask, now: float) -> list[Mapping[str, Any]]:
    """What waits: `memory`, `tenant`, `conversation`, `until` (Unix seconds), `role`, `text`."""
    fields = ("memory", "tenant", "conversation", "until", "role", "text")
    return [dict(zip(fields, row, strict=True)) for row in ask(WAITING, (now,))]


def states(ask: Ask, memories: Collection[int], now: float) -> dict[int, str]:
    """Of these passages, those that "came" because somebody asked for them, and those that are "waiting" to."""
    rows = ask(STATES, (ids(memories),))
    return {memory: "came" if came else "waiting" for memory, came, until in rows if came or until > now}
