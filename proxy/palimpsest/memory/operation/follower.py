"""
The follower: it notices within a second every change that any process made in the database.

Erasures, keys, switches and policies are such changes. Each kind has a counter (`store/operation/changes.py`) and its
listeners: one is called once at the start, and whenever its counter has changed since it was last called with success.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from palimpsest.domain.errors import MemoryFault
from palimpsest.domain.ports import ArchiveCounts
from palimpsest.store.engine import Engine
from palimpsest.store.operation.changes import counters

LOOK_SECONDS = 0.5  # between looks: a change is known everywhere within a second
ANSWER_SECONDS = 2.0  # a database that needs longer for a few rows is failing
SILENT = f"the database has not answered for {ANSWER_SECONDS:g} s: look what its disk or server waits for"

Listen = Callable[[], Awaitable[None]]

log = structlog.get_logger()


@dataclass(slots=True)
class _Listener:
    name: str
    counter: str
    listen: Listen
    seen: int | None = None  # the counter when it was last called with success
    failure: str = ""  # of its last call


class Follower:
    """Looks at the counters of one database. Run `follow` in the background."""

    def __init__(self, database: Engine, counts: ArchiveCounts, look_seconds: float = LOOK_SECONDS) -> None:
        self._database = database
        self._counts = counts
        self._look_seconds = look_seconds
        self._listeners: list[_Listener] = []
        self.failure = ""  # of the last look

    def __repr__(self) -> str:
        return f"<Follower [{', '.join(f'{one.name} {one.seen}' for one in self._listeners)}]>"

    @property
    def troubles(self) -> tuple[str, ...]:
        """One sentence for each listener that failed when it was last called."""
        return tuple(
            f"{one.name} failed ({one.failure}) and is retried; the log says where"
            for one in self._listeners
            if one.failure
        )

    def listen(self, counter: str, name: str, listen: Listen) -> None:
        """
        Register a listener for changes of one kind, before the first look.

        Args:
            counter: one of `store/operation/changes.py`.
            name: what is done, for the log, `/readyz` and the metric of faults.
            listen: must not take longer than a look; called again at the next look if it raises.
        """
        self._listeners.append(_Listener(name, counter, listen))

    async def follow(self) -> None:
        """Look again and again, every half second unless told otherwise; forever."""
        while True:
            await self.look()
            await asyncio.sleep(self._look_seconds)

    async def look(self) -> None:
        """Look once, and call the listeners of what changed. Never raises."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._database.follow_file()
                found = self._database.ask_at_once(counters)
                if found is None:
                    found = await self._database.ask(counters)
                self.failure = ""
        except (MemoryFault, TimeoutError) as fault:
            reason = str(fault) or SILENT
            if reason != self.failure:
                log.warning("changes by other processes cannot be followed now", reason=reason)
            self.failure = reason
            return
        for one in self._listeners:
            number = found.get(one.counter, 0)
            if number != one.seen:
                await self._call(one, number)

    async def _call(self, one: _Listener, number: int) -> None:
        """Call one listener; after a failure, which is logged once, the next look calls it again."""
        try:
            await one.listen()
        except Exception as failure:  # a guard: one that fails must not keep the others from learning
            if one.failure != type(failure).__name__:
                self._counts.fault(one.name)
                log.error("a change could not be applied; trying again", name=one.name, exc_info=failure)
            one.failure = type(failure).__name__
        else:
            one.seen, one.failure = number, ""
