"""Every process learns within a second what any of them changed, and whatever fails there is tried again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from palimpsest.domain.errors import MemoryFault
from palimpsest.memory.erasure.forgetting import Forgetting
from palimpsest.memory.operation.follower import Follower, Listen
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.erasure.selection import Target
from palimpsest.store.journal import Journal
from palimpsest.store.operation.changes import ERASURES, KEYS, SWITCHES, count
from palimpsest.telemetry.metrics import Metrics

from tests.databases import database_in, opened_beside
from tests.talking import Talk

PATIENCE_SECONDS = 10.0
LOOK_SECONDS = 0.02


class Heard:
    """How often a listener was called, and whether it fails."""

    def __init__(self) -> None:
        self.times, self.fails = 0, False

    async def __call__(self) -> None:
        self.times += 1
        if self.fails:
            raise RuntimeError("it fails")

    async def comes_to(self, times: int) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while self.times < times:  # noqa: ASYNC110 - it knows nothing of us
                await asyncio.sleep(0.01)


@asynccontextmanager
async def following(database: Database, **listeners: Listen) -> AsyncIterator[Follower]:
    follower = Follower(database, Metrics(), LOOK_SECONDS)
    for counter, listen in listeners.items():
        follower.listen(counter, f"taking in {counter}", listen)
    task = asyncio.create_task(follower.follow())
    try:
        yield follower
    finally:
        task.cancel()
        await asyncio.wait([task])


@pytest.fixture
async def beside(database: Database) -> AsyncIterator[Database]:
    """The same database, as another process has it."""
    beside = opened_beside(database)
    await beside.open()
    yield beside
    await beside.close()


async def test_each_listener_is_called_at_the_start_and_after_a_change_of_its_kind(
    database: Database, beside: Database
) -> None:
    keys, switches = Heard(), Heard()
    async with following(beside, keys=keys, switches=switches):
        await keys.comes_to(1)
        await switches.comes_to(1)
        await asyncio.sleep(10 * LOOK_SECONDS)  # several looks
        assert (keys.times, switches.times) == (1, 1)
        await database.transact(partial(count, name=KEYS))
        await keys.comes_to(2)
        assert switches.times == 1
        await database.transact(partial(count, name=SWITCHES))
        await switches.comes_to(2)
        assert keys.times == 2


async def test_an_erasure_by_another_process_is_a_change(database: Database, beside: Database) -> None:
    await Talk(Journal(database)).say("told once")
    heard = Heard()
    async with following(beside, **{ERASURES: heard}):
        await heard.comes_to(1)
        assert (
            await Forgetting(database, b"s" * 32, lambda: 4e9, settle_seconds=0.0).erase(Target(conversation="c-1"))
            is not None
        )
        await heard.comes_to(2)


async def test_what_changes_before_the_database_can_be_read_is_learnt_then(tmp_path: Path) -> None:
    heard, late = Heard(), database_in(tmp_path, "late.db")
    async with following(late, keys=heard) as follower:
        await asyncio.sleep(0.1)
        assert heard.times == 0, repr(follower)
        await late.open()
        await late.transact(partial(count, name=KEYS))
        await heard.comes_to(1)
    await late.close()


async def test_what_changes_while_nobody_looks_is_learnt_at_the_next_look(database: Database) -> None:
    heard, follower = Heard(), Follower(database, Metrics())
    follower.listen(KEYS, "keys", heard)
    await follower.look()
    await follower.look()
    assert heard.times == 1
    await database.transact(partial(count, name=KEYS))
    await follower.look()
    assert heard.times == 2


async def test_listener_that_fails_is_said_and_called_again_and_keeps_nobody_else_waiting(database: Database) -> None:
    broken, whole, counts = Heard(), Heard(), Metrics()
    follower = Follower(database, counts)
    follower.listen(KEYS, "first", broken)
    follower.listen(KEYS, "second", whole)
    broken.fails = True
    await follower.look()
    await follower.look()
    assert (broken.times, whole.times) == (2, 1)
    assert follower.troubles == ("first failed (RuntimeError) and is retried; the log says where",)
    assert 'palimpsest_faults_total{where="first"} 1.0' in counts.render().decode()
    broken.fails = False
    await follower.look()
    assert follower.troubles == ()


async def test_a_database_that_could_not_be_opened_is_opened_as_soon_as_it_can(tmp_path: Path) -> None:
    path, heard = tmp_path / "some.db", Heard()
    path.write_bytes(b"no database" * 1000)
    database = Database(path)
    with pytest.raises(MemoryFault, match="not a database"):
        await database.open()
    async with following(database, **{ERASURES: heard}):
        path.unlink()
        await heard.comes_to(1)
    await database.close()
