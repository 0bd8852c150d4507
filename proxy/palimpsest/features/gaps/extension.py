"""What the measuring of gaps adds to a running memory: its probes in the background."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from palimpsest.domain import Mode
from palimpsest.features.gaps.probing import Prober
from palimpsest.memory.extension import Extension, Task
from palimpsest.memory.service import MemoryService


class GapsExtension(Extension):
    """The probes, while the policy allows some."""

    def __init__(self, memory: MemoryService) -> None:
        self._memory = memory

    def tasks(self) -> Mapping[str, Task]:
        """The task that probes, where the policy allows any probes."""
        memory = self._memory
        if not memory.policy.gaps.probes_per_hour:
            return {}
        prober = Prober.of(memory.archive, memory.model, assist=memory.assist)
        return {"probes": partial(prober.run, memory.traffic, memory.counts, self._may_probe)}

    def _may_probe(self) -> bool:
        """Whether memory is on and works, and no model is being loaded that would answer better."""
        memory = self._memory
        is_off = memory.policy.memory.mode is Mode.OFF
        return not (is_off or memory.archivist.is_failing or memory.model.is_loading)


extension = GapsExtension
