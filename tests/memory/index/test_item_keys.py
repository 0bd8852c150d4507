"""Recall goes by items and relations of its own scope where the policy says so, and quotes passages."""

from __future__ import annotations

from typing import Any

import pytest
from palimpsest.domain import Query, Reach, Recalled
from palimpsest.domain.memories import Item, Span
from palimpsest.features.items.consolidation import Consolidator
from palimpsest.features.items.writing import ItemKeeper
from palimpsest.memory.erasure.retiring import Retiring
from palimpsest.memory.index.item_keys import ItemKeys, Which
from palimpsest.memory.index.passage_tables import PassageTables
from palimpsest.memory.recall.recall import Recall
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.erasure.selection import Target
from palimpsest.telemetry.metrics import Metrics

from tests.kept_items import keep
from tests.remembered import DIMENSIONS, Past, WordEmbedder
from tests.talking import NOW

SECRET = b"a secret of thirty-two bytes ....."
QUESTION = "Where is the ferry ticket kept, under the roof?"
ANSWER = "It lies under the blue vase by the door."
OTHERS = ("We watered tomatoes all afternoon.", "Chess club meets on alternate evenings.", "The roof leaks again.")


class Shelf:
    """Recall over a database, by whatever keys a test sets."""

    def __init__(self, database: Database) -> None:
        self.which: Which = "off"
        self.shared = False
        self.database = database
        self.keys = ItemKeys(WordEmbedder.name, DIMENSIONS, lambda: (self.which, self.shared))
        tables = PassageTables(WordEmbedder.name, DIMENSIONS)
        self.recall = Recall(database, tables, WordEmbedder(), Metrics(), lambda: NOW, keys=lambda: self.keys)

    async def ask(self, text: str = QUESTION, **more: Any) -> Recalled:
        query = Query("acme", "", text, **{"reach": Reach.USER, "user": "ann", **more})
        return await self.recall.recall(query, 10)

    async def rank_of(self, text: str, **more: Any) -> int:
        told = [candidate.memory.text for candidate in (await self.ask(**more)).candidates]
        return told.index(text) if text in told else len(told)


@pytest.fixture
async def shelf(database: Database, past: Past) -> Shelf:
    said = await past.say(*OTHERS, ANSWER, user="ann")
    await keep(database, said, Item("the ferry ticket is kept under the vase", (Span(said[3], 0, 9),)))
    await past.index()
    await Consolidator(database, WordEmbedder(), Metrics(), lambda: NOW).run()
    return Shelf(database)


def cosine_of(recalled: Recalled, text: str) -> float:
    (found,) = [one.signals["meaning"][1] for one in recalled.candidates if one.memory.text == text] or [-1.0]
    return found


async def test_an_item_leads_to_the_passage_that_it_was_made_of_and_is_not_quoted(shelf: Shelf) -> None:
    before = cosine_of(await shelf.ask(), ANSWER)
    shelf.which = "items"
    found = await shelf.ask()
    assert cosine_of(found, ANSWER) > before + 0.1
    assert {candidate.memory.text for candidate in found.candidates} <= {ANSWER, *OTHERS}


async def test_whether_anything_helps_is_said_by_the_passages_themselves(shelf: Shelf) -> None:
    before = await shelf.ask()
    shelf.which = "items"
    assert (await shelf.ask()).helps == before.helps
    silent = await shelf.ask(least_help=before.helps + 0.01)
    assert (silent.candidates, silent.admitted) == ((), False)


async def test_off_reads_nothing_of_items(shelf: Shelf) -> None:
    await shelf.ask()
    assert repr(shelf.keys) == "<ItemKeys [0 scopes]>"
    assert shelf.keys.take_used() == set()


@pytest.mark.parametrize("more", [{"user": "bob"}, {"reach": Reach.CONVERSATION}])
async def test_items_of_others_lead_nowhere(shelf: Shelf, past: Past, more: dict[str, Any]) -> None:
    await past.say(ANSWER, *OTHERS, user="bob", conversation="c-bob")
    await past.index()
    query = {"user": "bob", **more}
    if "reach" in more:
        query = {"reach": Reach.CONVERSATION, "user": ""}
    shelf.which = "off"
    before = [(c.memory.id, c.score) for c in (await shelf.ask(**query)).candidates]
    shelf.which = "items"
    assert [(c.memory.id, c.score) for c in (await shelf.ask(**query)).candidates] == before


async def test_items_that_change_are_read_again_and_hidden_ones_lead_nowhere(shelf: Shelf, past: Past) -> None:
    shelf.which = "items"
    first = cosine_of(await shelf.ask(), ANSWER)
    await shelf.database.write([("UPDATE item SET state = 'superseded'", [()])])
    assert cosine_of(await shelf.ask(), ANSWER) == first, "nothing said that items changed"
    shelf.keys.forget()
    assert cosine_of(await shelf.ask(), ANSWER) < first
    await shelf.database.write([("UPDATE item SET state = 'current'", [()])])
    retiring = Retiring(shelf.database, SECRET, lambda: NOW + 1, settle_seconds=0.0)
    receipt = await retiring.retire(Target(tenant="acme", matching="blue vase"))
    assert await shelf.rank_of(ANSWER) == len((await shelf.ask()).candidates)
    assert receipt is not None
    await retiring.undo(receipt["id"])
    await past.index()
    assert cosine_of(await shelf.ask(), ANSWER) == pytest.approx(first, abs=0.01)


async def test_what_led_to_a_recalled_passage_is_counted(shelf: Shelf) -> None:
    shelf.which = "items"
    await shelf.ask()
    keeper = ItemKeeper(shelf.database, Metrics(), lambda: NOW + 5, lambda: None, shelf.keys.take_used)
    await keeper.count_uses()
    await keeper.count_uses()
    assert await shelf.database.read("SELECT uses, used_at FROM item") == [(1, NOW + 5)]


async def related(database: Database, past: Past, *users: str) -> None:
    """Items of these users relate ferries to harbours."""
    for user in users:
        said = await past.say(f"Ferries and other harbours of {user}", user=user, conversation=f"c-{user}")
        await keep(database, said, Item("Ferries and other harbours", (Span(said[0], 0, 9),)))
    await past.say("They paint harbours.", "The roof leaks.", user="ann", conversation="c-ann-2")
    await past.index()
    await Consolidator(database, WordEmbedder(), Metrics(), lambda: NOW).run()


async def boosted(shelf: Shelf, text: str = "They paint harbours.") -> float:
    shelf.which = "off"
    before = cosine_of(await shelf.ask("Which ferries have a roof?"), text)
    shelf.which = "graph"
    return cosine_of(await shelf.ask("Which ferries have a roof?"), text) - before


async def test_relations_of_a_user_lead_to_passages_and_those_of_others_do_not(database: Database, past: Past) -> None:
    shelf = Shelf(database)
    await related(database, past, "bob", "eve", "joe")
    assert await boosted(shelf) == 0
    await related(database, past, "ann")
    assert await boosted(shelf) > 0


@pytest.mark.parametrize(("users", "leads"), [(("bob", "eve"), False), (("bob", "eve", "joe"), True)])
async def test_shared_relations_lead_if_three_users_spoke_of_them(
    database: Database, past: Past, users: tuple[str, ...], leads: bool
) -> None:
    shelf = Shelf(database)
    shelf.shared = True
    await related(database, past, *users)
    assert (await boosted(shelf) > 0) == leads


async def test_relations_never_leave_a_tenant(database: Database, past: Past) -> None:
    shelf = Shelf(database)
    shelf.shared = True
    for user in ("bob", "eve", "joe"):
        said = await past.say("Ferries and other harbours", user=user, conversation=f"c-{user}", tenant="other")
        await keep(database, said, Item("Ferries and other harbours", (Span(said[0], 0, 9),)))
    await past.say("They paint harbours.", "The roof leaks.", user="ann", conversation="c-ann-2")
    await past.index()
    await Consolidator(database, WordEmbedder(), Metrics(), lambda: NOW).run()
    assert await boosted(shelf) == 0
