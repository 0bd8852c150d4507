"""What items add to a running memory: their writing and their consolidation in the background."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from palimpsest.domain import Mode
from palimpsest.features.items.consolidation import Consolidator
from palimpsest.features.items.consolidation_schedule import Schedule
from palimpsest.features.items.writing import ItemKeeper, ItemWriter, writer_of
from palimpsest.memory.extension import Extension, Task
from palimpsest.memory.service import MemoryService
from palimpsest.settings.policy import ConsolidationPolicy

if TYPE_CHECKING:
    from palimpsest.features.items.llmlingua import LLMLingua2


class ItemsExtension(Extension):
    """The writer and the schedule, each while the policy wants it."""

    def __init__(self, memory: MemoryService) -> None:
        self._memory = memory
        self._llmlingua: LLMLingua2 | None = None

    def troubles(self) -> Iterable[str]:
        return filter(None, (self._llmlingua.trouble if self._llmlingua else "",))

    def _writer(self) -> ItemWriter | None:
        """The writer of items by the policy in force; None: none."""
        chosen = self._policy
        if (chosen.writer, chosen.compressor) != ("lightmem3", "llmlingua-2"):
            return writer_of(chosen, self._memory)
        if self._llmlingua is None:
            from palimpsest.features.items.llmlingua import LLMLingua2

            self._llmlingua = LLMLingua2(self._memory.policy.model)
        return writer_of(chosen, self._memory, self._llmlingua.compressor(chosen.keep))

    @property
    def _policy(self) -> ConsolidationPolicy:
        """The policy in force, with writing off while the archive is not written."""
        policy = self._memory.policy
        return policy.consolidation if policy.memory.mode is Mode.ON else ConsolidationPolicy()

    def tasks(self) -> Mapping[str, Task]:
        """The tasks that write and consolidate items, where the policy has them on."""
        memory, items, tasks = self._memory, self._memory.policy.consolidation, dict[str, Task]()
        if (items.writer, items.recall) != ("off", "off"):
            tasks["items"] = ItemKeeper.of(memory.archive, self._writer).run
        if (items.writer, items.when) != ("off", "off"):
            consolidator = memory.archive.service(Consolidator.of)
            tasks["consolidation"] = Schedule(
                consolidator, memory.database, lambda: self._policy, memory.counts, memory.clock
            ).run
        return tasks


extension = ItemsExtension
