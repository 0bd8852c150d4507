"""
The check of lost facts after a compaction: which come back, and why the others do not.

A fact is recovered when its text stands in the restored block (`facts.holds`). Otherwise, as in LANTERN's failure
analysis (arXiv 2606.05182, section 6): it was never archived, was no candidate, or was ranked below the cut.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from palimpsest.domain import Query
from palimpsest.evaluation.compaction import FRACTIONS, Compacted, Strategy, compacted, query_after, until
from palimpsest.evaluation.datasets import Conversation
from palimpsest.evaluation.facts import Fact, holds, normalised
from palimpsest.evaluation.model import Model
from palimpsest.evaluation.palimpsest import StoreReader
from palimpsest.evaluation.systems import Pack, Reader, System
from palimpsest.settings.policy import Policy

ALL_CHARS = 100_000_000  # no limit: whatever is a candidate stands in such a block
NEVER_ARCHIVED, NO_CANDIDATE, BELOW_CUT = "never archived", "not a candidate", "ranked below the cut"
REASONS = (NEVER_ARCHIVED, NO_CANDIDATE, BELOW_CUT)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One fact, one compaction, one system, one budget. `missed`: "" where it was recovered, else why not."""

    data: str
    conversation: str
    fraction: float
    strategy: str
    system: str
    budget: int
    kind: str
    needed: bool  # said again later in the conversation
    missed: str


class Outcomes:
    """Outcomes to be counted. Shares are 0 where there is nothing to count."""

    def __init__(self, every: Sequence[Outcome]) -> None:
        self.all = every

    def where(self, **wanted: Any) -> Outcomes:
        """Outcomes whose fields have these values."""
        return Outcomes([o for o in self.all if all(getattr(o, field) == value for field, value in wanted.items())])

    def values(self, field: str) -> list[Any]:
        """All values of a field, rising."""
        return sorted({getattr(o, field) for o in self.all})

    def share(self, missed: str = "") -> float:
        """The share of facts that were missed for this reason; "": that came back."""
        return sum(o.missed == missed for o in self.all) / max(len(self.all), 1)

    def of_conversations(self) -> dict[tuple[str, str], float]:
        """By conversation: the share that came back, the mean over its compactions."""
        cells: dict[tuple[str, str], dict[tuple[float, str], list[bool]]] = defaultdict(lambda: defaultdict(list))
        for o in self.all:
            cells[o.data, o.conversation][o.fraction, o.strategy].append(not o.missed)
        return {
            conversation: float(np.mean([np.mean(cell) for cell in found.values()]))
            for conversation, found in cells.items()
        }

    def by_conversation(self) -> float:
        """The mean over conversations."""
        return float(np.mean([*self.of_conversations().values()])) if self.all else 0.0


async def measure(
    data: str,
    conversation: Conversation,
    facts: Sequence[Fact],
    measured: Sequence[System],
    budgets: Sequence[int],
    model: Model | None,
) -> AsyncIterator[Outcome]:
    """
    Compact a conversation in every way, and ask every system what it restores.

    Args:
        data: where the conversation is from.
        facts: of the whole conversation, those that are specific.
        budgets: characters of a block.
        model: to summarise with; None: no abstractive compaction.
    """
    strategies = [strategy for strategy in Strategy if model or strategy is not Strategy.ABSTRACTIVE]
    for fraction in FRACTIONS:
        so_far = until(conversation, fraction)
        later = normalised("\n".join(said.text for said in conversation.messages[len(so_far.messages) :]))
        needed = {fact.key for fact in facts if holds(later, fact.key)}
        asked: list[tuple[Compacted, Query, list[Fact]]] = []
        for strategy in strategies:
            after = await compacted(so_far, strategy, model)
            visible = normalised(after.visible)
            lost = [f for f in facts if f.messages[0] < after.dropped and not holds(visible, f.key)]
            if lost and (query := query_after(so_far, after, Policy())):
                asked.append((after, query, lost))
        for system in measured if asked else ():
            async with system.opened(so_far) as reader:
                archive = normalised("\n".join(await reader.stored()))
                archived = cache(partial(holds, archive))
                for after, query, lost in asked:
                    reached = normalised((await restored(reader, query, after, ALL_CHARS)).text)
                    for budget in budgets:
                        told = normalised((await restored(reader, query, after, budget)).text)
                        for fact in lost:
                            yield Outcome(
                                data,
                                conversation.id,
                                fraction,
                                after.strategy.value,
                                system.name,
                                budget,
                                fact.kind,
                                fact.key in needed,
                                _missed(fact.key, told, reached, archived),
                            )


async def restored(reader: Reader, query: Query, after: Compacted, budget_chars: int) -> Pack:
    """What a memory restores, each asked with the text that the proxy makes of the request."""
    if isinstance(reader, StoreReader):
        return await reader.restore(query, budget_chars, after.dropped)
    return await reader.pack(query.text, budget_chars, after.dropped)


def _missed(key: str, told: str, reached: str, archived: Callable[[str], bool]) -> str:
    """Why a fact did not come back; "": it did."""
    if holds(told, key):
        return ""
    if not archived(key):
        return NEVER_ARCHIVED
    return BELOW_CUT if holds(reached, key) else NO_CANDIDATE
