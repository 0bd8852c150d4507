"""What was learnt of models is kept as rows, the newest of each, and not for ever."""

from __future__ import annotations

from functools import partial

from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.operation.changes import MODELS, counters
from palimpsest.store.operation.model_notes import KEPT_SECONDS, LIST, MAX_NOTES, REFUSAL, USAGE, ModelNote, notes, save


async def keep(database: Database, *changed: ModelNote, now: float) -> None:
    await database.transact(partial(save, changed=changed, now=now))


async def test_newest_note_of_a_model_stands_and_others_are_told(database: Database) -> None:
    ratio = ModelNote("", "mine", USAGE, 1.25, 2.0)
    await keep(database, ModelNote("up", "mine", LIST, 8192, 1.0), ratio, now=2.0)
    refusal = ModelNote("up", "mine", REFUSAL, 4096, 3.0)
    await keep(database, refusal, now=3.0)
    assert await database.ask(notes) == [refusal, ratio]
    assert (await database.ask(counters))[MODELS] == 2


async def test_note_that_nobody_renews_is_dropped(database: Database) -> None:
    await keep(database, ModelNote("up", "old", REFUSAL, 1.0, 0.0), now=0.0)
    new = ModelNote("up", "new", REFUSAL, 1.0, KEPT_SECONDS + 1)
    await keep(database, new, now=KEPT_SECONDS + 1)
    assert await database.ask(notes) == [new]


async def test_so_many_notes_are_kept_and_no_more(database: Database) -> None:
    named = [ModelNote("up", f"m-{at}", REFUSAL, 1.0, float(at)) for at in range(MAX_NOTES + 3)]
    await keep(database, *named, now=0.0)
    ((rows,),) = await database.read("SELECT count(*) FROM model_note")
    assert rows == MAX_NOTES + 1, "that of which there is the next is dropped at the next time"
