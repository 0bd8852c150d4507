"""Blocks as rows: what was added to messages, which quotes others, and how it goes with both."""

from __future__ import annotations

from collections.abc import Sequence

from palimpsest.store.engine import Ask, Transaction, ids
from palimpsest.store.families.family import OF_MESSAGES, Erased, Family, put_zeros


def quoting(ask: Ask, tenant: int, occurrences: Sequence[int]) -> list[int]:
    """The blocks of the tenant that quote one of these messages, by the occurrence that each stands in."""
    gone = set(occurrences)
    rows = ask(
        "SELECT block.occurrence, block.occurrences FROM block"
        " JOIN conversation ON conversation.id = block.conversation WHERE conversation.tenant = ?",
        (tenant,),
    )
    return [anchor for anchor, quoted in rows if not gone.isdisjoint(numbers_of(quoted))]


def erase_quotes(transaction: Transaction, tenant: int, occurrences: Sequence[int], erased: Erased) -> None:
    """Remove every block of the tenant that quotes one of these, wherever it was said."""
    erase_blocks(transaction, quoting(transaction.read, tenant, occurrences), erased)


def erase_blocks(transaction: Transaction, blocks: Sequence[int], erased: Erased) -> None:
    """Remove the blocks that these occurrences carry."""
    which = ids(blocks)
    _collect_texts(transaction.read, which, erased)
    _remove(transaction, 0, which)


def retire_blocks(transaction: Transaction, blocks: Sequence[int], retirement: int) -> None:
    """Retire the blocks that these occurrences carry, but for those that are retired already."""
    rows = [(retirement, block) for block in blocks]
    transaction.write("UPDATE block SET retired = ? WHERE occurrence = ? AND retired = 0", rows)


def numbers_of(listed: str) -> list[int]:
    """A JSON list of numbers, as `ids` writes it."""
    return [int(number) for number in listed.strip("[]").split(",") if number]


def _collect_texts(ask: Ask, which: str, erased: Erased) -> None:
    erased.take("blocks", ask(f"SELECT text FROM block WHERE {OF_MESSAGES}", (which,)))


def _remove(transaction: Transaction, _tenant: int, which: str) -> None:
    put_zeros(transaction, "block", ("text",), OF_MESSAGES, which)
    transaction.write(f"DELETE FROM block WHERE {OF_MESSAGES}", [(which,)])


def _remove_conversation(transaction: Transaction, conversation: int, erased: Erased) -> None:
    erased.take("blocks", transaction.read("SELECT text FROM block WHERE conversation = ?", (conversation,)))
    transaction.write("DELETE FROM block WHERE conversation = ?", [(conversation,)])


BLOCKS = Family(
    words={"block": ("text",)},
    numbers=frozenset(),
    take=_collect_texts,
    remove=_remove,
    remove_conversation=_remove_conversation,
)
