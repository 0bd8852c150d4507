"""The losses of a turn over HTTP: what its client no longer sends, and what came back."""

from __future__ import annotations

from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.journal import Journal

from tests.edge.admin.asking import ACME, House
from tests.talking import Talk


async def test_what_a_turn_no_longer_carries_is_listed(house: House, database: Database) -> None:
    talk = Talk(Journal(database), "key:acme", "c-work")
    await talk.say("Never push to main without a review, please.")
    last = await talk.say("The parser is in src/parser.py, look there.")
    kept = await house.get(f"turns/{last.turn.id}/losses", ACME)
    assert (kept["removed_messages"], kept["losses"]) == (0, [])
    talk.history = ()  # the client starts over
    compacted = await talk.say("Go on.")
    found = await house.get(f"turns/{compacted.turn.id}/losses", ACME)
    assert found["removed_messages"] == 4
    assert [(one["kind"], one["text"]) for one in found["losses"]] == [
        ("rule", "Never push to main without a review, please."),
        ("file", "src/parser.py"),
    ]


async def test_a_turn_may_be_named_as_where_it_is_shown(house: House) -> None:
    newest = await house.get("turns/newest", ACME)
    assert (await house.get("turns/newest/losses", ACME))["turn"] == newest["turn"]
    numbered = await house.get("conversations/c-1/turns/1", ACME)
    assert (await house.get(f"turns/{numbered['turn']}/losses", ACME))["turn"] == numbered["turn"]


async def test_another_tenants_turn_is_not_there(house: House) -> None:
    turns = (await house.get("turns"))["turns"]
    foreign = next(one["turn"] for one in turns if one["tenant"] == "key:globex")
    assert (await house.ask(f"/memory/v1/turns/{foreign}/losses", ACME))[0] == 404
