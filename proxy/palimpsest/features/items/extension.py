"""
What items add to a running memory: their writing and their consolidation in the background.
"""

from __future__ import annotations

from collections.abc import Mapping

from palimpsest.domain import Mode
from palimpsest.features.items.consolidation import Consolidator
from palimpsest.features.items.consolidation_schedule import Schedule
from palimpsest.features.items.writing import ItemKeeper, writer_of
from palimpsest.memory.extension import Extension, Task
from palimpsest.memory.service import MemoryService
from palimpsest.settings.policy import ConsolidationPolicy


class ItemsExtension(Extension):
    """The writer and the schedule, each while the policy wants it."""

    def __init__(self, memory: MemoryService) -> None:
        self._memory = memory

    @property
    def _policy(self) -> ConsolidationPolicy:
        """As it is in force; nothing is written beside the archive while the archive is not."""
        policy = self._memory.policy
        return policy.consolidation if policy.memory.mode is Mode.ON else ConsolidationPolicy()

    def tasks(self) -> Mapping[str, Task]:
        memory, items, tasks = self._memory, self._memory.policy.consolidation, dict[str, Task]()
        if (items.writer, items.recall) != ("off", "off"):
            tasks["items"] = ItemKeeper.of(memory.archive, lambda: writer_of(self._policy, memory)).run
        if (items.writer, items.when) != ("off", "off"):
            consolidator = memory.archive.made(Consolidator.of)
            tasks["consolidation"] = Schedule(
                consolidator, memory.database, lambda: self._policy, memory.counts, memory.clock
            ).run
        return tasks


extension = ItemsExtension
