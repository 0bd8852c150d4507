"""Turns that wait are brought each once and in the order of their lane; lanes are brought at the same time."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path

from palimpsest.domain.errors import MemoryFault
from palimpsest.remote.courier import (
    FEW_FAILURES,
    FILE_NAME,
    MOST_BROUGHT,
    MOST_TRIES,
    SMALL_BYTES,
    Away,
    Courier,
    Cover,
    Unacceptable,
)
from palimpsest.telemetry.metrics import Metrics
from structlog.testing import capture_logs

SECRET = b"a secret of thirty-two bytes ....."
TURNS = ("a-1", "b-1", "a-2", "b-2", "a-3", "b-3")
LATE_SECONDS = 20.0  # before a test gives up


class Memory:
    """The other side: what it was brought, and which turns are held up or fail."""

    def __init__(self) -> None:
        self.turns: list[str] = []
        self.held: dict[str, asyncio.Event] = {}  # until these are set
        self.failing: dict[str, list[Exception]] = {}  # what is raised first
        self.on_bring: Callable[[str], object] = lambda turn: None
        self.running = 0
        self.is_away = False

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
        if self.is_away:
            raise Away("no route")

    def lane(self, name: str) -> list[str]:
        return [turn for turn in self.turns if turn.startswith(f"{name}-")]


@asynccontextmanager
async def courier(folder: Path, memory: Memory, metrics: Metrics | None = None) -> AsyncIterator[Courier]:
    seconds = {"away_seconds": 0.01, "denied_seconds": 0.01, "others_seconds": 0.01}
    one = Courier(folder, SECRET, memory.bring, memory.look, metrics or Metrics(), **seconds)
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
    """Put turns on the disk; the lane of one is its name before the dash."""
    for turn in turns:
        await one.take(turn, turn.encode(), turn.partition("-")[0])


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
            await until(lambda: one.waiting == 0 and not one.is_behind)
            assert memory.turns[3:] == ["a-1", "a-2", "a-3"] and await one.settled(LATE_SECONDS)


async def test_many_turns_arrive_in_the_order_of_their_lanes(tmp_path: Path) -> None:
    memory = Memory()
    turns = [f"{lane}-{number}" for number in range(20) for lane in "abc"]
    async with courier(tmp_path, memory) as one:
        await take(one, *turns)
        async with running(one):
            await until(lambda: one.waiting == 0 and not one.is_behind)
    assert [memory.lane(lane) for lane in "abc"] == [[turn for turn in turns if turn[0] == lane] for lane in "abc"]


async def test_a_lane_whose_turn_cannot_be_taken_is_tried_again_and_is_no_trouble_of_the_others(tmp_path: Path) -> None:
    memory, metrics = Memory(), Metrics()
    memory.failing = {"a-2": [Away("hanging"), Away("hanging")], "b-1": [Unacceptable("unreadable")]}
    troubles = []
    memory.on_bring = lambda turn: troubles.append((turn, one.trouble is not None))
    async with courier(tmp_path, memory, metrics) as one:
        await take(one, *TURNS)
        async with running(one):
            await until(lambda: one.waiting == 0 and not one.is_behind)
    assert sorted(troubles) == [(turn, False) for turn in sorted(TURNS) if turn != "b-1"]
    assert (memory.lane("a"), memory.lane("b")) == (["a-1", "a-2", "a-3"], ["b-2", "b-3"])
    assert "palimpsest_turns_lost_total 1" in metrics.render().decode()


async def test_where_turns_have_no_lane_one_that_cannot_be_taken_is_trouble_of_all(tmp_path: Path) -> None:
    memory = Memory()
    memory.failing = {"t-1": [Away("hanging"), Away("hanging")]}
    troubles = []
    memory.on_bring = lambda turn: troubles.append((turn, str(one.trouble)))
    async with courier(tmp_path, memory) as one:
        for turn in ("t-1", "t-2"):
            await one.take(turn, turn.encode())
        async with running(one):
            await until(lambda: one.trouble is not None)
            assert not await one.settled(LATE_SECONDS)
            await until(lambda: one.waiting == 0 and not one.is_behind)
            assert await one.settled(LATE_SECONDS)
    assert troubles == [("t-1", "hanging"), ("t-2", "None")]


async def test_while_memory_is_away_nothing_is_brought_and_nobody_waits_for_it(tmp_path: Path) -> None:
    memory = Memory()
    memory.failing, memory.is_away = {turn: [Away("no route")] for turn in ("a-1", "b-1")}, True
    async with courier(tmp_path, memory) as one:
        await take(one, *TURNS)
        async with running(one):
            await until(lambda: one.trouble is not None)
            assert [await one.settled(LATE_SECONDS, lane) for lane in "abc"] == [False] * 3
            await take(one, "c-1")
            memory.is_away = False
            await until(lambda: one.waiting == 0 and not one.is_behind)
            await until(lambda: not one.is_behind)
            assert [await one.settled(LATE_SECONDS, lane) for lane in "abc"] == [True] * 3
    assert [memory.lane(lane) for lane in "abc"] == [["a-1", "a-2", "a-3"], ["b-1", "b-2", "b-3"], ["c-1"]]


async def test_memory_has_all_of_a_lane_while_others_wait(tmp_path: Path) -> None:
    memory = Memory()
    memory.held = {"a-2": asyncio.Event()}
    async with courier(tmp_path, memory) as one:
        await take(one, *TURNS)
    async with courier(tmp_path, memory) as one:
        assert [await one.settled(0.01, lane) for lane in "abc"] == [False, False, True]
        async with running(one):
            await until(lambda: one.waiting == 2)
            async with asyncio.timeout(LATE_SECONDS):
                while not await one.settled(0.01, "b"):  # noqa: ASYNC110 - as above
                    await asyncio.sleep(0.001)
            assert [await one.settled(0.01, lane) for lane in "abc"] == [False, True, True]
            await take(one, "b-4")
            assert await one.settled(LATE_SECONDS, "b") and memory.lane("b") == ["b-1", "b-2", "b-3", "b-4"]
            memory.held["a-2"].set()
            await until(lambda: one.waiting == 0 and not one.is_behind)
            assert await one.settled(LATE_SECONDS, "a")


async def test_lanes_that_fail_again_and_again_hold_up_no_other_however_many_they_are(tmp_path: Path) -> None:
    memory = Memory()
    stuck = [f"stuck{number}" for number in range(2 * MOST_BROUGHT)]
    hopeless = {f"{lane}-1": [Away(f"{lane} hangs")] * 10_000 for lane in stuck}
    memory.failing = {**hopeless}
    async with courier(tmp_path, memory) as one:
        await take(one, *(f"{lane}-{number}" for lane in stuck for number in (1, 2)))
        with capture_logs() as lines:
            async with running(one):
                await until(lambda: all(len(left) <= 10_000 - FEW_FAILURES for left in memory.failing.values()))
                for turn in hopeless:
                    memory.held[turn] = asyncio.Event()  # from now on each failure takes as long as it likes
                await until(lambda: memory.running > 0)
                await take(one, *(f"z-{number}" for number in range(50)))
                await until(lambda: len(memory.lane("z")) == 50)
                assert not one.trouble and await one.settled(LATE_SECONDS, "z")
                assert not await one.settled(LATE_SECONDS, stuck[0])
                memory.failing.clear()
                for held in memory.held.values():
                    held.set()
                await until(lambda: one.waiting == 0 and not one.is_behind)
    assert [memory.lane(lane) for lane in stuck] == [[f"{lane}-1", f"{lane}-2"] for lane in stuck]
    told = [line["reason"] for line in lines if line["log_level"] == "warning"]
    assert sorted(told) == sorted(f"{lane} hangs" for lane in stuck), "each of them, once"


async def test_a_turn_that_fails_in_a_way_nobody_foresaw_is_given_up_in_the_end_and_holds_up_its_lane_alone(
    tmp_path: Path,
) -> None:
    memory, metrics = Memory(), Metrics()
    memory.failing = {"a-1": [ValueError("unforeseen")] * MOST_TRIES}
    memory.held["a-1"] = asyncio.Event()
    async with courier(tmp_path, memory, metrics) as one:
        await take(one, *TURNS)
        with capture_logs() as lines:
            async with running(one):
                await until(lambda: memory.lane("b") == ["b-1", "b-2", "b-3"])
                memory.held["a-1"].set()
                await until(lambda: one.waiting == 0 and not one.is_behind)
    assert memory.lane("a") == ["a-2", "a-3"] and not memory.failing["a-1"]
    assert "palimpsest_turns_lost_total 1" in metrics.render().decode()
    assert [(line["log_level"], line["reason"]) for line in lines] == [
        ("warning", "unforeseen"),
        ("error", "unforeseen"),
    ]


async def test_turns_of_another_process_of_the_folder_are_brought_once_it_has_ended(tmp_path: Path) -> None:
    memory = Memory()
    async with courier(tmp_path, memory) as one, running(one):
        async with courier(tmp_path, memory) as other:
            await take(other, "a-1", "a-2")
        await until(lambda: memory.turns == ["a-1", "a-2"])
        await until(lambda: one.waiting == 0 and not one.is_behind)
        assert await one.settled(LATE_SECONDS, "a")


async def test_turns_that_another_process_of_the_folder_has_brought_count_as_brought(tmp_path: Path) -> None:
    memory = Memory()
    async with courier(tmp_path, memory) as one:
        takings = [one.take(turn, turn.encode(), "a") for turn in ("a-1", "a-2")]
        brought = [await taking for taking in takings]
        async with courier(tmp_path, memory) as other, running(other):
            await until(lambda: other.waiting == 0)
        async with running(one):
            await asyncio.wait_for(asyncio.gather(*(turn for turn in brought if turn)), LATE_SECONDS)
            await until(lambda: one.waiting == 0 and not one.is_behind)
            assert await one.settled(LATE_SECONDS, "a")
    assert memory.turns == ["a-1", "a-2"] and all(brought)


async def test_large_turns_are_brought_one_at_a_time(tmp_path: Path) -> None:
    memory = Memory()
    sizes = {"a": SMALL_BYTES + 1, "b": SMALL_BYTES + 1, "c": 1}
    most = [0]

    async def bring(turn: str, envelope: bytes) -> None:
        memory.running += len(envelope) > SMALL_BYTES
        most[0] = max(most[0], memory.running)
        await asyncio.sleep(0.001)
        memory.turns.append(turn)
        memory.running -= len(envelope) > SMALL_BYTES

    one = Courier(tmp_path, SECRET, bring, memory.look, Metrics(), 0.01, 0.01)
    await one.open()
    for number in range(3):
        for lane, size_bytes in sizes.items():
            await one.take(f"{lane}-{number}", bytes(size_bytes), lane)
    async with running(one):
        await until(lambda: one.waiting == 0 and not one.is_behind)
    await one.close()
    assert most == [1] and [memory.lane(lane) for lane in sizes] == [
        [f"{lane}-{n}" for n in range(3)] for lane in sizes
    ]


async def test_a_turn_that_somebody_else_is_writing_holds_up_its_lane_alone(tmp_path: Path) -> None:
    memory, is_written = Memory(), [False]
    async with courier(tmp_path, memory) as one:
        done: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        await one.take("a-1", b"a-1", "a", Cover(done, lambda: is_written[0]))
        await take(one, "b-1", "a-2")
        async with running(one):
            await until(lambda: one.waiting == 2)
            assert memory.turns == ["b-1"]
            is_written[0] = True
            done.set_result(None)
            await until(lambda: one.waiting == 0 and not one.is_behind)
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


async def test_a_turn_whose_cover_comes_to_nothing_is_brought_before_those_behind_it(tmp_path: Path) -> None:
    memory = Memory()
    async with courier(tmp_path, memory) as one:
        done: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        await one.take("a-1", b"a-1", "a", Cover(done, lambda: False))
        await take(one, "a-2")
        async with running(one):
            done.set_result(None)
            await until(lambda: one.waiting == 0 and not one.is_behind)
    assert memory.turns == ["a-1", "a-2"]


async def test_a_turn_that_is_covered_while_its_lane_is_busy_waits_for_its_cover_too(tmp_path: Path) -> None:
    memory = Memory()
    async with courier(tmp_path, memory) as one:
        done: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        takings = []

        def take_next(turn: str) -> None:
            if turn == "a-1":
                takings.append(one.take("a-2", b"a-2", "a", Cover(done, lambda: False)))

        memory.on_bring = take_next
        await take(one, "a-1")
        async with running(one):
            await until(lambda: memory.turns == ["a-1"] and bool(takings) and takings[0].done())
            await asyncio.sleep(0.05)
            brought = await takings[0]
            assert brought is not None and not brought.done() and one.waiting == 1
            done.set_result(None)
            await until(lambda: one.waiting == 0 and not one.is_behind)
    assert memory.turns == ["a-1", "a-2"]


async def test_a_turn_that_was_brought_and_cannot_be_removed_is_not_brought_again(tmp_path: Path) -> None:
    memory = Memory()
    async with courier(tmp_path, memory) as one:
        await take(one, "a-1", "a-2")
        with closing(sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)) as other, capture_logs() as lines:
            memory.on_bring = lambda turn: turn == "a-1" and other.execute("BEGIN IMMEDIATE")
            async with running(one):
                await until(lambda: bool(lines))
                assert (memory.turns, one.waiting) == (["a-1"], 2)
                other.rollback()
                await until(lambda: one.waiting == 0 and not one.is_behind)
    assert memory.turns == ["a-1", "a-2"] and "locked" in lines[0]["reason"]


async def test_turns_without_a_lane_come_before_all_others_and_nobody_is_settled_before(tmp_path: Path) -> None:
    memory = Memory()
    async with courier(tmp_path, memory) as one:
        await one.take("t-1", b"t-1")
        await take(one, "a-1")
        memory.held["t-1"] = asyncio.Event()
        async with running(one):
            await until(lambda: memory.running == 1)
            assert not await one.settled(0.01, "b")
            memory.held["t-1"].set()
            await until(lambda: one.waiting == 0 and not one.is_behind)
    assert memory.turns == ["t-1", "a-1"]


async def test_where_the_disk_cannot_be_read_at_the_start_what_waits_is_behind_once_it_can(tmp_path: Path) -> None:
    memory = Memory()
    memory.held["a-1"] = asyncio.Event()
    async with courier(tmp_path, memory) as one:
        await take(one, "a-1")
    with closing(sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        one = Courier(tmp_path, SECRET, memory.bring, memory.look, Metrics(), 0.01, 0.01, others_seconds=0.01)
        await one.open()
    async with running(one):
        await until(lambda: memory.running == 1)
        assert not await one.settled(0.01, "a")
        memory.held["a-1"].set()
        await until(lambda: one.waiting == 0 and not one.is_behind)
    await one.close()


async def test_large_turns_that_hang_hold_up_neither_small_ones_nor_other_large_ones(tmp_path: Path) -> None:
    memory = Memory()
    hanging = {f"stuck{number}" for number in range(MOST_BROUGHT)}
    tries: Counter[str] = Counter()

    async def bring(turn: str, envelope: bytes) -> None:
        lane = turn.partition("-")[0]
        if lane in hanging and tries[lane] < FEW_FAILURES:
            tries[lane] += 1
            raise Away("it hangs")
        if lane in hanging:
            await asyncio.Event().wait()
        memory.turns.append(turn)

    one = Courier(tmp_path, SECRET, bring, memory.look, Metrics(), 0.01, 0.01)
    await one.open()
    for lane in hanging:
        await one.take(f"{lane}-1", bytes(SMALL_BYTES + 1), lane)
    async with running(one):
        await until(lambda: tries == dict.fromkeys(hanging, FEW_FAILURES))
        await one.take("a-1", b"a", "a")
        await one.take("b-1", bytes(SMALL_BYTES + 1), "b")
        await until(lambda: sorted(memory.turns) == ["a-1", "b-1"])
    await one.close()
