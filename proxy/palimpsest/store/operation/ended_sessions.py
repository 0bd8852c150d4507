"""
Ended sessions of the page as rows: one session each, or all that were begun with a token or key before a time.

A row stands until the sessions that it ends are out of date.
"""

from __future__ import annotations

from palimpsest.store.engine import Ask, Transaction

END = "INSERT INTO ended_session(name, until) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET until = excluded.until"
ENDED = "SELECT 1 FROM ended_session WHERE name IN (?, ?) AND until >= ?"


def end(transaction: Transaction, name: str, until: float, now: float) -> None:
    """End the sessions of this name that would be good until then (Unix seconds) or shorter, in every process."""
    transaction.write(END, [(name, until)])
    transaction.write("DELETE FROM ended_session WHERE until <= ?", [(now,)])


def has_ended(ask: Ask, names: tuple[str, str], until: float) -> bool:
    """Whether a session that is good until then was ended, by its own name or by that of its token or key."""
    return bool(ask(ENDED, (*names, until)))
