"""Turns that a process of its own archives are on the disk when their answers end, whatever becomes of that process."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
import psutil
import pytest
from palimpsest.domain import Ending, Turn
from palimpsest.domain.ports import Listener
from palimpsest.memory.recording.archive_process import INLINE_BYTES, MODULE, STARTING, ArchiveProcess
from palimpsest.memory.recording.archivist import Archivist
from palimpsest.memory.recording.queue_room import ArchiveLimits
from palimpsest.memory.supervision import Supervisor
from palimpsest.settings.policy import Policy
from palimpsest.store.data_dir import DATABASE_FILE
from palimpsest.store.journal import Journal
from palimpsest.wire import chat

from tests.databases import database_in
from tests.memory.recording.test_archivist import SECRET, STREAM, Tally, ended, events, turn_of
from tests.talking import user

PATIENCE_SECONDS = 60.0


class House:
    """An archivist whose turns a process of its own writes."""

    def __init__(self, data: Path, stuck_seconds: float = PATIENCE_SECONDS) -> None:
        model = {"download": "never", "cache": data / "no models"}
        memory = {"deadline_ms": 1000 * PATIENCE_SECONDS}
        self.database = database_in(data)
        store = {"url": getattr(self.database, "url", "")}
        self.policy = policy = Policy.model_validate({"data": data, "model": model, "memory": memory, "store": store})
        self.journal = Journal(self.database)
        self.counts = Tally()
        self.usage: list[int] = []
        self.process = ArchiveProcess(policy, SECRET, self.counts, stuck_seconds)
        self.archivist = Archivist(
            *(self.process, self.counts, time.time),
            lambda turn, tokens: self.usage.append(tokens),
            limits=ArchiveLimits(commit_wait_seconds=PATIENCE_SECONDS),
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        await self.database.open()
        supervisor = Supervisor(self.counts, first_pause_seconds=0.01)
        supervisor.start("archivist", self.archivist.write)
        self.process.begin()
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self.process.ready()
            yield
            await self.archivist.drain(PATIENCE_SECONDS)
        finally:
            await supervisor.stop()
            await self.database.close()

    async def exchange(self, turn: Turn, answer: str = "hi") -> None:
        """A whole turn, which is on the disk when this returns."""
        await ended(self.hear(turn, answer))

    def hear(self, turn: Turn, answer: str = "hi") -> Listener:
        self.archivist.note(turn)
        listener = self.archivist.listen(turn, chat, 200, STREAM)
        for chunk in events(answer):
            listener.feed(chunk)
        return listener

    async def texts(self) -> list[str]:
        return [row[0] for row in await self.database.read("SELECT text FROM content ORDER BY id")]

    async def complete(self) -> list[str]:
        rows = await self.database.read("SELECT key FROM turn WHERE ending = 'complete' ORDER BY key")
        return [key for (key,) in rows]


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def children() -> list[int]:
    """Process ids of archive processes that we have started."""
    started = psutil.Process().children()
    return [one.pid for one in started if one.status() != psutil.STATUS_ZOMBIE and MODULE in " ".join(one.cmdline())]


async def until(holds: Callable[[], bool], pause_seconds: float = 0.01) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not holds():  # noqa: ASYNC110 - what is waited for knows nothing of us
            await asyncio.sleep(pause_seconds)


def numbered(count: int) -> list[Turn]:
    return [replace(turn_of(user(f"hello {n}")), id=f"t-{n:03}", conversation=f"c-{n}") for n in range(count)]


@dataclass(frozen=True)
class Deadly:
    """A value that ends the process which reads it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os._exit, (9,)


async def test_exchange_is_on_the_disk_when_the_end_of_the_answer_may_go(house: House) -> None:
    async with house.running():
        await house.exchange(turn_of(user("hello")), "hi there")
        assert await house.texts() == ["hello", "hithere"]
        assert (house.usage, house.archivist.backlog, house.archivist.troubles) == ([12], 0, ())
        assert house.counts.observed["journal"] > 0 and house.counts.added["prompt_tokens"] == 12, "counted here"


async def test_what_was_handed_over_is_written_when_all_is_closed(house: House) -> None:
    async with house.running():
        for turn in numbered(20):
            house.archivist.note(turn)
    await house.database.open()
    assert await house.database.read("SELECT count(*) FROM turn") == [(20,)]
    await house.database.close()


@pytest.mark.slow  # starts and kills processes
async def test_process_that_is_killed_is_started_again_and_nothing_is_lost_or_written_twice(house: House) -> None:
    async with house.running():
        listeners = []
        for n, turn in enumerate(numbered(60)):
            listener = house.hear(turn)
            listener.finish(Ending.COMPLETE)
            listeners.append(listener)
            if n % 20 == 10:
                await listener.committed()
                assert house.process.pid is not None
                os.kill(house.process.pid, signal.SIGKILL)
        for listener in listeners:
            await listener.committed()
        assert await house.complete() == [f"t-{n:03}" for n in range(60)]
        assert await house.database.read("SELECT count(*), count(DISTINCT key) FROM turn") == [(60, 60)]
        assert (house.counts.lost, house.archivist.backlog) == (0, 0)
        assert house.counts.faults["archivist"] == 3


@pytest.mark.slow  # starts and kills processes
async def test_kills_one_behind_the_other_lose_nothing_and_give_no_turn_up(house: House) -> None:
    async with house.running():
        listeners = []
        for turn in numbered(120):
            listener = house.hear(turn)
            listener.finish(Ending.COMPLETE)
            listeners.append(listener)
        for _ in range(5):
            killed = house.process.pid
            assert killed is not None
            os.kill(killed, signal.SIGKILL)
            await until(lambda killed=killed: house.process.pid != killed)  # type: ignore[misc]
        for listener in listeners:
            await listener.committed()
        assert await house.complete() == [f"t-{n:03}" for n in range(120)]
        assert (house.counts.lost, house.archivist.backlog) == (0, 0)


@pytest.mark.slow  # starts and kills processes
async def test_after_a_death_another_process_waits_in_reserve_and_takes_over(house: House) -> None:
    async with house.running():
        for deaths in range(1, 4):
            killed = house.process.pid
            assert killed is not None
            in_reserve = set(children()) - {killed}
            os.kill(killed, signal.SIGKILL)
            await house.exchange(
                replace(turn_of(user(f"death {deaths}")), conversation=f"c-{deaths}", id=f"t-{deaths}")
            )
            assert deaths == 1 or house.process.pid in in_reserve
            await until(lambda: bool(set(children()) - {house.process.pid}))
    await until(lambda: not children())


@pytest.mark.slow  # starts and kills processes
async def test_turn_that_kills_the_process_is_given_up_and_takes_no_other_with_it(house: House) -> None:
    turns = numbered(6)
    async with house.running():
        await house.exchange(turns[0])
        for n, turn in enumerate(turns[1:], start=1):
            house.archivist.note(replace(turn, explain={"said": Deadly()}) if n == 4 else turn)
        await until(lambda: house.archivist.backlog == 0)
        await house.exchange(replace(turn_of(user("afterwards")), conversation="c-7"))
        texts = {"hello 0", "hi", "hello 1", "hello 2", "hello 3", "hello 5", "afterwards"}
        assert set(await house.texts()) == texts
        assert house.counts.lost == 1


async def test_count_that_cannot_be_counted_keeps_no_turn_from_the_archive(house: House) -> None:
    said = {"choices": [{"index": 0, "delta": {"content": "hi"}}], "usage": {"prompt_tokens": -1}}
    async with house.running():
        turn = turn_of(user("hello"))
        house.archivist.note(turn)
        listener = house.archivist.listen(turn, chat, 200, STREAM)
        for data in (orjson.dumps(said), b"[DONE]"):
            listener.feed(b"data: " + data + b"\n\n")
        await ended(listener)
        assert await house.texts() == ["hello", "hi"]
        assert (house.counts.lost, house.counts.faults["archivist"]) == (0, 0)


async def test_turn_that_is_nested_too_deep_to_be_sent_is_given_up_and_takes_no_other_with_it(house: House) -> None:
    before, deep, behind = numbered(3)
    said: list[Any] = []
    for _ in range(100_000):
        said = [said]
    async with house.running():
        await house.exchange(before)
        await house.exchange(replace(deep, explain={"said": said}))
        await house.exchange(behind, "there")
        assert await house.texts() == ["hello 0", "hi", "hello 2", "there"]
        assert (house.archivist.backlog, house.counts.lost, house.counts.faults["quarantine"]) == (0, 2, 2)
        assert house.counts.faults["archivist"] == 0


async def test_while_there_is_no_process_for_long_that_is_said_and_no_answer_waits_for_it(tmp_path: Path) -> None:
    house = House(tmp_path, stuck_seconds=0.0)
    assert house.archivist.is_failing and house.archivist.troubles == (STARTING,)
    async with house.running():
        await until(lambda: not house.archivist.is_failing)
        assert house.process.pid is not None
        os.kill(house.process.pid, signal.SIGKILL)
        await until(lambda: house.archivist.is_failing, 0)  # another is started within milliseconds
        await until(lambda: not house.archivist.is_failing)


async def test_process_that_is_there_again_soon_is_no_failure(house: House) -> None:
    async with house.running():
        pid = house.process.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await until(lambda: house.process.pid != pid)
        await house.exchange(turn_of(user("hello")))
        assert await house.texts() == ["hello", "hi"]
        assert not house.archivist.is_failing and house.counts.faults["archivist"] == 1


async def test_signals_that_stop_the_proxy_are_left_to_it(house: House) -> None:
    async with house.running():
        pid = house.process.pid
        assert pid is not None
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            os.kill(pid, number)
        await house.exchange(turn_of(user("hello")))
        assert house.process.pid == pid


async def test_long_request_is_archived_with_its_answer_and_what_came_after_it(house: House) -> None:
    long, short = user("long " * INLINE_BYTES), user("short")
    async with house.running():
        turn = turn_of(long)
        listener = house.hear(turn)
        house.archivist.note(replace(turn_of(short), conversation="c-2"))
        await ended(listener)
        assert set(await house.texts()) == {long["content"], "hi", "short"}
        found = await house.journal.turn("acme", "c-1", 1)
        assert found is not None and found["ending"] == "complete"


async def test_answer_is_read_with_the_turn_that_was_sent_in_the_end(house: House) -> None:
    turn = turn_of(user("hello"))
    bare = replace(turn, is_bare=True, tokens=77)
    async with house.running():
        house.archivist.note(turn)
        listener = house.archivist.listen(bare, chat, 200, STREAM)
        for chunk in events("hi"):
            listener.feed(chunk)
        await ended(listener)
        assert await house.database.read("SELECT ending, prompt_tokens FROM turn") == [("complete", 12)]


async def test_redaction_follows_the_policy(house: House) -> None:
    async with house.running():
        said = [replace(turn_of(user(f"{n}: password: hunter2")), conversation=f"c-{n}") for n in range(2)]
        await house.exchange(said[0])
        archive = house.policy.archive.model_copy(update={"redact": False})
        house.archivist.apply(house.policy.model_copy(update={"archive": archive}))
        await house.exchange(said[1], "there")
        assert await house.texts() == ["0: password: [redacted:password]", "hi", "1: password: hunter2", "there"]


async def test_secret_and_words_stand_in_no_argument_and_no_variable_of_the_process(house: House) -> None:
    async with house.running():
        folder = Path("/proc") / str(house.process.pid)
        if not folder.exists():
            pytest.skip("this system has no /proc")
        for file in ("cmdline", "environ"):
            assert SECRET not in (folder / file).read_bytes()


ON_UVLOOP = """
import asyncio, os, pathlib, signal, sys, time
import uvloop
from palimpsest.domain import Ending
from tests.memory.recording.test_archive_process import House, numbered

async def main():
    house = House(pathlib.Path(sys.argv[1]))
    async with house.running():
        os.kill(house.process.pid, signal.SIGKILL)
        time.sleep(0.2)  # it is dead, and nobody knows
        for turn in numbered(20):
            house.hear(turn).finish(Ending.COMPLETE)
        while house.archivist.backlog:
            await asyncio.sleep(0.01)
        print(len(await house.complete()), house.counts.lost, house.counts.faults["archivist"])

uvloop.run(main())
"""


@pytest.mark.slow  # starts and kills processes
def test_what_is_sent_to_a_process_that_has_just_died_goes_to_the_next_on_the_loop_that_serves(tmp_path: Path) -> None:
    command, root = [sys.executable, "-c", ON_UVLOOP, str(tmp_path)], Path(__file__).parents[3]
    done = subprocess.run(command, stdout=subprocess.PIPE, cwd=root, check=True)
    assert done.stdout.splitlines()[-1].split() == [b"20", b"0", b"1"], "behind the log"


OWNER = """
import asyncio, os, pathlib, sys
from palimpsest.memory.recording.write_batch import GATHER_SECONDS
from tests.memory.recording.test_archive_process import House, numbered

async def main():
    house = House(pathlib.Path(sys.argv[1]))
    async with house.running():
        for turn in numbered(40):
            house.archivist.note(turn)
        await asyncio.sleep(4 * GATHER_SECONDS)
        print(house.process.pid, flush=True)
        os._exit(9)

asyncio.run(main())
"""


def test_what_was_sent_is_written_and_the_process_ends_when_its_owner_dies(tmp_path: Path) -> None:
    command, root = [sys.executable, "-c", OWNER, str(tmp_path)], Path(__file__).parents[3]
    done = subprocess.run(command, stdout=subprocess.PIPE, cwd=root)
    pid = int(done.stdout)
    give_up = time.monotonic() + PATIENCE_SECONDS
    while (Path("/proc") / str(pid)).exists():
        assert time.monotonic() < give_up, "it goes on"
        time.sleep(0.02)
    with closing(sqlite3.connect(tmp_path / DATABASE_FILE)) as db:
        assert db.execute("SELECT count(*) FROM turn").fetchone() == (40,)
