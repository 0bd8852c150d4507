"""
Assisted recall: the controller of the policy plans a look-up, recall does it, and the selector orders what was found.

Whatever looks something up does it through here: requests, tools, searches, trails and probes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from palimpsest.domain import Query, Recalled
from palimpsest.domain.ports import Retriever
from palimpsest.memory.extension import CandidateSelector, QueryPlanner


class Assistance(Protocol):
    """What assists recall now; None: nothing does."""

    @property
    def planner(self) -> QueryPlanner | None: ...

    @property
    def selector(self) -> CandidateSelector | None: ...


class AssistedRecall:
    """Implements `palimpsest.domain.ports.Retriever`."""

    def __init__(self, recall: Retriever, assistance: Assistance, seconds: Callable[[], float]) -> None:
        self._recall = recall
        self._assistance = assistance
        self._seconds = seconds  # that a look-up may take until controller and selector are no longer waited for

    async def recall(self, query: Query, limit: int) -> Recalled:
        """Recall as for a request that has all of its deadline left."""
        return await self.recall_by(query, limit, asyncio.get_running_loop().time() + self._seconds())

    async def recall_by(self, query: Query, limit: int, deadline: float) -> Recalled:
        """Recall by a plan made in time, and let the selector order it. `deadline`: by the event loop's clock."""
        planner, selector = self._assistance.planner, self._assistance.selector
        if planner is not None:
            query = await planner.planned(query, deadline)
        recalled = await self._recall.recall(query, limit)
        if query.plan is not None:
            recalled = replace(recalled, plan=query.plan)
        return recalled if selector is None else await selector.selected(query, recalled, deadline)
