"""Turns that wait are brought each once and in the order of their lane; lanes are brought at the same time."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path

import pytest
from palimpsest.domain.errors import MemoryFault
from palimpsest.remote.courier import FILE_NAME, Away, Courier, Cover, Unacceptable
from palimpsest.telemetry.metrics import Metrics

SECRET = b"a secret of thirty-two bytes ....."
TURNS = ("a-1", "b-1", "a-2", "b-2", "a-3", "b-3")
LATE_SECONDS = 20.0  # before a test gives up


class Memory:
    """The other side: what it was brought, and which turns are held up or fail."""

    def __init__(self) -> None:
        self.turns: list[str] = []
        self.held: dict[str, asyncio.Event] = {}  # until these are set
        self.failing: dict[str, list[MemoryFault]] = {}  # what is raised first
        self.on_bring: Callable[[str], object] = lambda turn: None
        self.running = 0

    async def bring(self, turn: str, envelope: bytes) -> None:
        assert envelope == turn.encode()
        self.running += 1
        try:
            if turn in self.held:
                await self.held[turn].wait()
            if failures := self.failing.get(turn):
                raise failures.pop(0)
            self.turns.append(turn)
            self.on_bring(turn)
        finally:
            self.running -= 1

    async def look(self) -> None:
        """It answers."""

    def lane(self, name: str) -> list[str]:
        return [turn for turn in self.turns if turn.startswith(name)]


@asynccontextmanager
async def courier(folder: Path, memory: Memory, metrics: Metrics | None = None) -> AsyncIterator[Courier]:
    one = Courier(
        folder, SECRET, memory.bring, memory.look, metrics or Metrics(), 0.01, 0.01, lane_of=lambda it: chr(it[0])
    )
    await one.open()
    try:
        yield one
    finally:
        await one.close()


@asynccontextmanager
async def running(one: Courier) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(one.run())
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, MemoryFault):
            await task


async def take(one: Courier, *turns: str) -> None:
    for turn in turns:
        await one.take(turn, turn.encode())


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(LATE_SECONDS):
        while not condition():  # noqa: ASYNC110 - it tells of its count, but not of its troubles
            await asyncio.sleep(0.001)


async def test_turns_of_a_lane_arrive_in_their_order_and_once_while_another_lane_is_slow(tmp_path: Path) -> None:
    memory = Memory()
    memory.held["a-1"] = asyncio.Event()
    async with courier(tmp_path, memory) as one:
        await take(one, *TURNS)
        async with running(one):
            await until(lambda: one.waiting == 3)
            assert memory.turns == ["b-1", "b-2", "b-3"]
            memory.held["a-1"].set()
            await until(lambda: one.waiting == 0)
            assert memory.turns[3:] == ["a-1", "a-2", "a-3"] and await one.settled(LATE_SECONDS)


async def test_more_turns_than_a_round_holds_arrive_in_the_order_of_their_lanes(tmp_path: Path) -> None:
    memory = Memory()
    turns = [f"{lane}-{number}" for number in range(20) for lane in "abc"]
    async with courier(tmp_path, memory) as one:
        await take(one, *turns)
        async with running(one):
            await until(lambda: one.waiting == 0)
    assert [memory.lane(lane) for lane in "abc"] == [[turn for turn in turns if turn[0] == lane] for lane in "abc"]


async def test_a_lane_stops_where_memory_is_away_and_the_others_go_on(tmp_path: Path) -> None:
    memory, metrics = Memory(), Metrics()
    memory.failing = {"a-2": [Away("hanging"), Away("hanging")], "b-1": [Unacceptable("unreadable")]}
    troubles = []
    memory.on_bring = lambda turn: troubles.append((turn, one.trouble is not None))
    async with courier(tmp_path, memory, metrics) as one:
        await take(one, *TURNS)
        async with running(one):
            await until(lambda: one.waiting == 0 and one.trouble is None)
    assert troubles == [("a-1", False), ("b-2", False), ("b-3", False), ("a-2", True), ("a-3", True)]
    assert "palimpsest_turns_lost_total 1" in metrics.render().decode()


async def test_a_turn_that_somebody_else_is_writing_holds_up_its_lane_alone(tmp_path: Path) -> None:
    memory, is_written = Memory(), [False]
    async with courier(tmp_path, memory) as one:
        done: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        await one.take("a-1", b"a-1", Cover(done, lambda: is_written[0]))
        await take(one, "b-1", "a-2")
        async with running(one):
            await until(lambda: one.waiting == 2)
            assert memory.turns == ["b-1"]
            is_written[0] = True
            done.set_result(None)
            await until(lambda: one.waiting == 0)
            assert memory.turns == ["b-1", "a-2"]


async def test_nothing_is_being_brought_once_it_is_stopped_and_what_is_left_comes_at_the_next_start(
    tmp_path: Path,
) -> None:
    memory = Memory()
    memory.held = {"a-2": asyncio.Event(), "b-1": asyncio.Event()}
    async with courier(tmp_path, memory) as one:
        await take(one, *TURNS)
        async with running(one):
            await until(lambda: one.waiting == 5 and memory.running == 2)
        assert memory.running == 0
    memory.held.clear()
    async with courier(tmp_path, memory) as one:
        assert (one.waiting, one.is_behind) == (5, True)
        async with running(one):
            await until(lambda: not one.is_behind)
    assert (memory.lane("a"), memory.lane("b")) == (["a-1", "a-2", "a-3"], ["b-1", "b-2", "b-3"])


async def test_a_turn_that_cannot_be_removed_comes_again_before_those_behind_it(tmp_path: Path) -> None:
    memory = Memory()
    async with courier(tmp_path, memory) as one:
        await take(one, "a-1", "a-2")
        with closing(sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)) as other:
            memory.on_bring = lambda turn: turn == "a-1" and other.execute("BEGIN IMMEDIATE")
            with pytest.raises(MemoryFault, match="locked"):
                await asyncio.wait_for(one.run(), LATE_SECONDS)
        assert (memory.turns, one.waiting) == (["a-1"], 2)
        memory.on_bring = lambda turn: None
        async with running(one):
            await until(lambda: one.waiting == 0)
    assert memory.turns == ["a-1", "a-1", "a-2"]
