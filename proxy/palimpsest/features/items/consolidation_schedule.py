"""
The schedule of consolidation: at a time of day, or when nothing is said.

Every process keeps it; whichever comes first does the work, and the others find nothing to do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

import structlog

from palimpsest.domain.errors import MemoryFault
from palimpsest.domain.ports import Clock, Counts
from palimpsest.features.items.consolidation import Consolidator
from palimpsest.settings.policy import ConsolidationPolicy
from palimpsest.store.engine import Engine
from palimpsest.store.knowledge.graph import edge_count
from palimpsest.store.knowledge.items import has_unjudged, in_use, newest_turn_at, turns_after

LOOK_SECONDS = 20.0
TURNS = " turns"
IDLE_SECONDS = 600.0  # without a request: whoever is here pauses longer than between two turns

log = structlog.get_logger()


@dataclass(slots=True)
class Schedule:
    """Consolidates as the policy in force says. Run `run` in the background."""

    consolidator: Consolidator
    database: Engine
    policy: Callable[[], ConsolidationPolicy]
    counts: Counts
    clock: Clock
    _looked_at: str = field(default="", init=False)  # time of day, as the policy writes it
    _turn: int | None = field(default=None, init=False)  # the newest when it was due last; None: not known yet

    async def run(self) -> None:
        """Consolidate when it is due; forever."""
        while True:
            try:
                await self.look()
            except MemoryFault as fault:  # the store says so itself; the next look tries again
                log.warning("items could not be consolidated now; trying again", reason=str(fault))
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> bool:
        """Consolidate if it is due; returns whether it was. Reads nothing while consolidation is off."""
        policy = self.policy()
        before, self._looked_at = self._looked_at, datetime.fromtimestamp(self.clock()).strftime("%H:%M")
        if policy.writer == "off" and policy.when == "off":
            return False
        if policy.when == "idle":
            is_time = await self._is_idle()
        elif policy.when.endswith(TURNS):
            is_time = await self._were_said(int(policy.when.removesuffix(TURNS)))
        else:
            is_time = _has_come(policy.when, before, self._looked_at)
        if is_time:
            await self.consolidator.run()
        self.counts.gauge("items", await self.database.ask(in_use))
        self.counts.gauge("graph_edges", await self.database.ask(edge_count))
        return is_time

    async def _were_said(self, turns: int) -> bool:
        """Whether so many turns were written since the last run, or since the start."""
        count, newest = await self.database.ask(partial(turns_after, id=self._turn or 0))
        if self._turn is not None and count < turns:
            return False
        is_first, self._turn = self._turn is None, newest
        return not is_first and await self.database.ask(has_unjudged)

    async def _is_idle(self) -> bool:
        """Whether nothing was said for a while, and there is something to consolidate."""
        if self.clock() - await self.database.ask(newest_turn_at) < IDLE_SECONDS:
            return False
        return await self.database.ask(has_unjudged)


def _has_come(time: str, before: str, now: str) -> bool:
    """Whether a time of day passed between two looks; False at the first."""
    if not before or time == "off":
        return False
    return before < time <= now if before <= now else time > before or time <= now
