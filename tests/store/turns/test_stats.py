from dataclasses import asdict
from functools import partial
from pathlib import Path

from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.journal import Journal
from palimpsest.store.knowledge.fact_extraction import begin
from palimpsest.store.operation.assist_usage import AssistUsage, add

from tests.databases import database_in
from tests.talking import NOW, heard, record, user


async def test_search_times_are_percentiles_of_the_turns_that_searched(tmp_path: Path) -> None:
    database = database_in(tmp_path, "journal.db")
    await database.open()
    journal = Journal(database)
    for ms in [*range(1, 101), None]:
        told = {"elapsed_ms": {"recall": ms}} if ms else {"note": "calm"}
        await journal.write([record((user(f"question {ms}"),), conversation=f"c-{ms}", explain=told)])
    stats = await journal.stats()
    await database.close()
    assert (stats["turns"], stats["searches"]) == (101, 100)
    assert (stats["search_ms_p50"], stats["search_ms_p95"]) == (50, 95)


async def test_facts_are_counted_where_they_are_kept(tmp_path: Path) -> None:
    database = database_in(tmp_path, "journal.db")
    await database.open()
    journal = Journal(database)
    assert (await journal.stats())["facts"] is None
    await database.transact(lambda t: begin(t, 1))
    assert (await journal.stats())["facts"] == 0
    await database.close()


async def test_lag_is_the_oldest_message_that_waits(tmp_path: Path) -> None:
    database = database_in(tmp_path, "journal.db")
    await database.open()
    journal = Journal(database)
    assert (await journal.stats())["oldest_pending_at"] == 0
    asked = record((user("hello there"),))
    await journal.write([asked])
    await journal.write(answers=[heard(asked, "hi")])
    stats = await journal.stats()
    await database.close()
    assert (stats["pending"], stats["oldest_pending_at"]) == (2, NOW)
    assert stats["bytes"] > 0


async def test_what_models_used_is_told_by_role(database: Database) -> None:
    used = AssistUsage(2, 1, 90, 10, 0.25)
    await database.transact(partial(add, day="2026-03-31", role="selector", tenant="", usage=used))
    (told,) = (await Journal(database).stats())["models"]
    assert told == {"day": "2026-03-31", "role": "selector"} | asdict(used)
