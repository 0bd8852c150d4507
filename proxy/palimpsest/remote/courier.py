"""
The courier: brings turns to a memory that may be away, from the disk of this machine, each once and in their order.

What is brought is a request as it was sent, with its answer; it is read there, when it is brought. So it never matters
what was known of the conversation when it was said.

Turns that must stay in their order are a lane. Lanes are brought at the same time, because bringing one turn after the
other would not keep up with many tenants; each in its turn, so that one that is stuck holds up no other.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import structlog

from palimpsest.domain.errors import MemoryFault
from palimpsest.domain.frozen import frozen
from palimpsest.domain.ports import Counts
from palimpsest.store.engine.sqlite.waiting import WaitingRoom

FILE_NAME = "waiting.db"
MOST_BYTES = 1 << 30  # of the file: some thousand turns of long histories, a week away from the other machine
MOST_LANES = 16  # at once: four for each connection that reads; the one that writes takes what is there together
MOST_HELD_BYTES = 64 << 20  # of memory that their turns take: half of what may wait to be written
FEW_TURNS = 4  # of a lane that is behind, for which a request still waits: bringing one takes some milliseconds

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


@dataclass(slots=True)
class _Waiting:
    """A turn on the disk, its number there, and what is done when it was brought."""

    number: int
    size_bytes: int
    brought: asyncio.Future[None]
    cover: Cover | None = None

    @property
    def is_covered(self) -> bool:
        """Whether somebody else is writing it, or has."""
        return self.cover is not None and not self.cover.has_failed


class Courier:
    """One per process. Run `run` in a supervised task between `open` and `close`."""

    def __init__(
        self,
        data: Path,
        secret: bytes,
        bring: Callable[[str, bytes], Awaitable[None]],
        look: Callable[[], Awaitable[object]],
        counts: Counts,
        away_seconds: float,
        denied_seconds: float,
        on_waiting: Callable[[int], None] = lambda turns: None,
        lane_of: Callable[[bytes], str] | None = None,
    ) -> None:
        """
        Args:
            bring: has a turn archived; when it returns, that is on the disk there. Raises `Away`, `Denied` or
                `Unacceptable`.
            look: raises one of the first two, unless memory answers.
            away_seconds, denied_seconds: between looks after each of these.
            on_waiting: told how many turns wait, whenever that changes.
            lane_of: the lane of a turn, by its envelope. What fails for one lane while memory answers is no trouble of
                the others. None: all are one lane.
        """
        self._room = waiting_room(data, secret)
        self._bring, self._look = bring, look
        self._counts = counts
        self._away_seconds, self._denied_seconds = away_seconds, denied_seconds
        self._thread = ThreadPoolExecutor(1, "waiting")
        self._wake = asyncio.Event()
        self._takings: set[Taking] = set()
        self._lanes: dict[str, deque[_Waiting]] = {}  # that wait; who was brought last is the last
        self._busy: dict[str, asyncio.Task[None]] = {}  # of those, which are being brought
        self._held_bytes = 0  # of turns that are being brought
        self._held_up: dict[str, str] = {}  # lanes whose first turn memory cannot take, and why
        self._is_loaded = False  # whether it is known what waits since before the start
        self._has_looked = False  # whether memory answers, since the start
        self._on_waiting, self._lane_of = on_waiting, lane_of
        self.waiting = 0
        self.trouble: Away | Denied | None = None
        self.is_behind = False  # turns wait that it should have had before

    async def open(self) -> None:
        with suppress(MemoryFault):
            await self._load()

    async def close(self) -> None:
        """What waits is brought at the next start."""
        await asyncio.gather(*self._takings, return_exceptions=True)
        self._thread.submit(self._room.close)
        self._thread.shutdown()

    async def settled(self, seconds: float, lane: str = "") -> bool:
        """Wait until all of a lane that was taken by now has been brought; False: memory does not have it yet."""
        late = {one.brought for one in self._lanes.get(lane, ()) if not one.is_covered}
        is_soon = not self.is_behind or len(late) <= FEW_TURNS
        if late and self.trouble is None and is_soon:
            _, late = await asyncio.wait(late, timeout=seconds)
        return not late and self.trouble is None

    def take(self, turn: str, envelope: bytes, cover: Cover | None = None) -> Taking:
        """
        Put a turn on the disk; returns at once.

        Args:
            cover: who is writing it already; it is brought where that comes to nothing.
        """
        taking = asyncio.create_task(self._take(turn, envelope, cover))
        self._takings.add(taking)
        taking.add_done_callback(self._takings.discard)
        return taking

    async def run(self) -> None:
        """Bring what waits; forever."""
        try:
            if not self._is_loaded:
                await self._load()
            while True:
                self._wake.clear()
                if await self._answers():
                    self._begin()
                await self._wake.wait()
                for lane, task in [*self._busy.items()]:
                    if task.done():
                        del self._busy[lane]
                        task.result()
        finally:
            for task in self._busy.values():
                task.cancel()
            await asyncio.gather(*self._busy.values(), return_exceptions=True)
            self._busy.clear()
            self._held_bytes = 0

    def fail(self, trouble: Away | Denied) -> None:
        """Memory is not to be asked until it answers again, and has all that was said meanwhile."""
        if str(trouble) != str(self.trouble or ""):
            log.warning("requests pass without memory, and their turns wait here", reason=str(trouble))
        self.trouble, self.is_behind = trouble, True
        self._wake.set()  # it is looked when it is back

    async def _take(self, turn: str, envelope: bytes, cover: Cover | None) -> asyncio.Future[None] | None:
        try:
            number = await self._on_disk(self._room.put, turn, envelope)
        except MemoryFault as fault:
            if cover is None:
                self._counts.add("turns_lost", 1)
            log.error("a turn cannot wait on this disk until it can be archived", turn=turn, reason=str(fault))
            return None
        waiting = _Waiting(number, len(envelope), asyncio.get_running_loop().create_future(), cover)
        self._lanes.setdefault(self._lane_of(envelope) if self._lane_of else "", deque()).append(waiting)
        self._count(self.waiting + 1)
        if cover is not None:
            cover.done.add_done_callback(self._wake_up)
        self._wake.set()
        return waiting.brought

    async def _load(self) -> None:
        """Learn what waits since before the start."""
        known = {one.number for lane in self._lanes.values() for one in lane}
        for number, size_bytes, lane in await self._on_disk(self._room.lanes, self._lane_of or (lambda envelope: "")):
            if number not in known:
                brought = asyncio.get_running_loop().create_future()
                self._lanes.setdefault(lane, deque()).append(_Waiting(number, size_bytes, brought))
        self._lanes = {lane: deque(sorted(turns, key=lambda one: one.number)) for lane, turns in self._lanes.items()}
        self._is_loaded = True
        self._count(sum(map(len, self._lanes.values())))
        self.is_behind = self.is_behind or bool(self._lanes)

    async def _answers(self) -> bool:
        """Whether memory is to be brought something; where it has not answered, it is looked once more."""
        if self.trouble is not None or not self._has_looked:
            try:
                await self._look()
            except (Away, Denied) as trouble:
                await self._pause(trouble)
                return False
            self._has_looked = True
            if self._lane_of or not self._lanes:
                self._recover()
        return True

    def _begin(self) -> None:
        """Begin with the first turns of as many lanes as may be brought at once."""
        for lane, turns in [*self._lanes.items()]:
            first = turns[0]
            is_being_written = first.cover is not None and not first.cover.done.done()
            if lane in self._busy or is_being_written:
                continue
            has_room = not self._held_bytes or self._held_bytes + first.size_bytes <= MOST_HELD_BYTES
            if len(self._busy) == MOST_LANES or not has_room:
                return
            self._held_bytes += first.size_bytes
            self._lanes[lane] = self._lanes.pop(lane)
            self._busy[lane] = asyncio.create_task(self._bring_first(lane, first))
            self._busy[lane].add_done_callback(self._wake_up)

    async def _bring_first(self, lane: str, first: _Waiting) -> None:
        """Bring the first turn of a lane, which stays the first where memory cannot take it now."""
        trouble = None
        if not first.is_covered:
            self.is_behind |= first.cover is not None  # whoever was to write it has not
            trouble = await self._bring_one(first.number)
        self._held_bytes -= first.size_bytes
        if trouble is not None:
            await self._hold_up(lane, trouble)
            return
        await self._on_disk(self._room.remove, first.number)
        self._lanes[lane].popleft()
        if not self._lanes[lane]:
            del self._lanes[lane]
        self._held_up.pop(lane, None)
        self._count(self.waiting - 1)
        first.brought.set_result(None)
        if self.trouble is None or self._lane_of is None:
            self._recover()

    async def _bring_one(self, number: int) -> Away | Denied | None:
        """Bring a turn, unless another process of this folder has; why memory cannot take it now."""
        if (found := await self._on_disk(self._room.read, number)) is not None:
            try:
                await self._bring(*found)
            except (Away, Denied) as trouble:
                return trouble
            except Unacceptable as refused:
                self._counts.add("turns_lost", 1)
                log.error("a turn is lost: it cannot be archived", turn=found[0], reason=str(refused))
        return None

    async def _hold_up(self, lane: str, trouble: Away | Denied) -> None:
        """Wait with a lane; where memory answers otherwise, that is no trouble of the others."""
        self.is_behind = True
        if self._lane_of is None:
            await self._pause(trouble)
            return
        try:
            await self._look()
        except (Away, Denied) as general:
            await self._pause(general)
            return
        if self._held_up.get(lane) != str(trouble):
            log.warning("turns of one tenant wait here; its requests pass without memory", reason=str(trouble))
        self._held_up[lane] = str(trouble)
        await asyncio.sleep(self._away_seconds)

    async def _pause(self, trouble: Away | Denied) -> None:
        self.fail(trouble)
        await asyncio.sleep(self._denied_seconds if isinstance(trouble, Denied) else self._away_seconds)

    def _recover(self) -> None:
        """Memory answers, and has all where nothing waits any more."""
        if self.trouble is not None:
            log.info("memory is back")
        self.trouble, self.is_behind = None, self.is_behind and bool(self._lanes)

    def _wake_up(self, _done: object) -> None:
        self._wake.set()

    def _count(self, waiting: int) -> None:
        self.waiting = waiting
        self._on_waiting(waiting)

    async def _on_disk(self, work: Callable[..., T], *given: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *given)


def waiting_room(data: Path, secret: bytes) -> WaitingRoom:
    """The turns that wait in this data folder."""
    return WaitingRoom(data / FILE_NAME, secret, MOST_BYTES)
