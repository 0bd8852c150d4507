"""
The courier: brings turns to a memory that may be away, from the disk of this machine, each once and in their order.

What is brought is a request as it was sent, with its answer; it is read there, when it is brought. So it never matters
what was known of the conversation when it was said.

Turns that must stay in their order are a lane. Lanes are brought at the same time, because bringing one turn after the
other would not keep up with many tenants; they take turns, and those that fail have places of their own, so that none
holds up the others.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import structlog

from palimpsest.domain.errors import MemoryFault
from palimpsest.domain.frozen import frozen
from palimpsest.domain.ports import Counts
from palimpsest.store.engine.sqlite.waiting import WaitingRoom

FILE_NAME = "waiting.db"
MOST_BYTES = 1 << 30  # of the file: some thousand turns of long histories, a week away from the other machine
MOST_BROUGHT = 16  # lanes at once: four for each connection that reads; the one that writes takes all that is there
FEW_FAILURES = 2  # of a turn, that happen to anybody; then its lane waits with those that fail again and again
MOST_RETRIED = 4  # of these at once: one may take half a minute to fail
SMALL_BYTES = 2 << 20  # of an envelope; larger ones are brought one at a time, so that all together take little memory
FIRST_SECONDS = 5.0  # that a turn takes before it counts as failed: whatever works is done in a tenth of that
MOST_TRIES = 10  # of a turn that fails in a way that nobody foresaw: what passes by itself has passed by then
OTHERS_SECONDS = 60.0  # between looks for turns that another process of this folder has left behind
EVERYBODY = b""  # the lane of turns without one: where that fails, memory is away

log = structlog.get_logger()

T = TypeVar("T")

Taking = asyncio.Task[asyncio.Future[None] | None]
"""A turn on its way to the disk; its result is done when it was brought. None: the turn is lost."""


class Away(MemoryFault):
    """Memory does not answer, or cannot do it now: the same will work later."""


class Denied(MemoryFault):
    """It answers, and does not keep memory for us. The text says what to do."""


class Unacceptable(MemoryFault):
    """It will never take this turn."""


@frozen
class Cover:
    """Somebody else who is writing a turn already: `done` when that is over, and whether it is written then."""

    done: asyncio.Future[object]
    is_written: Callable[[], bool]

    @property
    def has_failed(self) -> bool:
        return self.done.done() and not self.is_written()


@frozen
class _Own:
    """A turn of this process on its way: done when it was brought, and who covers it."""

    brought: asyncio.Future[None]
    cover: Cover | None

    @property
    def is_covered(self) -> bool:
        return self.cover is not None and not self.cover.has_failed


class _Places:
    """The places of lanes that are brought at once."""

    def __init__(self, most: int) -> None:
        self._all, self._large = asyncio.Semaphore(most), asyncio.Lock()

    @asynccontextmanager
    async def place(self, size_bytes: int) -> AsyncIterator[None]:
        """A place for a turn of this size."""
        async with self._large if size_bytes > SMALL_BYTES else nullcontext(), self._all:
            yield


@dataclass(slots=True)
class _Lane:
    """Turns that must stay in their order, while some of them wait."""

    is_behind: bool  # turns wait that memory should have had before
    own: dict[int, _Own] = field(default_factory=dict)  # turns of this process, by number, in their order
    task: asyncio.Task[None] | None = None  # that brings them
    first: int = 0  # number of the turn that is brought, or was brought last
    is_over: bool = False  # that one needs not be brought any more, and is to be removed
    failure: str = ""  # why it could not be brought the last time
    failures: int = 0  # of it, one after the other
    tries: int = 0  # of it, that failed in a way that nobody foresaw

    def end_before(self, number: int) -> None:
        """Say of all own turns before this one that they were brought."""
        for passed in [own for own in self.own if own < number]:
            self.own.pop(passed).brought.set_result(None)


class Courier:
    """One per process. Run `run` in a supervised task between `open` and `close`."""

    def __init__(
        self,
        data: Path,
        secret: bytes,
        # has a turn archived; when it returns, that is on the disk there. Raises `Away`, `Denied` or `Unacceptable`
        bring: Callable[[str, bytes], Awaitable[None]],
        look: Callable[[], Awaitable[object]],  # raises one of the first two, unless memory answers
        counts: Counts,
        # between looks after each of these
        away_seconds: float,
        denied_seconds: float,
        on_waiting: Callable[[int], None] = lambda turns: None,  # told how many turns wait, whenever that changes
        others_seconds: float = OTHERS_SECONDS,  # between looks for turns that other processes have left
    ) -> None:
        self._room = waiting_room(data, secret)
        self._bring, self._look = bring, look
        self._counts = counts
        self._away_seconds, self._denied_seconds, self._others_seconds = away_seconds, denied_seconds, others_seconds
        self._thread = ThreadPoolExecutor(1, "waiting")
        self._wake = asyncio.Event()
        self._answers = asyncio.Event()  # memory did, when it was looked last
        self._takings: set[Taking] = set()
        self._lanes: dict[bytes, _Lane] = {}  # of which turns wait
        self._others: set[tuple[bytes, int]] | None = None  # further ones, at the last look, with their first numbers
        self._brought, self._retried = _Places(MOST_BROUGHT), _Places(MOST_RETRIED)
        self._on_waiting = on_waiting
        self.waiting = 0
        self.trouble: Away | Denied | None = None

    @property
    def is_behind(self) -> bool:
        """Whether turns wait that memory should have had before."""
        return self.trouble is not None or any(lane.is_behind for lane in self._lanes.values())

    async def open(self) -> None:
        with suppress(MemoryFault):
            await self._learn()

    async def close(self) -> None:
        """What waits is brought at the next start."""
        await asyncio.gather(*self._takings, return_exceptions=True)
        self._thread.submit(self._room.close)
        self._thread.shutdown()

    async def settled(self, seconds: float, lane: str = "") -> bool:
        """Wait until all of a lane that was taken by now has been brought; False: memory does not have it yet."""
        if self.trouble is not None:
            return False
        waits = self._lanes.get(EVERYBODY) or self._lanes.get(self._room.lane(lane))
        if waits is None or waits.is_behind:
            return waits is None
        if on_their_way := [own.brought for own in waits.own.values() if not own.is_covered]:
            _, late = await asyncio.wait(on_their_way, timeout=seconds)
            return not late and self.trouble is None
        return True

    def take(self, turn: str, envelope: bytes, lane: str = "", cover: Cover | None = None) -> Taking:
        """
        Put a turn on the disk; returns at once.

        Args:
            lane: whose turns stay in their order; "": everybody's.
            cover: who is writing it already; it is brought where that comes to nothing.
        """
        taking = asyncio.create_task(self._take(turn, envelope, self._room.lane(lane), cover))
        self._takings.add(taking)
        taking.add_done_callback(self._takings.discard)
        return taking

    async def run(self) -> None:
        """Bring what waits; forever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._learn_of_others())
            while True:
                self._wake.clear()
                if await self._is_answering():
                    for name, lane in self._lanes.items():
                        may_begin = name == EVERYBODY or EVERYBODY not in self._lanes
                        if may_begin and (lane.task is None or lane.task.done()):
                            lane.task = tasks.create_task(self._bring_lane(name, lane))
                    await self._wake.wait()

    def fail(self, trouble: Away | Denied) -> None:
        """Memory is not to be asked until it answers again, and has all that was said meanwhile."""
        if str(trouble) != str(self.trouble or ""):
            log.warning("requests pass without memory, and their turns wait here", reason=str(trouble))
        self.trouble = trouble
        for lane in self._lanes.values():
            lane.is_behind = True
        self._answers.clear()
        self._wake.set()  # it is looked when it is back

    async def _take(self, turn: str, envelope: bytes, name: bytes, cover: Cover | None) -> asyncio.Future[None] | None:
        try:
            number = await self._on_disk(self._room.put, turn, envelope, name)
        except MemoryFault as fault:
            if cover is None:
                self._counts.add("turns_lost", 1)
            log.error("a turn cannot wait on this disk until it can be archived", turn=turn, reason=str(fault))
            return None
        lane = self._lanes.setdefault(name, _Lane(is_behind=False))
        lane.is_behind |= self.trouble is not None
        own = lane.own[number] = _Own(asyncio.get_running_loop().create_future(), cover)
        self._count(self.waiting + 1)
        self._wake.set()
        return own.brought

    async def _learn_of_others(self) -> None:
        """Learn of turns whose process has ended, and of those that this one could not read before; forever."""
        while True:
            try:
                await self._learn()
                self._wake.set()
            except MemoryFault as fault:
                log.warning("it cannot be read which turns wait on this disk", reason=str(fault))
            await asyncio.sleep(self._others_seconds)

    async def _learn(self) -> None:
        """Learn what waits on the disk; after the start only what whoever put it there has not brought since."""
        waiting = await self._on_disk(self._room.lanes)
        others = {(name, number) for name, number, _ in waiting if name not in self._lanes}
        for name, _ in others if self._others is None else others & self._others:
            self._lanes[name] = _Lane(is_behind=True)
        self._others = others
        self._count(sum(count for *_, count in waiting))

    async def _is_answering(self) -> bool:
        """Whether memory answers; where it did not, it is looked again, and after a while once more."""
        if not self._answers.is_set():
            if await self._has_gone():
                await asyncio.sleep(self._pause_seconds(self.trouble))
                return False
            self._answers.set()
            if EVERYBODY not in self._lanes:
                self._recover()
        return True

    async def _bring_lane(self, name: bytes, lane: _Lane) -> None:
        """Bring the turns of a lane one after the other, until none waits."""
        while self._lanes.get(name) is lane:
            await self._answers.wait()
            try:
                await self._bring_first(name, lane)
            except TimeoutError:
                await self._hold_up(name, lane, Away(f"bringing it takes longer than {FIRST_SECONDS:g} seconds"))
            except Exception as failure:  # a guard: what is wrong with one turn must not hold up other lanes
                await self._hold_up(name, lane, failure)

    async def _bring_first(self, name: bytes, lane: _Lane) -> None:
        """Bring the first turn of a lane, once whoever covers it has ended; where there is none, the lane ends."""
        found = await self._on_disk(self._room.first, name)
        number, size_bytes = found or (sys.maxsize, 0)
        lane.end_before(number)  # another process has brought those
        if found is None:
            del self._lanes[name]
            self._recover()
            self._wake.set()  # others may have waited for it
            return
        if number != lane.first:
            lane.first, lane.is_over, lane.failure, lane.failures, lane.tries = number, False, "", 0, 0
        own = lane.own.get(number)
        if own is not None and own.cover is not None and not lane.is_over:
            await asyncio.wait([own.cover.done])
            lane.is_over = own.is_covered
            lane.is_behind |= not own.is_covered
        if not lane.is_over:
            places, seconds = self._brought, None if name == EVERYBODY else FIRST_SECONDS
            if lane.failures >= FEW_FAILURES:
                places, seconds = self._retried, None
            async with places.place(size_bytes):
                if not self._answers.is_set():
                    return
                async with asyncio.timeout(seconds):
                    await self._bring_one(number, is_last_try=lane.tries + 1 >= MOST_TRIES)
            lane.is_over = True
        await self._on_disk(self._room.remove, number)
        lane.end_before(number + 1)
        self._count(max(self.waiting - 1, 0))
        self._recover()

    async def _bring_one(self, number: int, is_last_try: bool) -> None:
        """Bring a turn, unless another process has meanwhile; one that can never be brought is counted and logged."""
        if (found := await self._on_disk(self._room.read, number)) is None:
            return
        try:
            await self._bring(*found)
        except (Away, Denied):
            raise
        except Exception as refused:
            if not isinstance(refused, Unacceptable) and not is_last_try:
                raise
            self._counts.add("turns_lost", 1)
            log.error("a turn is lost: it cannot be archived", turn=found[0], reason=str(refused))

    async def _hold_up(self, name: bytes, lane: _Lane, failure: Exception) -> None:
        """Wait with a lane before its first turn is tried again; where memory is away, all wait."""
        lane.is_behind = True
        is_of_all = False
        if isinstance(failure, (Away, Denied)):
            is_of_all = name == EVERYBODY
            if is_of_all:
                self.fail(failure)
            elif not self._answers.is_set() or await self._has_gone():
                return
        elif not isinstance(failure, MemoryFault):
            lane.tries += 1
            self._counts.fault("courier")
        reason = str(failure) or type(failure).__name__
        if not is_of_all and lane.failure != reason:
            trace = None if isinstance(failure, MemoryFault) else failure
            log.warning("a turn cannot be brought; it waits with those behind it", reason=reason, exc_info=trace)
        lane.failure = reason
        lane.failures += 1
        await asyncio.sleep(self._pause_seconds(failure))

    async def _has_gone(self) -> bool:
        """Whether memory does not answer at all."""
        try:
            await self._look()
        except (Away, Denied) as trouble:
            self.fail(trouble)
            return True
        return False

    def _recover(self) -> None:
        """Memory has taken something, or nothing waits for it: it is there again, unless it has gone meanwhile."""
        if self.trouble is not None and self._answers.is_set():
            log.info("memory is back; what was said meanwhile follows")
            self.trouble = None

    def _pause_seconds(self, failure: Exception | None) -> float:
        return self._denied_seconds if isinstance(failure, Denied) else self._away_seconds

    def _count(self, waiting: int) -> None:
        self.waiting = waiting
        self._on_waiting(waiting)

    async def _on_disk(self, work: Callable[..., T], *given: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *given)


def waiting_room(data: Path, secret: bytes) -> WaitingRoom:
    """The turns that wait in this data folder."""
    return WaitingRoom(data / FILE_NAME, secret, MOST_BYTES)
