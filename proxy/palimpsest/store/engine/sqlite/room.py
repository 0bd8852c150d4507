"""
The room that the database file takes, and giving back what is free of it.
"""

from __future__ import annotations

from palimpsest.domain.frozen import frozen
from palimpsest.store.engine import Ask, Transaction


@frozen
class FileSize:
    """Bytes of the database file, and of those that hold something."""

    bytes: int
    used_bytes: int
    free_pages: int


def file_size(ask: Ask) -> FileSize:
    """How large the file is."""
    ((page,),) = ask("PRAGMA page_size")
    ((pages,),) = ask("PRAGMA page_count")
    ((free,),) = ask("PRAGMA freelist_count")
    return FileSize(page * pages, page * (pages - free), free)


def give_back(transaction: Transaction, pages: int) -> None:
    """Shorten the file by up to so many free pages."""
    for _ in range(pages):  # Python takes the first step of the pragma only, and that is one page
        transaction.write("PRAGMA incremental_vacuum(1)")
