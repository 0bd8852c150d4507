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


def counters(ask: Ask) -> Mapping[str, int]:
    """The counters by name; one that never rose is missing."""
    return dict(ask(COUNTERS))


def count(transaction: Transaction, name: str) -> None:
    """Say that something of this kind changes in this transaction. Erasures and policies count themselves."""
    transaction.write(COUNT, [(name,)])


def put(transaction: Transaction, name: str, next: int = 0) -> None:
    """Note that a task is there, and where it stands."""
    transaction.write(PUT, [(name, next)])


def lease(transaction: Transaction, name: str, mine: int, now_ms: int, until_ms: int) -> bool:
    """
    Take a lease, or keep it; False: another one has it.

    Args:
        mine: when the lease ends that the caller has; 0 none.
    """
    ((stop,),) = transaction.read("SELECT coalesce(max(stop), 0) FROM task WHERE name = ?", (name,))
    # an end that lies further than any lease was written while the clock was wrong
    if stop not in (0, mine) and now_ms < stop <= now_ms + 10 * (until_ms - now_ms):
        return False
    transaction.write(
        "INSERT INTO task(name, next, stop) VALUES (?, 0, ?) ON CONFLICT (name) DO UPDATE SET stop = excluded.stop",
        [(name, until_ms)],
    )
    return True


def release(transaction: Transaction, name: str, mine: int) -> None:
    """Give a lease back, unless another one took it meanwhile."""
    transaction.write("UPDATE task SET stop = 0 WHERE name = ? AND stop = ?", [(name, mine)])
