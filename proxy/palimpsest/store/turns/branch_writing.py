"""What a new branch head is written beside: the turn that it goes on from, and the beginnings of listings."""

from __future__ import annotations

from collections.abc import Iterable

from palimpsest.domain import frozen
from palimpsest.store.engine import Ask, Row, Transaction
from palimpsest.store.turns.branch_heads import WIDTH, Listed, int64_of

ROW_BYTES = 8 * WIDTH
UNUSED = """
DELETE FROM listing WHERE tenant = ?1 AND conversation = ?2
    AND turn NOT IN (SELECT base FROM head WHERE tenant = ?1 AND conversation = ?2)
"""
MAX_TAIL_MESSAGES = 64  # of a listing behind its beginning, 2 kB: half a page to write at every turn


@frozen
class Parent:
    """The turn that a new one continues. `tail` is None where another turn has replaced its head."""

    number: int
    tenant: int
    is_open: bool
    lost: bytes
    base: int  # the `listing` that its own begins with; 0: none
    base_bytes: int
    tail: bytes | None  # of its listing, behind that

    @property
    def messages(self) -> int:
        """Of its listing."""
        return (self.base_bytes + len(self.tail or b"")) // ROW_BYTES

    @classmethod
    def of(cls, row: Row) -> Parent:
        """
        Args:
            row: turn, tenant, ending; of its head `lost`, `base`, the bytes of that beginning, and `listing`.
        """
        number, tenant, ending, lost, base, base_bytes, tail = row
        return cls(number, tenant, ending == "open", lost or b"", base or 0, base_bytes or 0, tail)

    def flags(self, ask: Ask) -> set[int]:
        """All different ones in its listing."""
        return set(int64_of(listing_prefix(ask, self.tenant, self.base) + (self.tail or b""))[3::WIDTH])

    def listing(self, ask: Ask) -> dict[int, Listed]:
        """The listed messages by occurrence, in order."""
        numbers = int64_of(listing_prefix(ask, self.tenant, self.base) + (self.tail or b""))
        rows = zip(numbers[0::WIDTH], numbers[1::WIDTH], numbers[2::WIDTH], numbers[3::WIDTH], strict=True)
        return {row[2]: row for row in rows}


def listing_prefix(ask: Ask, tenant: int, base: int) -> bytes:
    """What a listing begins with."""
    rows = ask("SELECT rows FROM listing WHERE tenant = ? AND turn = ?", (tenant, base)) if base else ()
    return b"".join(row[0] for row in rows)


def remove_unused_listings(transaction: Transaction, conversations: Iterable[tuple[int, int]]) -> None:
    """Remove the beginnings of listings that no head of these conversations, behind their tenants, has any more."""
    transaction.write(UNUSED, [*conversations])
