"""The room that a database takes, and gives back to the disk."""

from __future__ import annotations

from palimpsest.domain.frozen import frozen
from palimpsest.store.engine import Ask, Transaction


@frozen
class StoreSize:
    """Bytes of the database, and of those that hold something, as far as that is known."""

    bytes: int
    used_bytes: int
    free_pages: int  # that can be given back


def store_size(ask: Ask) -> StoreSize:
    """How large the database is."""
    ((size, free, page),) = ask("SELECT stored_bytes(), free_pages(), page_bytes()")
    return StoreSize(size, size - free * page, free)


def give_back(transaction: Transaction, pages: int) -> None:
    """Shorten a database file by up to so many free pages; a server's has none that could be given back."""
    for _ in range(pages):  # Python takes the first step of the pragma only, and that is one page
        transaction.write("PRAGMA incremental_vacuum(1)")
