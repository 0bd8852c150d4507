"""The edge hands over and goes on; what was handed over is on the disk, whatever happens to the store or to us."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
import structlog
from palimpsest.domain import Completion, Ending, Json, RawHeaders, Turn
from palimpsest.domain.errors import MemoryFault
from palimpsest.domain.ports import Listener, Vectors
from palimpsest.memory.erasure.forgetting import Forgetting
from palimpsest.memory.recall.indexing import BATCH_PASSAGES, Indexer
from palimpsest.memory.recording.archive_writer import ArchiveWriter
from palimpsest.memory.recording.archivist import LAG_SECONDS, SPOOLED, Archivist
from palimpsest.memory.recording.queue_room import ArchiveLimits
from palimpsest.memory.recording.readers import INLINE_CHARS
from palimpsest.memory.recording.spool import Spool
from palimpsest.memory.recording.write_batch import GATHER_SECONDS
from palimpsest.memory.supervision import Supervisor
from palimpsest.store.engine import Transaction
from palimpsest.store.engine.postgres import database as postgres
from palimpsest.store.erasure.selection import Target
from palimpsest.store.journal import Journal
from palimpsest.store.search.derived import Derived
from palimpsest.wire import chat

from tests.databases import database_in
from tests.talking import record, user

SECRET = b"s" * 32
STREAM: RawHeaders = ((b"content-type", b"text/event-stream"),)
PATIENCE_SECONDS = 60.0
NO_POISON = (
    "CREATE TRIGGER refuse BEFORE INSERT ON content WHEN new.text = 'poison' BEGIN"
    " SELECT RAISE(ABORT, 'no poison here'); END",
    "ALTER TABLE content ADD CHECK (text <> 'poison')",
)


class Tally:
    """Counts that a test can look at."""

    def __init__(self) -> None:
        self.faults: Counter[str] = Counter()
        self.gauges: dict[str, float] = {}
        self.observed: Counter[str] = Counter()
        self.added: Counter[str] = Counter()

    def fault(self, where: str) -> None:
        self.faults[where] += 1

    @property
    def lost(self) -> int:
        return self.added["turns_lost"]

    def observe(self, stage: str, seconds: float) -> None:
        self.observed[stage] += 1

    def gauge(self, name: str, value: float, *labels: str) -> None:
        self.gauges[name] = value

    def add(self, name: str, amount: float, *labels: str) -> None:
        self.added[" ".join((name, *labels))] += int(amount)


class Hasher:
    """An embedder without a model: a text's hash."""

    name = "hash"

    def __init__(self) -> None:
        self.ready = True
        self.embedded: list[str] = []

    async def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return await self.embed_passages(texts)

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        if not self.ready:
            raise MemoryFault("embedding passages: no model")
        self.embedded += texts
        digests = [hashlib.sha256(text.encode()).digest() for text in texts]
        return np.array([[byte / 255 for byte in digest] for digest in digests], np.float32)


class House:
    """An archivist over a database of its own."""

    def __init__(
        self,
        path: Path,
        redacts: bool = True,
        on_written: Callable[[], None] | None = None,
        spool: Spool | None = None,
        **limits: Any,
    ) -> None:
        self.database = database_in(path.parent, path.name)
        self.journal = Journal(self.database)
        self.counts = Tally()
        self.embedder = Hasher()
        self.usage: list[int] = []
        self.indexer = Indexer(Derived(self.database, time.time), self.embedder, self.counts, BATCH_PASSAGES)
        self.archivist = Archivist(
            ArchiveWriter(self.journal, self.counts, SECRET, time.time, redacts),
            self.counts,
            time.time,
            lambda turn, tokens: self.usage.append(tokens),
            on_written or self.indexer.wake,
            ArchiveLimits(**{"commit_wait_seconds": PATIENCE_SECONDS, **limits}),
            spool=spool,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as tasks:
            indexing = self.indexer.run(lambda: not self.archivist.is_failing)
            running = [tasks.create_task(work) for work in (self.archivist.write(), indexing)]
            yield
            await self.archivist.drain(PATIENCE_SECONDS)
            for task in running:
                task.cancel()

    async def exchange(self, turn: Turn, status: int) -> None:
        """A whole turn that the upstream answers with this status."""
        self.archivist.note(turn)
        is_well = 0 < status < 400
        headers: RawHeaders = STREAM if is_well else ((b"content-type", b"application/json"),)
        listener = self.archivist.listen(turn, chat, status, headers)
        for chunk in events("hi") if is_well else [b'{"error": {}}'] if status else []:
            assert listener.feed(chunk) == len(chunk) or is_well
        await ended(listener)

    async def indexed(self) -> None:
        """Wait until no passage waits for a vector."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self.database.open()
            while await self.journal.pending():  # noqa: ASYNC110 - what is waited for knows nothing of us
                await asyncio.sleep(0.01)

    async def turn(self, number: int = 1) -> str:
        """How the n-th turn ended."""
        found = await self.journal.turn("acme", "c-1", number)
        return found["ending"] if found else "not there"

    async def texts(self) -> list[str]:
        return [row[0] for row in await self.database.read("SELECT text FROM content ORDER BY id")]


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    house = House(tmp_path / "data" / "journal.db")
    yield house
    await house.database.close()


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not holds():  # noqa: ASYNC110 - what is waited for knows nothing of us
            await asyncio.sleep(0.01)


async def ended(listener: Listener) -> None:
    """The answer is complete, and its end waits for the commit."""
    listener.finish(Ending.COMPLETE)
    await listener.committed()


def turn_of(*messages: Json) -> Turn:
    return record(messages).turn


def events(text: str) -> list[bytes]:
    deltas = [{"choices": [{"index": 0, "delta": {"content": word}}]} for word in text.split(" ")]
    usage = {"choices": [], "usage": {"prompt_tokens": 12}}
    return [*(b"data: " + orjson.dumps(event) + b"\n\n" for event in (*deltas, usage)), b"data: [DONE]\n\n"]


async def test_exchange_is_on_the_disk_when_the_end_of_the_answer_may_go(house: House) -> None:
    async with house.running():
        turn = turn_of(user("hello"))
        house.archivist.note(turn)
        listener = house.archivist.listen(turn, chat, 200, STREAM)
        *chunks, last = events("hi there")
        assert [listener.feed(chunk) for chunk in chunks] == [len(chunk) for chunk in chunks]
        assert listener.feed(last) == 0, "the terminal event waits"
        await ended(listener)
        assert await house.turn() == "complete"
        assert await house.texts() == ["hello", "hithere"]
        assert house.usage == [12]


async def test_commit_of_an_answer_need_not_be_awaited(house: House) -> None:
    async with house.running():
        turn = turn_of(user("hello"))
        house.archivist.note(turn)
        listener = house.archivist.listen(turn, chat, 200, STREAM)
        listener.feed(events("half an")[0])
        listener.finish(Ending.CLIENT_GONE)
    await house.database.open()
    assert await house.turn() == "client-gone"
    assert await house.texts() == ["hello", "half"]


@pytest.mark.parametrize("status", [401, 403])
async def test_request_whose_credential_is_not_accepted_leaves_nothing(house: House, status: int) -> None:
    async with house.running():
        await house.exchange(turn_of(user("hello")), 200)
        await house.exchange(replace(turn_of(user("secret plans")), conversation="c-2"), status)
        assert await house.texts() == ["hello", "hi"]


@pytest.mark.parametrize("status", [400, 404, 413, 422, 429, 500, 503, 0])
async def test_request_without_an_answer_is_kept_for_a_known_tenant_and_for_no_other(house: House, status: int) -> None:
    async with house.running():
        await house.exchange(turn_of(user("hello")), status)
        assert await house.texts() == []
        await house.exchange(turn_of(user("hello")), 200)
        await house.exchange(replace(turn_of(user("the newest result")), conversation="c-2"), status)
        assert await house.texts() == ["hello", "hi", "the newest result"]
        found = await house.journal.turn("acme", "c-2", 1)
        assert found is not None and found["ending"] == "unanswered"


async def test_answer_longer_than_the_limit_is_kept_as_far_as_it_was_heard(tmp_path: Path) -> None:
    house = House(tmp_path / "journal.db", answer_bytes=200)
    async with house.running():
        turn = turn_of(user("hello"))
        house.archivist.note(turn)
        listener = house.archivist.listen(turn, chat, 200, STREAM)
        for chunk in events("one two three four five six seven eight"):
            listener.feed(chunk)
        await ended(listener)
        assert await house.turn() == "too-large"
        assert (await house.texts())[1].startswith("onetwo")
    await house.database.close()


async def test_answer_in_an_encoding_that_we_cannot_read_is_counted(house: House) -> None:
    async with house.running():
        turn = turn_of(user("hello"))
        house.archivist.note(turn)
        listener = house.archivist.listen(turn, chat, 200, (*STREAM, (b"content-encoding", b"lzma")))
        listener.feed(b"\x0b\x02\x80")
        await ended(listener)
        assert await house.turn() == "complete"
        assert house.counts.faults["overhear"] == 1


@pytest.mark.parametrize(("redacts", "stored"), [(True, "password: [redacted:password]"), (False, "password: hunter2")])
async def test_redaction_is_a_policy(tmp_path: Path, redacts: bool, stored: str) -> None:
    house = House(tmp_path / "journal.db", redacts=redacts)
    async with house.running():
        house.archivist.note(turn_of(user("password: hunter2")))
    await house.database.open()
    assert await house.texts() == [stored]
    await house.database.close()


async def test_a_text_that_would_take_seconds_to_clean_holds_up_nobody_and_is_counted(tmp_path: Path) -> None:
    house = House(tmp_path / "journal.db")
    async with house.running():
        house.archivist.note(turn_of(user("pwd=" * 200_000)))
        house.archivist.note(replace(turn_of(user("hello")), id="t-2", conversation="c-2"))
        await until(lambda: house.archivist.backlog == 0)
        assert house.counts.faults["redaction"] == 1
        withheld, hello = sorted(await house.texts())
    await house.database.close()
    assert withheld.startswith("[withheld: 800000 characters, sha256 ") and hello == "hello"


async def test_many_that_wait_are_written_together(house: House) -> None:
    for n in range(50):
        house.archivist.note(replace(turn_of(user(f"message {n}")), conversation=f"c-{n}"))
    async with house.running():
        await until(lambda: house.counts.gauges["queued"] == 0)
        assert house.counts.observed["journal"] == 1
    await house.database.open()
    assert len(await house.texts()) == 50


async def test_a_request_is_written_with_an_answer_that_comes_soon(house: House) -> None:
    counted = []
    async with house.running():
        for n in range(20):  # whoever is not served for a while finds the request written
            before = house.counts.observed["journal"]
            turn = replace(turn_of(user(f"message {n}")), conversation=f"c-{n}")
            house.archivist.note(turn)
            await asyncio.sleep(GATHER_SECONDS / 3)
            listener = house.archivist.listen(turn, chat, 200, STREAM)
            listener.feed(events("hi")[0])
            await ended(listener)
            await until(lambda: house.archivist.backlog == 0)
            counted.append(house.counts.observed["journal"] - before)
            if counted[-1] == 1:
                break
        assert counted[-1] == 1, counted
        assert await house.database.read("SELECT count(*) FROM turn WHERE ending = 'complete'") == [(len(counted),)]


# --- trouble -----------------------------------------------------------------------------------------


@pytest.mark.sqlite
async def test_store_that_cannot_be_opened_loses_nothing_and_is_opened_later(house: House) -> None:
    blocked = house.database.path.parent
    blocked.write_text("a file stands in the way")
    async with house.running():
        turn = turn_of(user("hello"))
        house.archivist.note(turn)
        await until(lambda: house.counts.faults["journal"] > 1)
        assert house.archivist.is_failing
        blocked.unlink()
        listener = house.archivist.listen(turn, chat, 200, STREAM)
        listener.feed(events("hi")[0])
        await ended(listener)
        await until(lambda: house.archivist.backlog == 0)
        assert await house.turn() == "complete"
        assert not house.archivist.is_failing
    assert house.counts.lost == 0


@pytest.mark.sqlite
async def test_what_waits_has_a_size_and_an_age_until_it_is_written(house: House) -> None:
    blocked = house.database.path.parent
    blocked.write_text("a file stands in the way")
    assert (house.archivist.lag_seconds, house.archivist.room.bytes) == (0, 0)
    async with house.running():
        house.archivist.note(turn_of(user("hello")))
        await until(lambda: house.counts.faults["journal"] > 1)
        first = house.archivist.lag_seconds
        await until(lambda: house.archivist.lag_seconds > first > 0)
        assert house.archivist.room.bytes >= len("hello")
        blocked.unlink()
        await until(lambda: house.archivist.backlog == 0)
        assert (house.archivist.lag_seconds, house.archivist.room.bytes) == (0, 0)


async def test_a_turn_that_waits_for_too_long_is_told_of_in_the_log_too(house: House) -> None:
    house.archivist.note(turn_of(user("hello")))
    await until(lambda: house.archivist.lag_seconds > LAG_SECONDS)
    with structlog.testing.capture_logs() as lines:
        assert house.archivist.is_uncertain("acme") and not house.archivist.is_uncertain("globex")
    assert [line["event"] for line in lines] == ["an earlier turn still waits for the disk"]


@pytest.mark.sqlite
async def test_end_of_an_answer_waits_no_longer_than_the_policy_says(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file stands in the way")
    house = House(tmp_path / "data" / "journal.db", commit_wait_seconds=0.05)
    async with house.running():
        turn = turn_of(user("hello"))
        house.archivist.note(turn)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await ended(house.archivist.listen(turn, chat, 200, STREAM))
        (tmp_path / "data").unlink()
    await house.database.close()


async def test_more_turns_than_may_wait_are_counted_as_lost_with_their_answers(tmp_path: Path) -> None:
    house = House(tmp_path / "journal.db", queue_turns=2)
    turns = [replace(turn_of(user(f"message {n}")), conversation=f"c-{n}") for n in range(3)]
    for turn in turns:
        house.archivist.note(turn)
    assert house.counts.lost == 1
    assert repr(house.archivist) == "<Archivist [2 queued, 2 unanswered, 1 lost]>"
    async with house.running():
        for turn in turns:
            await ended(house.archivist.listen(turn, chat, 200, STREAM))
        assert await house.texts() == ["message 0", "message 1"]
    await house.database.close()


async def test_turns_that_find_no_room_in_memory_are_written_from_the_spool_in_order(tmp_path: Path) -> None:
    house = House(tmp_path / "journal.db", spool=Spool(tmp_path), queue_turns=2)
    turns = [replace(turn_of(user(f"message {n}")), id=f"t-{n}", conversation=f"c-{n}") for n in range(9)]
    for n, turn in enumerate(turns):
        assert house.archivist.is_uncertain("acme") is (n >= 2)
        house.archivist.note(turn)
        listener = house.archivist.listen(turn, chat, 200, STREAM)
        for event in events(f"answer{n}"):
            listener.feed(event)
        listener.finish(Ending.COMPLETE)
    assert (house.counts.lost, house.counts.gauges["queued"], house.archivist.backlog) == (0, 9, 18)
    assert house.archivist.troubles == (SPOOLED,)
    async with house.running():
        await until(lambda: house.archivist.backlog == 0)
        assert set(await house.texts()) == {*(f"message {n}" for n in range(9)), *(f"answer{n}" for n in range(9))}
        rows = await house.database.read("SELECT key FROM turn WHERE ending = 'complete' ORDER BY id")
        assert rows == [(turn.id,) for turn in turns]
        assert not house.archivist.is_uncertain("acme") and house.archivist.troubles == ()
    await house.database.close()


async def test_what_is_forgotten_while_it_waits_in_the_spool_is_not_written(tmp_path: Path) -> None:
    house = House(tmp_path / "journal.db", spool=Spool(tmp_path), queue_turns=1)
    async with house.running():
        await house.exchange(turn_of(user("said and written")), 200)
    said = [replace(turn_of(user(f"said and waiting {n}")), id=f"t-{n}") for n in range(3)]
    for turn in said:
        house.archivist.note(turn)
    assert house.archivist.troubles == (SPOOLED,)
    await house.database.open()
    forgetting = Forgetting(house.database, SECRET, lambda: time.time() + 1, settle_seconds=0)
    assert await forgetting.erase(Target(tenant="acme", conversation=said[0].conversation))
    async with house.running():
        await until(lambda: house.archivist.backlog == 0)
        assert {*await house.texts()} <= {""}
    await house.database.close()


async def test_turns_that_not_even_the_spool_can_take_are_lost_and_never_quietly(tmp_path: Path) -> None:
    house = House(tmp_path / "journal.db", spool=Spool(tmp_path, most_bytes=10), queue_turns=1)
    first, second = turn_of(user("one")), replace(turn_of(user("two")), id="t-2", conversation="c-2")
    house.archivist.note(first)
    assert house.archivist.is_uncertain("acme"), "said before the turn is lost"
    house.archivist.note(second)
    assert (house.counts.lost, house.archivist.backlog) == (1, 1)
    async with house.running():
        await ended(house.archivist.listen(second, chat, 200, STREAM))
        await until(lambda: house.archivist.backlog == 0)
        assert await house.texts() == ["one"]
    await house.database.close()


async def test_bytes_that_were_measured_before_are_what_a_turn_takes_of_the_queue(tmp_path: Path) -> None:
    house = House(tmp_path / "journal.db", queue_bytes=1000)
    for n, size_bytes in enumerate((999, 1, 1)):
        house.archivist.note(replace(turn_of(user(f"message {n}")), conversation=f"c-{n}", size_bytes=size_bytes))
    assert house.counts.lost == 1


async def test_what_waits_is_bounded_in_memory_however_little_of_it_is_text(tmp_path: Path) -> None:
    house = House(tmp_path / "journal.db", queue_bytes=1_000_000)
    hollow = {
        "role": "user",
        "content": [{"type": "text", "text": ""} for _ in range(1_000)],
    }  # 4 kB of text, 400 of memory
    for n in range(5):
        house.archivist.note(replace(turn_of(hollow), conversation=f"c-{n}"))
    assert house.counts.lost >= 2


async def test_events_of_an_answer_take_the_memory_that_they_take(tmp_path: Path) -> None:
    house = House(tmp_path / "journal.db", queue_bytes=30_000)
    turn = turn_of(user("hello"))
    house.archivist.note(turn)
    listener = house.archivist.listen(turn, chat, 200, STREAM)
    for _ in range(1_000):
        listener.feed(b"data: {}\n\n")
    listener.finish(Ending.COMPLETE)
    assert house.counts.faults["queue"] == 1


async def test_turn_that_cannot_be_stored_is_set_aside_and_takes_no_other_with_it(house: House) -> None:
    unreadable = replace(turn_of(user("worse")), tenant=None, conversation="c-3")  # type: ignore[arg-type]
    unwritable = replace(turn_of(user("bad")), created_at=None, conversation="c-2")  # NOT NULL
    unbindable = replace(turn_of(user("bad")), model=object(), conversation="c-4")
    too_large = replace(turn_of(user("bad")), created_at=1 << 64, conversation="c-5")
    good = [replace(turn_of(user(f"good {n}")), conversation=f"c-good-{n}") for n in range(3)]
    for turn in (good[0], unreadable, unwritable, good[1], unbindable, too_large, good[2]):
        house.archivist.note(turn)
    async with house.running():
        await until(lambda: house.counts.gauges["queued"] == 0)
    await house.database.open()
    assert await house.texts() == ["good 0", "good 1", "good 2"]
    assert (house.counts.faults["quarantine"], house.counts.lost, house.archivist.is_failing) == (4, 4, False)
    listed = await house.database.read("SELECT turn, part, reason, chars, length(digest) FROM quarantine ORDER BY id")
    assert {row[0] for row in listed} == {turn.id for turn in (unreadable, unwritable, unbindable, too_large)}
    reasons = {turn: reason for turn, _, reason, *_ in listed}
    assert reasons[unreadable.id] == "reading: AttributeError"
    on_server = isinstance(house.database, postgres.Database)
    rule = "NotNullViolation" if on_server else "NOT NULL constraint failed: conversation.created_at"
    assert rule in reasons[unwritable.id]
    assert ("NumericValueOutOfRange" if on_server else "writing: OverflowError") in reasons[too_large.id]
    assert {(part, digest) for _, part, _, _, digest in listed} == {("request", 16)}
    assert [chars for *_, chars, _ in listed] == [9, 7, 7, 7], "with the roles"


async def test_answer_that_cannot_be_stored_is_set_aside_and_its_request_is_kept(house: House) -> None:
    on_server = isinstance(house.database, postgres.Database)
    await house.database.transact(lambda transaction: transaction.write(NO_POISON[on_server]))
    async with house.running():
        turns = [replace(turn_of(user(f"hello {n}")), conversation=f"c-{n}") for n in range(4)]
        for n, turn in enumerate(turns):
            house.archivist.note(turn)
            listener = house.archivist.listen(turn, chat, 200, STREAM)
            for event in events("poison" if n == 2 else f"answer{n}"):
                listener.feed(event)
            listener.finish(Ending.COMPLETE)
        await until(lambda: house.counts.gauges.get("queued") == 0)
        assert set(await house.texts()) == {*(f"hello {n}" for n in range(4)), "answer0", "answer1", "answer3"}
        ((turn, part, reason),) = await house.database.read("SELECT turn, part, reason FROM quarantine")
        assert (turn, part) == (turns[2].id, "answer") and reason.endswith(
            "CheckViolation (23514)" if on_server else "no poison here"
        )


class SlowWire:
    """The chat wire, but that answers cannot be read before they may be."""

    def __init__(self) -> None:
        self.may_go_on = threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(chat, name)

    def reply(self, payloads: Sequence[bytes], streamed: bool) -> Completion:
        assert self.may_go_on.wait(PATIENCE_SECONDS)
        return chat.reply(payloads, streamed)


class BrokenWire(SlowWire):
    """The chat wire, but that answers cannot be read at all."""

    def reply(self, payloads: Sequence[bytes], streamed: bool) -> Completion:
        raise ValueError("no such answer")


async def test_answer_that_cannot_be_read_is_set_aside_at_once_and_gives_back_its_room(tmp_path: Path) -> None:
    house = House(tmp_path / "journal.db", queue_bytes=2_000, commit_wait_seconds=3600)
    async with house.running():
        for n in range(3):
            turn = replace(turn_of(user(f"hello {n}")), id=f"t-{n}", conversation=f"c-{n}")
            house.archivist.note(turn)
            await until(lambda: house.archivist.backlog == 0)
            listener = house.archivist.listen(turn, BrokenWire(), 200, STREAM)
            for event in events("word " * 10):  # some 1,000 bytes of memory
                listener.feed(event)
            async with asyncio.timeout(PATIENCE_SECONDS):
                await ended(listener)
            await until(lambda: house.archivist.backlog == 0)
        assert await house.database.read("SELECT turn, part, reason FROM quarantine ORDER BY id") == [
            (f"t-{n}", "answer", "reading: ValueError") for n in range(3)
        ]
    assert house.counts.faults["queue"] == 0
    await house.database.close()


async def test_whoever_is_told_of_usage_cannot_stop_the_archive(house: House) -> None:
    house.usage = None  # type: ignore[assignment]
    async with house.running():
        for n in range(2):
            turn = replace(turn_of(user(f"hello {n}")), conversation=f"c-{n}")
            house.archivist.note(turn)
            listener = house.archivist.listen(turn, chat, 200, STREAM)
            for event in events("hi"):
                listener.feed(event)
            await ended(listener)
        assert house.counts.faults["usage"] == 2


async def test_what_waits_is_bounded_in_size_with_all_that_is_sent_and_answered(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file stands in the way")
    house = House(tmp_path / "data" / "journal.db", queue_bytes=10_000, open_bytes=10_000)
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 8_000}}
    kept, refused = turn_of({"role": "user", "content": [picture]}), turn_of(user("x" * 4_000))
    house.archivist.note(kept)
    house.archivist.note(replace(refused, conversation="c-2"))
    assert house.counts.lost == 1
    async with house.running():
        listener = house.archivist.listen(kept, chat, 200, STREAM)
        for event in events("word " * 1_000):
            listener.feed(event)
        listener.finish(Ending.COMPLETE)
        (tmp_path / "data").unlink()
        await until(lambda: house.archivist.backlog == 0)
        assert await house.turn() == "too-large", "the request is there, and says that its answer is not"
        assert house.counts.faults["queue"] == 1
        third = replace(refused, id="third", conversation="c-3")
        house.archivist.note(third)
        await until(lambda: house.archivist.backlog == 0)
        assert house.counts.lost == 1, "there is room again"
    await house.database.close()


async def test_answers_that_go_on_are_bounded_in_size_together(tmp_path: Path) -> None:
    house = House(tmp_path / "journal.db", open_bytes=10_000)
    turns = [replace(turn_of(user(f"hello {n}")), conversation=f"c-{n}") for n in range(3)]
    listeners = [house.archivist.listen(turn, chat, 200, STREAM) for turn in turns]
    async with house.running():
        for turn, listener in zip(turns, listeners, strict=True):
            house.archivist.note(turn)
            *chunks, last = events("word " * 80)  # some 4,600 bytes
            for chunk in chunks:
                assert listener.feed(chunk) == len(chunk)
            assert listener.feed(last) == 0, "the end is found, whether the rest is kept or not"
        for listener in listeners:
            await ended(listener)
        endings = await house.database.read("SELECT ending FROM turn ORDER BY id")
        assert sorted(endings) == [("complete",), ("complete",), ("too-large",)]
        again = replace(turn_of(user("again")), conversation="c-4")
        house.archivist.note(again)
        listener = house.archivist.listen(again, chat, 200, STREAM)
        for chunk in events("there is room again"):
            listener.feed(chunk)
        await ended(listener)
        assert "thereisroomagain" in await house.texts()
    assert house.counts.lost == 0
    await house.database.close()


@pytest.mark.sqlite
async def test_answers_do_not_wait_for_a_store_that_fails(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file stands in the way")
    house = House(tmp_path / "data" / "journal.db", commit_wait_seconds=3600)
    async with house.running():
        house.archivist.note(turn_of(user("hello")))
        await until(lambda: house.archivist.is_failing)
        assert house.archivist.troubles == ("turns cannot be written and wait in memory; the log says why",)
        turn = replace(turn_of(user("and again")), conversation="c-2")
        house.archivist.note(turn)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await ended(house.archivist.listen(turn, chat, 200, STREAM))
        (tmp_path / "data").unlink()
        await until(lambda: not house.archivist.is_failing)
        assert house.archivist.troubles == ()
    await house.database.close()


async def test_slow_texts_of_one_tenant_hold_up_no_turn_of_another(house: House) -> None:
    slow = SlowWire()
    async with house.running():
        for n in range(5):
            turn = replace(turn_of(user("evil")), tenant="evil", conversation=f"c-evil-{n}")
            house.archivist.note(turn)
            listener = house.archivist.listen(turn, slow, 200, STREAM)
            for event in events("word " * (INLINE_CHARS if n % 2 else INLINE_CHARS // 20)):  # heavy and light ones
                listener.feed(event)
            listener.finish(Ending.COMPLETE)
        await asyncio.sleep(0)
        for n in range(3):
            turn = replace(turn_of(user(f"hello {n}" + INLINE_CHARS * "!")), conversation=f"c-{n}")
            house.archivist.note(turn)
            listener = house.archivist.listen(turn, chat, 200, STREAM)
            for event in events(f"answer{n}"):
                listener.feed(event)
            async with asyncio.timeout(PATIENCE_SECONDS):
                await ended(listener)
            assert f"answer{n}" in await house.texts()
        assert not house.archivist.is_failing
        slow.may_go_on.set()
        await until(lambda: house.archivist.backlog == 0)
        assert len(await house.database.read("SELECT 1 FROM turn WHERE ending = 'complete'")) == 8


@pytest.mark.slow
async def test_text_that_takes_too_long_is_said_and_its_tenants_answers_do_not_wait(tmp_path: Path) -> None:
    house = House(tmp_path / "journal.db", commit_wait_seconds=3600)
    slow = SlowWire()
    async with house.running():
        for n in range(2):
            turn = replace(turn_of(user("evil")), tenant="evil", conversation=f"c-{n}")
            house.archivist.note(turn)
            listener = house.archivist.listen(turn, slow, 200, STREAM)
            for event in events("word " * INLINE_CHARS):
                listener.feed(event)
            if n == 0:
                listener.finish(Ending.COMPLETE)
        await until(lambda: house.archivist.is_behind("evil"))
        assert not house.archivist.is_behind("acme") and not house.archivist.is_failing
        (trouble,) = house.archivist.troubles
        assert trouble.startswith("a text has been read for the archive for ")
        async with asyncio.timeout(PATIENCE_SECONDS):
            await ended(listener)
        slow.may_go_on.set()
        await until(lambda: house.archivist.backlog == 0)
        assert house.archivist.troubles == ()
    await house.database.close()


@pytest.mark.slow
async def test_store_that_does_not_come_back_is_said_and_nobody_waits_for_it(tmp_path: Path) -> None:
    house = House(tmp_path / "journal.db", commit_wait_seconds=3600)
    entered, go_on = threading.Event(), threading.Event()

    def hang(_transaction: Transaction) -> None:
        entered.set()
        assert go_on.wait(PATIENCE_SECONDS)

    async with house.running():
        hanging = asyncio.create_task(house.database.transact(hang))
        await asyncio.to_thread(entered.wait, PATIENCE_SECONDS)
        turn = turn_of(user("hello"))
        house.archivist.note(turn)
        listener = house.archivist.listen(turn, chat, 200, STREAM)
        await until(lambda: house.archivist.is_failing)
        assert house.archivist.troubles == ("writing turns has taken longer than 5 s, and the rest wait in memory",)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await ended(listener)
        go_on.set()
        await hanging
        await until(lambda: house.archivist.backlog == 0)
        assert not house.archivist.is_failing and house.counts.lost == 0
        assert await house.turn() == "complete"
    await house.database.close()


async def test_writing_that_fails_in_an_unforeseen_way_is_begun_again_and_loses_nothing(tmp_path: Path) -> None:
    failures = [RuntimeError("a bug of ours")]

    def fail_once() -> None:
        if failures:
            raise failures.pop()

    house = House(tmp_path / "journal.db", on_written=fail_once)
    supervisor = Supervisor(house.counts, first_pause_seconds=0.01)
    supervisor.start("archivist", house.archivist.write)
    for n in range(3):
        house.archivist.note(replace(turn_of(user(f"hello {n}")), conversation=f"c-{n}"))
        await until(lambda: house.archivist.backlog == 0)
    await house.archivist.drain(PATIENCE_SECONDS)
    assert (
        supervisor.troubles[0].startswith("archivist failed (RuntimeError)") and house.counts.faults["archivist"] == 1
    )
    assert sorted(await house.texts()) == ["hello 0", "hello 1", "hello 2"]
    await supervisor.stop()
    await house.database.close()


@pytest.mark.sqlite
async def test_drain_counts_what_could_not_be_written(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file stands in the way")
    house = House(tmp_path / "data" / "journal.db")
    async with asyncio.TaskGroup() as tasks:
        writing = tasks.create_task(house.archivist.write())
        house.archivist.note(turn_of(user("hello")))
        await until(lambda: house.counts.faults["journal"] > 0)
        await house.archivist.drain(0.05)
        writing.cancel()
    assert house.counts.lost == 1


PROGRAM = """
import asyncio, pathlib, sys
from palimpsest.domain import Ending
from tests.memory.recording.test_archivist import STREAM, House, ended, events, turn_of
from tests.talking import user
from palimpsest.wire import chat
from dataclasses import replace

async def main():
    house = House(pathlib.Path(sys.argv[1]))
    async with house.running():
        async def speak(name):
            for n in range(10_000):
                turn = replace(turn_of(user(f"{name} says {n}")), id=f"{name}-{n}", conversation=f"c-{name}-{n}")
                house.archivist.note(turn)
                listener = house.archivist.listen(turn, chat, 200, STREAM)
                for chunk in events(f"answer {name} {n}"):
                    listener.feed(chunk)
                await ended(listener)
                print(f"{name}-{n}", flush=True)
        await asyncio.gather(*map(speak, "abcd"))

asyncio.run(main())
"""


def acknowledged_before_the_kill(path: Path) -> list[str]:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(path)], stdout=subprocess.PIPE, cwd=Path(__file__).parents[3]
    ) as running:
        assert running.stdout is not None
        acknowledged = [running.stdout.readline().decode().strip() for _ in range(60)]
        running.kill()
        return acknowledged + running.stdout.read().decode().split()[:-1]  # the last line may be cut


@pytest.mark.sqlite
async def test_killed_while_writing_every_acknowledged_turn_is_there_and_indexing_is_finished(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    acknowledged = acknowledged_before_the_kill(path)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert set(acknowledged) <= {row[0] for row in db.execute("SELECT key FROM turn WHERE ending = 'complete'")}
        db.execute("UPDATE unindexed SET leased_until = 0")  # the lease of the dead is over
        db.commit()
    house = House(path)
    async with house.running():
        await house.indexed()
    await house.database.open()
    counted = await house.database.read("SELECT (SELECT count(*) FROM memory), (SELECT count(*) FROM vector)")
    memories, vectors = counted[0]
    assert memories == vectors >= 2 * len(acknowledged)
    await house.database.close()
