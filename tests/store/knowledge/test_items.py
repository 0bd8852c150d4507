"""Items are kept with their sources, hidden with a retired source, and go with an erased one."""

from __future__ import annotations

import pytest
from palimpsest.core.archive.receipt import is_done
from palimpsest.domain.memories import Item, Span
from palimpsest.memory.erasure.forgetting import Forgetting
from palimpsest.memory.erasure.retiring import Retiring
from palimpsest.store.engine import Transaction
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.erasure.selection import Target
from palimpsest.store.knowledge.items import (
    Group,
    claim,
    groups,
    unread,
    waiting_conversations,
    write_items,
)

from tests.databases import is_held
from tests.kept_items import keep, texts
from tests.remembered import Past
from tests.talking import NOW

SECRET = b"a secret of thirty-two bytes ....."
HARBOUR = "the harbour master is called Wilhelmina Okonkwo-Brandt"
ARCHIVE = "the archive of the lighthouse stands in building 14"


def clock() -> float:
    return NOW + 100


def item(text: str, *occurrences: int) -> Item:
    return Item(text, tuple(Span(occurrence, 0, 10) for occurrence in occurrences), f"what of {text}?", "port")


async def test_items_are_kept_with_their_sources_and_what_was_read_is_not_read_again(
    database: Database, past: Past
) -> None:
    said = await past.say(HARBOUR, "noted", user="ann", scope="sea")
    (waiting,) = await database.ask(lambda ask: waiting_conversations(ask, NOW))
    assert (waiting.tenant_name, waiting.chars) == ("acme", len(HARBOUR) + len("noted"))
    assert [message.occurrence for message in await database.ask(lambda ask: unread(ask, waiting.conversation))] == [
        *said
    ]
    (first,) = await keep(database, said, item(HARBOUR, *said))
    assert await database.ask(groups) == [Group(1, "acme", "ann", 0, "sea")]
    assert await texts(database) == [HARBOUR]
    assert await database.read(
        "SELECT occurrence, start, stop FROM item_source WHERE item = ? ORDER BY 1", (first,)
    ) == [(occurrence, 0, 10) for occurrence in said]
    assert await database.ask(lambda ask: waiting_conversations(ask, NOW)) == []


async def test_one_worker_reads_a_conversation_at_a_time_until_its_lease_ends(database: Database, past: Past) -> None:
    (said,) = await past.say(HARBOUR)

    def work(transaction: Transaction) -> list[object]:
        first = claim(transaction, 1, "a", NOW, NOW + 60)
        second = claim(transaction, 1, "b", NOW + 1, NOW + 61)
        late = claim(transaction, 1, "b", NOW + 60, NOW + 120)
        lost = write_items(transaction, 1, "a", said, [item(HARBOUR, said)], "test/1", NOW)
        return [first, second, late, lost]

    assert await database.transact(work) == [True, False, True, []]
    assert await texts(database) == []


async def test_what_was_erased_or_retired_while_a_writer_wrote_is_not_kept(database: Database, past: Past) -> None:
    first, second = await past.say(HARBOUR, ARCHIVE)
    await Retiring(database, SECRET, clock, settle_seconds=0.0).retire(Target(tenant="acme", matching="harbour"))
    await keep(database, (first, second), item(HARBOUR, first), item("both", first, second), item(ARCHIVE, second))
    assert await texts(database) == [ARCHIVE]


async def test_an_item_is_hidden_while_a_source_is_retired(database: Database, past: Past) -> None:
    first, second = await past.say(HARBOUR, ARCHIVE)
    old, new = await keep(database, (first, second), item("an older form", second), item("both", first, second))
    await database.write([("UPDATE item SET state = 'merged', heir = ? WHERE id = ?", [(new, old)])])
    assert await texts(database) == ["both"]
    retiring = Retiring(database, SECRET, clock, settle_seconds=0.0)
    receipt = await retiring.retire(Target(tenant="acme", matching="harbour"))
    assert await texts(database) == ["an older form"]
    assert receipt is not None
    await retiring.undo(receipt["id"])
    assert await texts(database) == ["both"]


@pytest.mark.parametrize("target", [Target(tenant="acme", matching="harbour"), Target(tenant="acme", user="ann")])
async def test_erasing_a_source_erases_items_their_log_and_what_follows_from_them(
    database: Database, past: Past, target: Target
) -> None:
    said = await past.say(HARBOUR, ARCHIVE, user="ann")
    other = await past.say("the quay is closed on Sundays", conversation="c-2", user="bob")
    gone, kept = await keep(database, said, item(HARBOUR, *said), item(ARCHIVE, said[1]))
    (theirs,) = await keep(database, other, item("closed on Sundays", *other))
    await database.write(
        [
            ("INSERT INTO consolidation(key, tenant, at) VALUES ('k-1', 1, 0)", [()]),
            (
                "INSERT INTO consolidation_step(tenant, run, item, heir, what, why, at)"
                " VALUES (1, 1, ?, ?, 'merged', ?, 0)",
                [(kept, gone, "slot: Wilhelmina Okonkwo-Brandt, master")],
            ),
            ("UPDATE item SET state = 'merged', heir = ? WHERE id = ?", [(gone, kept)]),
            (
                "INSERT INTO node(tenant, kind, name) VALUES (1, 'entity', ?)",
                [("Okonkwo-Brandt and sons",), ("harbour",), ("quay",)],
            ),
            (
                "INSERT INTO edge(tenant, source, relation, target) VALUES (1, ?, 'related-to', ?)",
                [(1, 2), (2, 3)],
            ),
            ("INSERT INTO edge_evidence(tenant, edge, item) VALUES (1, ?, ?)", [(1, gone), (2, gone), (2, theirs)]),
        ]
    )
    receipt = await Forgetting(database, SECRET, clock, settle_seconds=0.0).erase(target)
    assert receipt is not None
    assert is_done(receipt)
    is_whole = target.user != ""
    assert receipt["erased"]["items"] == (2 if is_whole else 1)
    assert await texts(database) == (["closed on Sundays"] if is_whole else [ARCHIVE, "closed on Sundays"])
    assert await database.read("SELECT * FROM consolidation_step") == []
    assert await database.read("SELECT * FROM consolidation") == []
    assert await database.read("SELECT name FROM node ORDER BY id") == [("harbour",), ("quay",)]
    assert await database.read("SELECT edge, item FROM edge_evidence") == [(2, theirs)]
    assert not is_held(database, "Okonkwo")
    assert len(await database.read("SELECT * FROM item_progress")) == (1 if is_whole else 2)
