"""
Switches as rows: for whom memory is switched off, since when and why.
"""

from __future__ import annotations

from palimpsest.domain.frozen import frozen
from palimpsest.store.engine import Ask, Transaction
from palimpsest.store.operation.changes import SWITCHES, count

SWITCH_OFF = """
INSERT INTO switch(tenant, reason, at) VALUES (?, ?, ?) ON CONFLICT (tenant) DO UPDATE SET reason = excluded.reason
"""
EVERYBODY = ""  # in place of a tenant


@frozen
class SwitchedOff:
    """Memory is off for a tenant, or for `EVERYBODY`."""

    tenant: str
    reason: str
    at: float  # Unix seconds


def switched_off(ask: Ask) -> list[SwitchedOff]:
    """All of them, everybody first."""
    return [SwitchedOff(*row) for row in ask("SELECT tenant, reason, at FROM switch ORDER BY tenant")]


def switch_off(transaction: Transaction, off: SwitchedOff) -> None:
    """Every process knows it within a second. Where it is off already, only the reason is replaced."""
    transaction.write(SWITCH_OFF, [(off.tenant, off.reason, off.at)])
    count(transaction, SWITCHES)


def switch_on(transaction: Transaction, tenant: str) -> bool:
    """Whether it was off."""
    was_off = bool(transaction.read("SELECT 1 FROM switch WHERE tenant = ?", (tenant,)))
    transaction.write("DELETE FROM switch WHERE tenant = ?", [(tenant,)])
    count(transaction, SWITCHES)
    return was_off
