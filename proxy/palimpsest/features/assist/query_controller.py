"""
The controller of recall: plans how a question is looked up, by rules or by a model, in a part of the time left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from palimpsest.core.recall.query_plan import plan_by_rules, plan_of
from palimpsest.domain import Query
from palimpsest.domain.errors import AssistFault
from palimpsest.domain.ports import Assistants, Clock
from palimpsest.features.assist.prompts import query_plan
from palimpsest.settings.policy import RecallPolicy

PLANNING_SHARE = (
    0.4  # of the time until the deadline that a model may take; the look-up and the selection need the rest
)


class QueryController:
    """One per service."""

    def __init__(self, policy: Callable[[], RecallPolicy], assistants: Assistants, clock: Clock) -> None:
        self._policy = policy
        self._assistants = assistants
        self._clock = clock

    async def planned(self, query: Query, deadline: float) -> Query:
        """
        The query with a plan, or as it is where none is made in time.

        Args:
            deadline: by the event loop's clock.
        """
        controller = self._policy().controller
        if controller == "off" or query.named is not None:  # nobody asks
            return query
        if controller == "rules":
            return replace(query, plan=plan_by_rules(query.text))
        model = self._assistants.of("controller")
        if model is None:
            return query
        now = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout_at(now + PLANNING_SHARE * (deadline - now)):
                answer = await model.answer(query_plan.prompt(query.text, self._clock()), query.tenant)
        except (AssistFault, TimeoutError):  # counted where it happened
            return query
        return replace(query, plan=plan_of(answer, query.text))
