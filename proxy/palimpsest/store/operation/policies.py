"""
Policies that were in force, as rows: their numbers rise, and all processes on one database agree on them.
"""

from __future__ import annotations

from palimpsest.store.engine import Ask, Transaction

KEPT = 100  # of the newest; an operator looks at the last few
NEWEST = "SELECT generation, digest FROM policy ORDER BY generation DESC LIMIT 1"


def newest(ask: Ask) -> tuple[int, str]:
    """The number and the digest of the policy that came into force last; 0 and "": none did."""
    rows = ask(NEWEST)
    return (rows[0][0], rows[0][1]) if rows else (0, "")


def enter(transaction: Transaction, digest: str, at: float) -> int:
    """Say that a policy is in force now, unless the newest one is the same. Returns its number."""
    number, known = newest(transaction.read)
    if known == digest:
        return number
    transaction.write("INSERT INTO policy(digest, at) VALUES (?, ?)", [(digest, at)])
    number, _ = newest(transaction.read)
    transaction.write("DELETE FROM policy WHERE generation <= ?", [(number - KEPT,)])
    return number
