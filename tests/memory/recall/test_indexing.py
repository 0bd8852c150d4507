"""Passages get their vectors soon, and one that cannot be embedded holds up no other."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from palimpsest.domain import Json
from palimpsest.domain.errors import MemoryFault
from palimpsest.domain.ports import Vectors
from palimpsest.memory.recall.indexing import PROBE, Indexer
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.search.derived import Derived
from palimpsest.telemetry.metrics import Metrics

from tests.remembered import Past, WordEmbedder

PATIENCE_SECONDS = 30.0
BATCH_PASSAGES = 8


class PoisonedEmbedder(WordEmbedder):
    """Fails for every batch with poison in it, as a process does that a text brings down; may fail for all."""

    def __init__(self) -> None:
        super().__init__()
        self.failure: Exception = MemoryFault("embedding passages: their process ended; memory may be short")
        self.fails_always = False
        self.failures = 0  # more of them, whatever the text
        self.embedded: list[str] = []

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        if self.failures or self.fails_always or any("poison" in text for text in texts):
            self.failures = max(self.failures - 1, 0)
            raise self.failure
        self.embedded += texts
        return await super().embed_passages(texts)


class House:
    """An indexer over a database of its own."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.past, self.embedder, self.metrics = Past(database), PoisonedEmbedder(), Metrics()
        self.derived = Derived(database, time.time)
        self.may_index = True
        self.indexer = self.worker()

    def worker(self) -> Indexer:
        return Indexer(self.derived, self.embedder, self.metrics, BATCH_PASSAGES)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        indexing = asyncio.create_task(self.indexer.run(lambda: self.may_index))
        yield
        indexing.cancel()
        await asyncio.wait([indexing])
        assert indexing.cancelled(), indexing.exception()

    async def done(self) -> None:
        """Wait until no passage waits."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await self.past.journal.pending():  # noqa: ASYNC110 - what is waited for knows nothing of us
                await asyncio.sleep(0.01)

    async def without_vector(self) -> list[str]:
        rows = await self.database.read(
            "SELECT text FROM content JOIN occurrence ON occurrence.content = content.id"
            " JOIN memory ON memory.occurrence = occurrence.id"
            " WHERE memory.id NOT IN (SELECT memory FROM vector) ORDER BY memory.id"
        )
        return [text for (text,) in rows]

    async def quarantine(self) -> Json:
        rows = await self.database.read("SELECT part, reason, chars, length(digest) > 0 FROM quarantine")
        return {part: (reason, chars, bool(digest)) for part, reason, chars, digest in rows}


@pytest.fixture
def house(database: Database) -> House:
    return House(database)


async def test_what_is_written_is_embedded_as_soon_as_it_is_said(house: House) -> None:
    async with house.running():
        await asyncio.sleep(0)
        await house.past.say(*(f"message {n}" for n in range(40)))
        house.indexer.wake()
        await house.done()
    assert set(house.embedder.embedded) == {f"message {n}" for n in range(40)}


async def test_missing_model_is_waited_for(house: House) -> None:
    house.embedder.ready = False
    await house.past.say("hello")
    async with house.running():
        await asyncio.sleep(0)
        house.indexer.wake()
        assert await house.past.journal.pending() == 1
        house.embedder.ready = True
        house.indexer.wake()
        await house.done()
    assert house.embedder.embedded == ["hello"]


async def test_what_was_said_before_the_model_was_there_is_embedded_when_it_comes(house: House) -> None:
    house.indexer = Indexer(house.derived, house.embedder, house.metrics, look_seconds=2 * PATIENCE_SECONDS)
    house.embedder.ready, is_found = False, asyncio.Event()
    await house.past.say("hello")

    async def watch() -> None:
        await is_found.wait()
        house.embedder.ready = True

    async with house.running():
        watching = asyncio.create_task(house.indexer.await_model(watch))
        await asyncio.sleep(0.1)  # it has looked, and found no model
        assert await house.past.journal.pending() == 1
        is_found.set()
        await house.done()
        await watching


async def test_what_is_more_urgent_goes_first(house: House) -> None:
    house.may_index = False
    await house.past.say("hello")
    async with house.running():
        await asyncio.sleep(0)
        assert await house.past.journal.pending() == 1
        house.may_index = True
        house.indexer.wake()
        await house.done()


async def test_rebuild_that_was_begun_elsewhere_is_finished_here(house: House) -> None:
    await house.past.say("hello")
    async with house.running():
        await house.done()
        await Derived(house.database, time.time).start_rebuild()
        house.indexer.wake()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while house.embedder.embedded.count("hello") < 2:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.01)


@pytest.mark.parametrize("failure", [MemoryFault("their process ended"), ValueError("no such token")], ids=repr)
async def test_passage_that_cannot_be_embedded_is_set_aside_and_takes_no_other_with_it(
    house: House, failure: Exception
) -> None:
    house.embedder.failure = failure
    await house.past.say("one", "two", "this is poison", "four", "five", "six")
    async with house.running():
        await house.done()
    assert await house.without_vector() == ["this is poison"]
    assert await house.quarantine() == {"passage": (f"embedding: {failure}", 14, True)}
    assert house.indexer.troubles
    assert 'palimpsest_faults_total{where="quarantine"} 1.0' in house.metrics.render().decode()
    assert not await house.indexer.index_batch(), "it is not claimed again"


@pytest.mark.sqlite
async def test_passage_that_was_set_aside_is_found_by_its_words_and_tried_again_by_a_rebuild(house: House) -> None:
    await house.past.say("this is poison")
    assert await house.indexer.index_batch()
    found = await house.database.read("SELECT rowid FROM memory_text WHERE memory_text MATCH 'poison'")
    assert len(found) == 1
    await house.derived.start_rebuild()
    while await house.derived.rebuild_step():
        pass
    assert await house.past.journal.pending() == 1


async def test_model_that_fails_whatever_the_text_sets_nothing_aside(house: House) -> None:
    house.embedder.fails_always = True
    await house.past.say("one", "two", "three")
    with pytest.raises(MemoryFault):
        await house.indexer.index_batch()
    assert await house.quarantine() == {}
    assert await house.past.journal.pending() == 3


async def test_process_that_was_killed_from_outside_costs_nothing_but_time(house: House) -> None:
    house.embedder.failures = 1
    await house.past.say("one", "two", "three")
    assert await house.indexer.index_batch()
    assert await house.without_vector() == [] and await house.quarantine() == {}
    house.embedder.failures = 1
    await house.past.say("alone")
    assert await house.indexer.index_batch()
    assert await house.without_vector() == [] and await house.quarantine() == {}
    assert PROBE in house.embedder.embedded


@pytest.mark.sqlite
async def test_vector_that_the_store_refuses_is_set_aside_and_the_rest_is_saved(house: House) -> None:
    *_, refused = await house.past.say("one", "two", "three", "four")
    await house.database.write(
        [
            (
                "CREATE TRIGGER refuse BEFORE INSERT ON vector WHEN (SELECT occurrence FROM memory WHERE id ="
                f" new.memory) = {refused} BEGIN SELECT RAISE(ABORT, 'not this one'); END",
                [()],
            )
        ]
    )
    assert await house.indexer.index_batch()
    assert await house.without_vector() == ["four"]
    ((reason, *_),) = (await house.quarantine()).values()
    assert reason.endswith("not this one")
