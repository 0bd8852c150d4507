"""
Tasks that outlive a process: where each stands, and who has the lease of one.
"""

from __future__ import annotations

from palimpsest.store.engine import Transaction

PUT = """
INSERT INTO task(name, next, stop) VALUES (?, ?, 0)
ON CONFLICT (name) DO UPDATE SET next = excluded.next, stop = excluded.stop
"""


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
