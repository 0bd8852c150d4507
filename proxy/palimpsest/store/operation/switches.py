"""
Switches and policies as rows: for whom memory is switched off, since when and why; which policy came into force last.
"""

from __future__ import annotations

from palimpsest.domain.frozen import frozen
from palimpsest.store.engine import Ask, Transaction
from palimpsest.store.operation.changes import SWITCHES, count

SWITCH_OFF = """
INSERT INTO switch(tenant, reason, at) VALUES (?, ?, ?) ON CONFLICT (tenant) DO UPDATE SET reason = excluded.reason
"""
EVERYBODY = ""  # in place of a tenant

KEPT = 100  # of the newest; an operator looks at the last few
NEWEST = "SELECT generation, digest FROM policy ORDER BY generation DESC LIMIT 1"


@frozen
class SwitchedOff:
    """Memory is off for a tenant, or for `EVERYBODY`."""

    tenant: str
    reason: str
    at: float  # Unix seconds


def switched_off(ask: Ask) -> list[SwitchedOff]:
    """For whom memory is off, everybody first."""
    return [SwitchedOff(*row) for row in ask("SELECT tenant, reason, at FROM switch ORDER BY tenant")]


def switch_off(transaction: Transaction, off: SwitchedOff) -> None:
    """Switch memory off for a tenant or everybody; where it is off already, replace the reason."""
    transaction.write(SWITCH_OFF, [(off.tenant, off.reason, off.at)])
    count(transaction, SWITCHES)


def switch_on(transaction: Transaction, tenant: str) -> bool:
    """Switch memory on; returns whether it was off."""
    was_off = bool(transaction.read("SELECT 1 FROM switch WHERE tenant = ?", (tenant,)))
    transaction.write("DELETE FROM switch WHERE tenant = ?", [(tenant,)])
    count(transaction, SWITCHES)
    return was_off


def newest(ask: Ask) -> tuple[int, str]:
    """The number and the digest of the policy that came into force last; 0 and "": none did."""
    rows = ask(NEWEST)
    return (rows[0][0], rows[0][1]) if rows else (0, "")


def enter(transaction: Transaction, digest: str, at: float) -> int:
    """Note that a policy is in force, unless the newest one is the same; returns its number."""
    number, known = newest(transaction.read)
    if known == digest:
        return number
    transaction.write("INSERT INTO policy(digest, at) VALUES (?, ?)", [(digest, at)])
    number, _ = newest(transaction.read)
    transaction.write("DELETE FROM policy WHERE generation <= ?", [(number - KEPT,)])
    return number
