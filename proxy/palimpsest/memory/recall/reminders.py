"""Reminders as this process knows them: which passages wait for the next request of their conversation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from palimpsest.domain.ports import Clock
from palimpsest.store.engine import Engine
from palimpsest.store.turns.reminders import waiting_reminders

NONE: Mapping[str, tuple[int, ...]] = {}


class KnownReminders:
    """What waits; `learn` listens to changes."""

    def __init__(self, database: Engine, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._of: Mapping[str, list[tuple[str, int, float]]] = {}

    async def learn(self) -> None:
        """Read all reminders. Raises `MemoryFault`: the database does not answer; what was known stays so."""
        of: dict[str, list[tuple[str, int, float]]] = defaultdict(list)
        for one in await self._database.ask(lambda ask: waiting_reminders(ask, self._clock())):
            of[one["tenant"]].append((one["conversation"], one["memory"], one["until"]))
        self._of = of

    def of(self, tenant: str) -> Mapping[str, tuple[int, ...]]:
        """The passages that wait now, by the public id of their conversation."""
        if tenant not in self._of:
            return NONE
        now, found = self._clock(), defaultdict[str, tuple[int, ...]](tuple)
        for conversation, memory, until in self._of[tenant]:
            if until > now:
                found[conversation] += (memory,)
        return found
