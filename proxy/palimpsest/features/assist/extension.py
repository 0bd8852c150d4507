"""What language models and the refinement of recall add to a running memory."""

from __future__ import annotations

from collections.abc import Iterable

from palimpsest.domain import AssistRole
from palimpsest.domain.ports import Assistant
from palimpsest.features.assist.assistants import ModelAssistants
from palimpsest.features.assist.query_controller import QueryController
from palimpsest.features.assist.selector import Selector
from palimpsest.memory.extension import Extension
from palimpsest.memory.service import MemoryService
from palimpsest.settings.policy import Policy


class AssistExtension(Extension):
    """Models by role, and what plans and selects for recall, where the policy has either."""

    def __init__(self, memory: MemoryService) -> None:
        self._memory = memory
        self._selector: Selector | None = None
        self._models = ModelAssistants(
            memory.database, memory.counts, memory.clock, memory.environment, memory.litellm_thread
        )
        self._choose(memory.policy)

    def of(self, role: AssistRole) -> Assistant | None:
        return self._models.of(role)

    def troubles(self) -> Iterable[str]:
        return filter(None, (self._models.trouble, self._selector.trouble if self._selector else ""))

    async def apply(self, policy: Policy) -> None:
        await self._models.apply(policy)
        self._choose(policy)
        if self._selector is not None:
            self._selector.prepare()

    async def open(self) -> None:
        await self._models.open()
        if self._selector is not None:
            await self._selector.loaded()

    async def close(self) -> None:
        try:
            await self._models.close()
        finally:
            if self._selector is not None:
                await self._selector.close()

    def _choose(self, policy: Policy) -> None:
        """Make the controller and the selector that a policy asks for."""
        self._policy = policy
        if policy.recall.controller != "off" and self.planner is None:
            self.planner = QueryController(lambda: self._policy.recall, self._models, self._memory.clock)
        if policy.recall.selector != "score" and self._selector is None:
            self.selector = self._selector = Selector(lambda: self._policy, self._models, self._memory.counts)


extension = AssistExtension
