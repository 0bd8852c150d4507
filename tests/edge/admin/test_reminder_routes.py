"""Reminders: a passage waits for the next request of its conversation, once, until a time, and goes with its source."""

from __future__ import annotations

from palimpsest.edge.admin.reminder_routes import WAIT_SECONDS
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.turns.reminders import states, waiting_reminders

from tests.edge.admin.asking import ACME, House
from tests.talking import NOW


async def one_memory(house: House) -> int:
    return int((await house.get("memories?conversation=c-1&role=user"))["memories"][0]["memory"])


async def test_what_was_asked_for_waits_until_it_is_withdrawn(house: House) -> None:
    memory = await one_memory(house)
    status, shown = await house.send("POST", "reminders", {"memory": memory}, ACME)
    assert (status, shown["conversation"], shown["text"]) == (200, "c-1", "second in c-1")
    assert shown["until"] == NOW + 1 + WAIT_SECONDS
    assert (await house.get("reminders?conversation=c-1", ACME))["reminders"] == [shown]
    assert (await house.get("reminders?conversation=c-2", ACME))["reminders"] == []
    assert (await house.send("DELETE", f"reminders/{memory}", headers=ACME))[0] == 200
    assert (await house.get("reminders"))["reminders"] == []


async def test_another_tenants_passage_cannot_be_asked_for(house: House) -> None:
    (foreign, *_) = (await house.get("memories?tenant=key:globex"))["memories"]
    assert (await house.send("POST", "reminders", {"memory": foreign["memory"]}, ACME))[0] == 404
    assert (await house.send("DELETE", f"reminders/{foreign['memory']}", headers=ACME))[0] == 404
    assert (await house.send("POST", "reminders", {"memory": foreign["memory"]}))[0] == 200
    assert (await house.get("reminders", ACME))["reminders"] == []


async def test_it_waits_until_its_time_is_over_and_goes_with_its_source(house: House, database: Database) -> None:
    memory = await one_memory(house)
    await house.send("POST", "reminders", {"memory": memory})
    late = NOW + WAIT_SECONDS + 2
    assert await database.ask(lambda ask: waiting_reminders(ask, late)) == []
    assert await database.ask(lambda ask: states(ask, [memory], late)) == {}
    assert (await house.ask("/memory/v1/conversations/c-1", method="DELETE"))[0] == 200
    assert await database.ask(lambda ask: ask("SELECT count(*) FROM reminder")) == [(0,)]
