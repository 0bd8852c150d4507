"""Facts are extracted in the background from what people and tools say, once each, whatever a message does."""

from __future__ import annotations

import asyncio
import functools
import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from palimpsest.core.facts.extraction import proposals
from palimpsest.domain import BLOCK_CLOSE, BLOCK_OPEN, FactCategory, FactProposal
from palimpsest.features.facts.extraction import Extract, FactExtraction
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.knowledge import fact_extraction as store
from palimpsest.store.knowledge.facts import FactFilter, list_facts
from palimpsest.telemetry.metrics import Metrics

from tests.remembered import Past
from tests.talking import NOW, record

SECRET = b"a secret of thirty-two bytes ....."
PATIENCE_SECONDS = 30.0


def stating(text: str, role: str) -> Sequence[FactProposal]:
    """Every message is a note; poison is what the extractor fails at."""
    if "poison" in text:
        raise ValueError("poison")
    return [FactProposal("user", "note", text, FactCategory.NOTE, 0, len(text), False, 1.0)]


class House:
    """Workers over a database of their own."""

    def __init__(self, database: Database) -> None:
        self.database, self.past, self.metrics = database, Past(database), Metrics()
        self.may_extract = True

    def worker(self, extract: Extract = stating, version: int = 1, tick_seconds: float = 0.0) -> FactExtraction:
        times = itertools.count(NOW, tick_seconds)
        return FactExtraction(self.database, SECRET, self.metrics, lambda: next(times), extract, version)

    @asynccontextmanager
    async def running(self, *workers: FactExtraction) -> AsyncIterator[None]:
        running = [asyncio.create_task(worker.run(lambda: self.may_extract)) for worker in workers]
        yield
        for task in running:
            task.cancel()
        await asyncio.wait(running)
        assert all(task.cancelled() for task in running)

    async def done(self) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await self.database.ask(store.oldest_waiting_at):  # noqa: ASYNC110 - it knows nothing of us
                await asyncio.sleep(0.01)

    async def shows(self, *lines: str) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not set(lines) <= set(self.metrics.render().decode().splitlines()):  # noqa: ASYNC110 - likewise
                await asyncio.sleep(0.01)

    async def values(self) -> list[str]:
        facts = await self.database.ask(lambda ask: list_facts(ask, FactFilter("acme"), NOW, 1000))
        return sorted(fact.value for fact in facts)

    async def extracted(self, worker: FactExtraction) -> None:
        while await worker.extract_batch():
            pass


@pytest.fixture
def house(database: Database) -> House:
    return House(database)


async def test_what_is_said_is_extracted_while_requests_go_on(house: House) -> None:
    worker = house.worker(tick_seconds=60.0)
    async with house.running(worker):
        await house.past.say("one", user="ann")
        worker.wake()
        await house.done()
        await house.past.say("two", user="ann", conversation="c-2")
        worker.wake()
        await house.done()
        await house.shows('palimpsest_facts{category="note"} 2.0', "palimpsest_facts_lag_seconds 0.0")
    assert await house.values() == ["one", "two"]


async def test_several_workers_share_the_messages_and_state_each_once(house: House) -> None:
    for number in range(120):
        await house.past.say(f"note {number:03}", conversation=f"c-{number}")
    async with house.running(house.worker(), house.worker(), house.worker()):
        await house.done()
    ((rows,),) = await house.database.read("SELECT count(*) FROM fact")
    assert rows == 120 and await house.values() == [f"note {number:03}" for number in range(120)]


async def test_a_message_at_which_the_extractor_fails_is_set_aside_and_holds_up_nothing(house: House) -> None:
    await house.past.say("before", conversation="c-1")
    await house.past.say("poison", conversation="c-2")
    await house.past.say("behind", conversation="c-3")
    worker = house.worker()
    await house.extracted(worker)
    assert await house.values() == ["before", "behind"] and worker.has_set_aside
    await house.database.transact(store.start_over)
    await house.extracted(worker)
    rows = await house.database.read("SELECT part, reason, chars, length(digest) > 0 FROM quarantine")
    assert rows == [("facts", "extracting facts: ValueError", len("poison"), 1)], "once, however often it is tried"


async def test_another_extractor_makes_the_facts_of_messages_again(house: House) -> None:
    await house.past.say("I say this")
    await house.extracted(house.worker())

    def louder(text: str, role: str) -> Sequence[FactProposal]:
        return [FactProposal("user", "note", text.upper(), FactCategory.NOTE, 0, len(text), False, 1.0)]

    await house.extracted(house.worker(louder, version=2))
    assert await house.values() == ["I SAY THIS"]
    await house.extracted(house.worker(stating, version=1))
    assert await house.values() == ["I say this"], "an extractor that was no good can be taken back"


async def test_a_worker_that_dies_in_a_batch_leaves_it_to_the_next(house: House) -> None:
    await house.past.say("one")
    await house.database.transact(lambda t: store.begin(t, 1))
    claim = functools.partial(store.claim, now_ms=int(NOW * 1000) - 60_000, until_ms=int(NOW * 1000) - 30_000)
    assert await house.database.transact(claim)
    await house.extracted(house.worker())
    assert await house.values() == ["one"]


async def test_nothing_is_read_or_written_while_it_may_not(house: House) -> None:
    house.may_extract = False
    await house.past.say("one")
    writes = house.database.writes
    worker = house.worker()
    async with house.running(worker):
        for _ in range(5):
            worker.wake()
            await asyncio.sleep(0.01)
    assert house.database.writes == writes
    assert await house.database.read("SELECT name FROM task") == []


async def test_what_memory_told_a_tool_or_a_person_states_nothing(house: House) -> None:
    block = f'{BLOCK_OPEN} kind="recall">\nQuoted earlier messages:\n[2026-03-05]\nuser: My name is Bob.\n{BLOCK_CLOSE}'
    tool = {"role": "tool", "tool_call_id": "1", "content": f"PORT=5432\n{block}"}
    said = {"role": "user", "content": f"{block}\n\nMy name is Ann."}
    await house.past.journal.write([record([tool, said])])
    await house.extracted(house.worker(proposals))
    assert await house.values() == ["Ann"]


async def test_credentials_that_were_redacted_are_no_values(house: House) -> None:
    content = "DATABASE_PASSWORD=[redacted:password]\nDATABASE_PORT=5432"
    await house.past.journal.write([record([{"role": "tool", "tool_call_id": "1", "content": content}])])
    await house.extracted(house.worker(proposals))
    assert await house.values() == ["5432"]


async def test_who_plays_a_part_is_nobody_and_what_is_decided_there_counts(house: House) -> None:
    await house.past.say("Let's roleplay, you are my doctor.", "Fine.", conversation="c-1", user="ann")
    await house.past.say("My name is Hannah. The port is 8080.", conversation="c-1", user="ann")
    await house.past.say("My name is Ann.", conversation="c-2", user="ann")
    await house.extracted(house.worker(proposals))
    assert sorted(await house.values()) == ["8080", "Ann"]
