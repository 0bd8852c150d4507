"""The free space of a database file, returned to the disk."""

from __future__ import annotations

from palimpsest.store.engine import Transaction


def give_back(transaction: Transaction, pages: int) -> None:
    """Shorten the file by up to so many free pages."""
    for _ in range(pages):  # Python takes the first step of the pragma only, and that is one page
        transaction.write("PRAGMA incremental_vacuum(1)")
