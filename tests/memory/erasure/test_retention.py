"""What is too old goes by itself, a little at a time, does not come back with a resend, and nothing else goes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from palimpsest.core.archive.tombstones import scope_prints
from palimpsest.core.caller.identity import tenant_key
from palimpsest.domain import Block, BlockKind, Record, Role
from palimpsest.memory.erasure.retention import Sweeper
from palimpsest.memory.erasure.retiring import DAY_SECONDS, DAYS, Retiring
from palimpsest.settings.policy import RetentionPolicy
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.erasure.selection import Target
from palimpsest.store.journal import Journal
from palimpsest.telemetry.metrics import Metrics

from tests.clock import Clock
from tests.talking import NOW, Talk, heard, record, user

SECRET = b"a secret of thirty-two bytes ....."
LONG_SECONDS = 30.0  # of a sweep that nobody waits for


@pytest.fixture
def clock() -> Clock:
    return Clock(NOW)


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


def sweeper(database: Database, clock: Clock, metrics: Metrics | None = None, **settings: Any) -> Sweeper:
    policy = RetentionPolicy(**settings)
    return Sweeper(database, SECRET, lambda: policy, metrics or Metrics(), clock)


def said_by(key: str, asked: Record) -> Record:
    """The record as the archivist makes it, with what it belongs to."""
    return replace(asked, scopes=scope_prints(asked.turn, tenant_key(SECRET, key)))


async def texts(database: Database) -> set[str]:
    return {row[0] for row in await database.read("SELECT text FROM content")} - {""}


async def swept(sweeper: Sweeper) -> Mapping[str, int]:
    sweep = await sweeper.sweep(LONG_SECONDS)
    assert sweep.is_complete
    return sweep.swept


async def age(database: Database, days: float) -> None:
    """Let all that is stored grow older."""
    for table in ("occurrence", "turn", "conversation"):
        await database.write([(f"UPDATE {table} SET created_at = created_at - ?", [(days * DAY_SECONDS,)])])


async def test_nothing_goes_by_default(database: Database, journal: Journal, clock: Clock) -> None:
    await Talk(journal).say("hello there, archive")
    await age(database, 10_000)
    assert await swept(sweeper(database, clock)) == {}


async def test_what_is_older_than_its_period_goes_and_what_is_younger_stays(
    database: Database, journal: Journal, clock: Clock, metrics: Metrics
) -> None:
    await Talk(journal, conversation="c-old").say("an old question", "an old answer")
    talk = Talk(journal)
    await talk.say("old, too", "as old", explain={"query": {"text": "old words"}})
    await age(database, 200)
    block = Block("<palimpsest-memory>an old question</palimpsest-memory>", BlockKind.RECALL, (1,), 9)
    await talk.say("but this is new", block=block, anchor=2, explain={"query": {"text": "new words"}})
    sweeping = sweeper(database, clock, metrics, turns="180d")
    overview = await sweeping.overview()
    assert overview.due == {"turns": 4}
    assert overview.oldest_seconds["turns"] == pytest.approx(200 * DAY_SECONDS)
    assert await swept(sweeping) == {"turns": 4}
    assert await texts(database) == {"but this is new", "answer to but this is new"}
    assert await database.read("SELECT public FROM conversation") == [("c-1",)]
    assert await database.read("SELECT count(*) FROM block") == [(0,)]
    told = [explain for (explain,) in await database.read("SELECT explain FROM turn ORDER BY id")]
    assert ["old words" in one for one in told] == [False, False]
    assert ["new words" in one for one in told] == [False, True]
    assert b'palimpsest_retention_rows_swept_total{kind="turns"} 4.0' in metrics.render()
    await talk.say("and it goes on")
    assert len(await journal.request("acme", "c-1")) == 5
    assert await swept(sweeping) == {}


async def test_a_resend_of_what_went_is_not_kept_again(database: Database, journal: Journal, clock: Clock) -> None:
    talk = Talk(journal)
    await talk.say("an old question", "an old answer")
    await age(database, 200)
    await swept(sweeper(database, clock, turns="180d"))
    again = said_by("acme", record([*talk.history, user("I am back")], conversation="c-again"))
    await journal.write([again])
    await journal.write(answers=[heard(again, "welcome")])
    assert await texts(database) == {"I am back", "welcome"}


async def test_each_kind_has_its_own_period(database: Database, journal: Journal, clock: Clock) -> None:
    tool = {"role": "tool", "tool_call_id": "t-1", "content": "nine files"}
    await journal.write([record([user("list them"), tool], explain={"event": "start"})])
    beside = record([user("a title, please")], conversation="c-2", role=Role.SIDE)
    await journal.write([beside])
    await journal.write(answers=[heard(beside, "Ships")])
    await age(database, 20)
    await database.write([("UPDATE turn SET ending = 'complete'", [()])])
    sweeping = sweeper(database, clock, turns="180d", tool_results="14d", side_requests="7d", explain="10d")
    assert await swept(sweeping) == {"tool_results": 1, "side_requests": 2, "explain": 1}
    assert await texts(database) == {"list them"}
    assert await database.read("SELECT public FROM conversation") == [("c-1",)]
    assert (await journal.turn("acme", "c-1", 1) or {})["explain"] == {"swept": True}
    assert await swept(sweeping) == {}


async def test_a_tenant_has_periods_of_its_own(database: Database, journal: Journal, clock: Clock) -> None:
    await Talk(journal).say("of acme", "yes")
    await Talk(journal, tenant="globex").say("of globex", "no")
    await age(database, 20)
    await swept(sweeper(database, clock, turns="10d", tenants={"acm*": {"turns": "forever"}}))
    assert await texts(database) == {"of acme", "yes"}
    assert await database.read("SELECT name FROM tenant") == [("acme",)]


@pytest.mark.sqlite
async def test_the_oldest_go_until_the_store_is_small_enough_and_the_file_shrinks(
    database: Database, journal: Journal, clock: Clock
) -> None:
    for number in range(60):
        await Talk(journal, conversation=f"c-{number}").say(f"question {number} " * 400, f"answer {number} " * 400)
    clock.now += DAY_SECONDS
    sweeping = sweeper(database, clock, max_store_bytes="1200KB")
    before = (await sweeping.overview()).file
    assert before.used_bytes > 1_200_000
    await swept(sweeping)
    await database.truncate_log()
    after = (await sweeping.overview()).file
    assert after.used_bytes <= 1_200_000
    assert after.bytes < before.bytes
    left = [public for (public,) in await database.read("SELECT public FROM conversation ORDER BY id")]
    assert left == [f"c-{number}" for number in range(60 - len(left), 60)]
    assert left
    assert await swept(sweeping) == {}


async def test_a_run_ends_with_its_time_and_the_next_one_goes_on(
    database: Database, journal: Journal, clock: Clock
) -> None:
    for number in range(8):
        await Talk(journal, conversation=f"c-{number}").say(f"question {number}")
    await age(database, 20)
    sweeping = sweeper(database, clock, turns="10d")
    first = await sweeping.sweep(0)
    assert (first.swept, first.is_complete) == ({}, False)
    assert await swept(sweeping) == {"turns": 16}


async def test_one_process_sweeps_at_a_time(database: Database, journal: Journal, clock: Clock) -> None:
    for number in range(30):
        await Talk(journal, conversation=f"c-{number}").say(f"question {number}")
    await age(database, 20)
    both = [sweeper(database, clock, turns="10d") for _ in range(2)]
    first, second = await asyncio.gather(both[0].sweep(LONG_SECONDS), both[1].sweep(0))
    assert (first.swept["turns"], first.was_alone, second.was_alone) == (60, True, False)
    holds = [await one._hold() for one in both]
    assert holds == [True, False]
    assert await both[0]._hold()
    clock.now += 1000
    assert await both[1]._hold()


async def test_a_process_that_stops_lets_another_one_take_over_at_once(database: Database, clock: Clock) -> None:
    first, second = (sweeper(database, clock, turns="10d") for _ in range(2))
    running = asyncio.create_task(first.run())
    async with asyncio.timeout(5):
        while not first._held_until_ms:  # noqa: ASYNC110 (all there is)
            await asyncio.sleep(0.01)
    assert not await second._hold()
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    assert await second._hold()


async def test_what_was_retired_is_erased_when_it_can_no_longer_be_taken_back(
    database: Database, journal: Journal, clock: Clock
) -> None:
    talk = Talk(journal)
    await talk.say("hello there, archive", "hello")
    await talk.say("an old question", "an old answer")
    receipt = await Retiring(database, SECRET, clock, settle_seconds=0.0).retire(Target(conversation="c-1", number=2))
    assert receipt is not None
    sweeping = sweeper(database, clock)
    assert await swept(sweeping) == {}
    clock.now += DAYS * DAY_SECONDS
    assert await swept(sweeping) == {"retired": 2}
    assert await texts(database) == {"hello there, archive", "hello"}
    assert await database.read("SELECT count(*) FROM retirement") == [(0,)]
    again = said_by("acme", record([*talk.history, user("I am back")], conversation="c-again"))
    await journal.write([again])
    assert "an old question" not in await texts(database)


@pytest.mark.sqlite
async def test_words_leave_the_disk_when_the_index_is_merged(
    database: Database, journal: Journal, clock: Clock
) -> None:
    await Talk(journal, conversation="c-old").say("the reference is ZQX-7741-KESTREL")
    await age(database, 20)
    await Talk(journal).say("hello there, archive")
    await swept(sweeper(database, clock, turns="10d"))
    await database.truncate_log()
    held = b"".join(file.read_bytes() for file in database.path.parent.iterdir())
    assert b"KESTREL" not in held
    assert b"kestrel" not in held
