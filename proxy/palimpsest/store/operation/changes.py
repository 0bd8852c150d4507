"""
What processes that share a database learn from one another: counters of changes, and who does a task at this moment.

A change and its counter are written in one transaction. Who follows reads all counters at once, some 0.1 ms.
"""

from __future__ import annotations

from collections.abc import Mapping

from palimpsest.store.engine import Ask, Transaction

ERASURES = "erasures"
KEYS = "keys"
SWITCHES = "switches"
POLICY = "policy"
REMINDERS = "reminders"
MODELS = "models"
ITEMS = "items"  # of mid-term memory, or the relations between them

COUNTERS = f"""
SELECT name, number FROM change
UNION ALL SELECT '{ERASURES}', coalesce(max(id), 0) FROM erasure
UNION ALL SELECT '{POLICY}', coalesce(max(generation), 0) FROM policy
"""
COUNT = "INSERT INTO change(name, number) VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET number = change.number + 1"

PUT = """
INSERT INTO task(name, next, stop) VALUES (?, ?, 0)
ON CONFLICT (name) DO UPDATE SET next = excluded.next, stop = excluded.stop
"""


# An end that lies further than any lease was written while the clock was wrong.
LEASE = """
INSERT INTO task(name, next, stop) VALUES (?1, 0, ?4) ON CONFLICT (name) DO UPDATE SET stop = excluded.stop
WHERE task.stop IN (0, ?2) OR task.stop <= ?3 OR task.stop > ?3 + 10 * (?4 - ?3) RETURNING name
"""


def counters(ask: Ask) -> Mapping[str, int]:
    """The counters by name; one that never rose is missing."""
    return dict(ask(COUNTERS))


def count(transaction: Transaction, name: str) -> None:
    """Raise the counter of this kind, so that other processes learn of the change."""
    transaction.write(COUNT, [(name,)])


def put_position(transaction: Transaction, name: str, following: int = 0) -> None:
    """Store where a task stands."""
    transaction.write(PUT, [(name, following)])


def lease(transaction: Transaction, name: str, mine: int, now_ms: int, until_ms: int) -> bool:
    """Take or renew a lease; False: another process has it. `mine`: when the lease ends that the caller has; 0 none."""
    return bool(transaction.read(LEASE, (name, mine, now_ms, until_ms)))


def release(transaction: Transaction, name: str, mine: int) -> None:
    """Release a lease, unless another process took it meanwhile."""
    transaction.write("UPDATE task SET stop = 0 WHERE name = ? AND stop = ?", [(name, mine)])
