"""Items in a real database, as a writer keeps them, for tests of what is done with them."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from palimpsest.domain.memories import Item, Span
from palimpsest.store.engine import Transaction
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.knowledge.items import StoredItem, claim, groups, items_of, write_items

from tests.remembered import Past
from tests.talking import NOW

DAY_SECONDS = 86_400.0


async def keep(database: Database, occurrences: Sequence[int], *items: Item, worker: str = "w") -> list[int]:
    """Write these items as what a worker made of a conversation up to the last of these occurrences."""
    ((conversation,),) = await database.read("SELECT conversation FROM occurrence WHERE id = ?", (occurrences[-1],))

    def work(transaction: Transaction) -> list[int]:
        assert claim(transaction, conversation, worker, NOW, NOW + 60)
        return write_items(transaction, conversation, worker, occurrences[-1], items, "test/1", NOW)

    return await database.transact(work)


async def tell(past: Past, *texts: str, days: float = 0, conversation: str = "c-1", **more: object) -> list[int]:
    """A user says these, so many days after the first; each is kept as an item of its own. Returns their ids."""
    written = []
    for at, text in enumerate(texts):
        said = await past.say(
            text, conversation=f"{conversation}-{days}-{at}", created_at=NOW + days * DAY_SECONDS + at, **more
        )
        written += await keep(past.database, said, Item(text, (Span(said[0], 0, len(text)),)))
    return written


async def in_use(database: Database) -> list[StoredItem]:
    """All items that are in use."""
    found = await database.ask(groups)
    return [item for group in found for item in await database.ask(functools.partial(items_of, group=group))]


async def texts(database: Database) -> list[str]:
    return [item.text for item in await in_use(database)]
