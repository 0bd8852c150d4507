"""
The courier: brings turns to a memory that may be away, from the disk of this machine, each once and in their order.

What is brought is a request as it was sent, with its answer; it is read there, when it is brought. So it never matters
what was known of the conversation when it was said.

Turns that must stay in their order are a lane. Lanes are brought at the same time, in rounds, because bringing one turn
after the other would not keep up with many tenants.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import structlog

from palimpsest.domain.errors import MemoryFault
from palimpsest.domain.frozen import frozen
from palimpsest.domain.ports import Counts
from palimpsest.store.engine.sqlite.waiting import WaitingRoom

FILE_NAME = "waiting.db"
MOST_BYTES = 1 << 30  # of the file: some thousand turns of long histories, a week away from the other machine
ROUND_TURNS = 16  # four for each connection that reads; the one that writes takes what is there in one transaction
ROUND_BYTES = 16 << 20  # of memory that these take: an eighth of what may wait to be written
COVER_SECONDS = 5.0  # between looks at a turn that somebody else is writing

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
        lane_of: Callable[[bytes], str] = lambda envelope: "",
    ) -> None:
        """
        Args:
            bring: has a turn archived; when it returns, that is on the disk there. Raises `Away`, `Denied` or
                `Unacceptable`.
            look: raises one of the first two, unless memory answers.
            away_seconds, denied_seconds: between looks after each of these.
            on_waiting: told how many turns wait, whenever that changes.
            lane_of: the lane of a turn, by its envelope.
        """
        self._room = waiting_room(data, secret)
        self._bring, self._look = bring, look
        self._counts = counts
        self._away_seconds, self._denied_seconds = away_seconds, denied_seconds
        self._thread = ThreadPoolExecutor(1, "waiting")
        self._wake = asyncio.Event()
        self._takings: set[Taking] = set()
        self._on_their_way: dict[int, asyncio.Future[None]] = {}  # turns of this process, by number
        self._covers: dict[int, Cover] = {}  # of those, by number
        self._has_looked = False  # whether it answers, since the start
        self._on_waiting, self._lane_of = on_waiting, lane_of
        self.waiting = 0
        self.trouble: Away | Denied | None = None
        self.is_behind = False  # turns wait that it should have had before

    async def open(self) -> None:
        with suppress(MemoryFault):
            self._count(await self._on_disk(self._room.count))
        self.is_behind = bool(self.waiting)

    async def close(self) -> None:
        """What waits is brought at the next start."""
        await asyncio.gather(*self._takings, return_exceptions=True)
        self._thread.submit(self._room.close)
        self._thread.shutdown()

    async def settled(self, seconds: float) -> bool:
        """Wait until all that was taken by now has been brought; False: memory does not have it yet."""
        if self.trouble is not None or self.is_behind:
            return False
        covers = {number for number, cover in self._covers.items() if not cover.has_failed}
        on_their_way = [one for number, one in self._on_their_way.items() if number not in covers]
        if on_their_way:
            _, late = await asyncio.wait(on_their_way, timeout=seconds)
            return not late and self.trouble is None
        return True

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
        while True:
            self._wake.clear()
            try:
                if not await self._bring_first():
                    if self.trouble is not None or not self._has_looked:
                        await self._look()
                    self._recover()
                    await self._wake.wait()
            except (Away, Denied) as trouble:
                self.fail(trouble)
                await asyncio.sleep(self._denied_seconds if isinstance(trouble, Denied) else self._away_seconds)

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
        self._count(self.waiting + 1)
        if cover is not None:
            self._covers[number] = cover
        brought = self._on_their_way[number] = asyncio.get_running_loop().create_future()
        self._wake.set()
        return brought

    async def _bring_first(self) -> bool:
        """Bring the first turns, one round; whether there were any. Errors are raised once all lanes have ended."""
        lanes: dict[str, list[tuple[int, str, bytes]]] = {}
        for waiting in await self._on_disk(self._room.first, ROUND_TURNS, ROUND_BYTES):
            lanes.setdefault(self._lane_of(waiting[2]), []).append(waiting)
        brought = await asyncio.gather(*map(self._bring_lane, lanes.values()), return_exceptions=True)
        errors = [error for error in brought if error is not None]
        if errors:
            raise next((error for error in errors if not isinstance(error, (Away, Denied))), errors[0])
        return bool(lanes)

    async def _bring_lane(self, lane: list[tuple[int, str, bytes]]) -> None:
        """Bring turns one after the other, up to one that somebody else is still writing."""
        for number, turn, envelope in lane:
            if number in self._covers and not await self._is_written(number):
                return
            if number not in self._covers:
                try:
                    await self._bring(turn, envelope)
                except Unacceptable as refused:
                    self._counts.add("turns_lost", 1)
                    log.error("a turn is lost: it cannot be archived", turn=turn, reason=str(refused))
            self._covers.pop(number, None)
            await self._on_disk(self._room.remove, number)
            self._count(max(self.waiting - 1, 0))
            if brought := self._on_their_way.pop(number, None):
                brought.set_result(None)

    async def _is_written(self, number: int) -> bool:
        """Whether who covers a turn has written it; a cover that came to nothing is taken off."""
        cover = self._covers[number]
        await asyncio.wait([cover.done], timeout=COVER_SECONDS)
        if cover.has_failed:
            del self._covers[number]
            self.is_behind = True
        return cover.done.done() and cover.is_written()

    def _recover(self) -> None:
        """Nothing waits any more, and memory answers."""
        if self.trouble is not None:
            log.info("memory is back, and has all that was said meanwhile")
        self.trouble, self.is_behind, self._has_looked = None, False, True
        self._count(0)

    def _count(self, waiting: int) -> None:
        self.waiting = waiting
        self._on_waiting(waiting)

    async def _on_disk(self, work: Callable[..., T], *given: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *given)


def waiting_room(data: Path, secret: bytes) -> WaitingRoom:
    """The turns that wait in this data folder."""
    return WaitingRoom(data / FILE_NAME, secret, MOST_BYTES)
