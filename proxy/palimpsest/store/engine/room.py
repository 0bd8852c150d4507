"""The room that a database takes."""

from __future__ import annotations

from palimpsest.domain.frozen import frozen
from palimpsest.store.engine import Ask


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
