"""What facts add to a running memory: their extraction in the background."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from palimpsest.domain import Mode
from palimpsest.features.facts.extraction import FactExtraction
from palimpsest.memory.extension import Extension, Task
from palimpsest.memory.service import MemoryService

SET_ASIDE = "since the start, messages whose facts cannot be extracted were set aside; the log says why"


class FactsExtension(Extension):
    """The extraction, while facts are on."""

    def __init__(self, memory: MemoryService) -> None:
        self._memory = memory
        self._extraction = FactExtraction.of(memory.archive)

    def tasks(self) -> Mapping[str, Task]:
        run = partial(self._extraction.run, self._may_extract)
        return {"facts": run} if self._memory.policy.facts.is_on else {}

    def troubles(self) -> Iterable[str]:
        return (SET_ASIDE,) if self._extraction.has_set_aside else ()

    def note_written(self) -> None:
        self._extraction.wake()

    def _may_extract(self) -> bool:
        policy = self._memory.policy
        return policy.facts.is_on and policy.memory.mode is Mode.ON and not self._memory.archivist.is_failing


extension = FactsExtension
