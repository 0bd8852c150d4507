"""Reminders as rows: they wait, come once, wait again where they did not reach the model, and go with their passage."""

from __future__ import annotations

from palimpsest.store.engine import Engine
from palimpsest.store.families.passages import remove_passages
from palimpsest.store.journal import Journal
from palimpsest.store.operation.changes import REMINDERS, counters
from palimpsest.store.turns.reminders import remind, states, take_up, wait_again, waiting_reminders, withdraw

from tests.talking import NOW, Talk

UNTIL = NOW + 60


async def remembered(database: Engine) -> tuple[int, int]:
    """A passage and its message."""
    await Talk(Journal(database), "acme", "c-1").say("The staging worker listens on port 7431.")
    ((memory, occurrence),) = await database.read("SELECT id, occurrence FROM memory ORDER BY id LIMIT 1")
    await database.transact(lambda transaction: remind(transaction, memory, UNTIL))
    return memory, occurrence


async def test_what_waits_is_listed_until_its_time_is_over_or_it_is_withdrawn(database: Engine) -> None:
    memory, _ = await remembered(database)
    (one,) = await database.ask(lambda ask: waiting_reminders(ask, NOW))
    assert (one["memory"], one["tenant"], one["conversation"], one["until"]) == (memory, "acme", "c-1", UNTIL)
    assert one["text"] == "The staging worker listens on port 7431."
    assert await database.ask(lambda ask: waiting_reminders(ask, UNTIL)) == []
    await database.transact(lambda transaction: withdraw(transaction, memory))
    assert await database.ask(lambda ask: waiting_reminders(ask, NOW)) == []
    assert (await database.ask(counters))[REMINDERS] == 2, "every process learns of both"


async def test_what_came_waits_no_longer_unless_it_did_not_reach_the_model_or_is_asked_for_again(
    database: Engine,
) -> None:
    memory, _ = await remembered(database)

    async def state() -> dict[int, str]:
        return await database.ask(lambda ask: states(ask, [memory], NOW))

    await database.transact(lambda transaction: take_up(transaction, [(3, memory)]))
    assert await state() == {memory: "came"}
    await database.transact(lambda transaction: wait_again(transaction, [3]))
    assert await state() == {memory: "waiting"}
    await database.transact(lambda transaction: take_up(transaction, [(4, memory)]))
    await database.transact(lambda transaction: remind(transaction, memory, UNTIL))
    assert await state() == {memory: "waiting"}


async def test_it_goes_with_its_passage(database: Engine) -> None:
    _, occurrence = await remembered(database)
    await database.transact(lambda transaction: remove_passages(transaction, 1, f"[{occurrence}]"))
    assert await database.read("SELECT count(*) FROM reminder") == [(0,)]
