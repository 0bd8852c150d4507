"""Items and knowledge are told besides passages, with the messages that they are from, where the policy says so."""

from __future__ import annotations

import pytest
from palimpsest.core.block.packing import pack
from palimpsest.domain import BlockKind, Budget, Recalled
from palimpsest.domain.memories import Item, Span
from palimpsest.features.items.consolidation import Consolidator
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.telemetry.metrics import Metrics

from tests.kept_items import keep
from tests.memory.index.test_item_keys import Shelf
from tests.remembered import Past, WordEmbedder
from tests.talking import NOW

QUESTION = "Where is the ferry ticket kept, and what is PostgreSQL?"
TICKET = "the ferry ticket is kept under the vase"
SAID = ("We water tomatoes.", "Noted.", "It lies under the vase, the ferry ticket.", "Good.")
DATABASE = "PostgreSQL is a relational database."
KNOWN = "PostgreSQL is a kind of relational database"


@pytest.fixture
async def told(database: Database, past: Past) -> Shelf:
    said = await past.say(*SAID, user="ann")
    known = await past.say(DATABASE, user="ann", conversation="c-2")
    await keep(database, said, Item(TICKET, (Span(said[0], 0, 9), Span(said[2], 0, 9))))
    await keep(database, known, Item(DATABASE, (Span(known[0], 0, len(DATABASE)),)))
    await past.index()
    await Consolidator(database, WordEmbedder(), Metrics(), lambda: NOW).run()
    shelf = Shelf(database)
    shelf.which = "tier"
    return shelf


def noted(recalled: Recalled) -> list[str]:
    return [one.memory.text for one in recalled.candidates if one.memory.role == "noted"]


async def test_an_item_and_what_the_graph_states_are_told_besides_passages(told: Shelf) -> None:
    assert {TICKET, KNOWN} <= {*noted(await told.ask(QUESTION))}
    told.which = "both"
    assert noted(await told.ask(QUESTION)) == []


async def test_a_block_names_every_message_that_an_item_is_from_so_that_it_goes_with_each(told: Shelf) -> None:
    recalled = await told.ask(QUESTION)
    block, _ = pack(recalled.candidates, Budget(2000, 600), BlockKind.RECALL, QUESTION)
    assert block is not None and f"noted: {TICKET}\n" in block.text
    (item,) = [one.memory for one in recalled.candidates if one.memory.text == TICKET]
    assert {*item.also} <= {*block.sources} and len(item.also) == 2


async def test_what_was_merged_into_another_item_is_told_once(told: Shelf, database: Database, past: Past) -> None:
    said = await past.say("Under the vase lies the ticket.", "Yes.", user="ann")
    await keep(database, said, Item(f"{TICKET}.", (Span(said[0], 0, 9),)))
    await past.index()
    outcome = await Consolidator(database, WordEmbedder(), Metrics(), lambda: NOW).run()
    assert outcome.done["merged"] == 1
    assert len([text for text in noted(await told.ask(QUESTION)) if text.startswith(TICKET)]) == 1


async def test_what_the_model_sees_of_it_already_is_not_told(told: Shelf, database: Database) -> None:
    ((first, full),) = await database.read("SELECT id, fingerprint FROM occurrence ORDER BY id LIMIT 1")
    assert TICKET not in noted(await told.ask(QUESTION, excluded=frozenset({first})))
    assert TICKET not in noted(await told.ask(QUESTION, visible_fulls=frozenset({full})))


async def test_nobody_is_told_what_others_said(told: Shelf, past: Past) -> None:
    await past.say(*SAID, DATABASE, user="bob", conversation="c-bob")
    await past.index()
    assert noted(await told.ask(QUESTION, user="bob")) == []
