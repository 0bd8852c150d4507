"""
Writers of items with a model: expected predictive compression, LightMem-3 and LightMem-SLM.

Nothing that a model says is kept unless the messages say it (`core/writing/grounding.py`), and each item cites them.
Where it fails, or nothing of what it says holds, the writer of the same name without a model writes that part. What
takes more than a millisecond is done on a thread: requests go first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import structlog

from palimpsest.core.recall.ranking import Floats
from palimpsest.core.writing import claims as claiming
from palimpsest.core.writing.claims import Claim
from palimpsest.core.writing.entries import Count
from palimpsest.core.writing.information import TermStatistics
from palimpsest.core.writing.lightmem3 import PAPER, Buffers, Compress, Topic, batches, turns
from palimpsest.core.writing.writers import WRITERS
from palimpsest.domain import Item, Json, SourceMessage, frozen
from palimpsest.domain.errors import AssistFault
from palimpsest.domain.ports import Assistant, Prompt
from palimpsest.features.items import prompts

log = structlog.get_logger()


@frozen
class _Work:
    """The input of one call of a writer."""

    assistant: Assistant
    tenant: str
    segment: Sequence[SourceMessage]
    budget_tokens: int
    count: Count
    statistics: TermStatistics
    buffers: Buffers
    compress: Compress | None
    vectors: Floats | None

    async def claimed(self, prompt: Prompt, read: Callable[[Json], list[Claim]]) -> list[Item] | None:
        """The valid claims of an answer; None: no answer, or no valid claim."""
        try:
            claims = read(await self.assistant.answer(prompt, self.tenant))
        except AssistFault as fault:
            log.debug("a model does not write; rules do", reason=str(fault), outcome=fault.outcome)
            return None
        items = await asyncio.to_thread(claiming.verified, claims, self.segment, self.statistics)
        return None if claims and not items else items

    def batches(self) -> list[tuple[Topic, ...]]:
        """The contents of the short-term buffer, one batch for each call."""
        found = batches(self.segment, self.count, self.statistics, self.buffers, self.compress, self.vectors)
        return [*found]

    async def write_by_rule(self, name: str, messages: Sequence[int]) -> tuple[Item, ...]:
        """Write the items of some messages with the rule-based writer of this name, on their share of the budget."""
        part = [self.segment[at] for at in messages]
        share = sum(len(said.text) for said in part) / max(sum(len(said.text) for said in self.segment), 1)
        budget = round(self.budget_tokens * share)
        return await asyncio.to_thread(WRITERS[name], part, budget, self.count, self.statistics)


@dataclass(slots=True)
class ModelWriters:
    """The writers that ask one model."""

    assistant: Assistant
    count: Count  # tokens of a text
    compress: Compress | None = None  # before LightMem-3 cuts topics; None: by rule
    buffers: Buffers = PAPER  # of LightMem-3

    async def write(
        self,
        name: str,
        segment: Sequence[SourceMessage],
        budget_tokens: int,
        statistics: TermStatistics,
        tenant: str,
        vectors: Floats | None = None,
    ) -> tuple[Item, ...]:
        """The items of a segment, in the order of the conversation, by a writer of `core.writing.writers`."""
        given = segment, budget_tokens, self.count, statistics, self.buffers, self.compress, vectors
        work = _Work(self.assistant, tenant, *given)
        return await _PAPERS[name](work)


async def _epc(work: _Work) -> tuple[Item, ...]:
    """Write items by two calls a segment: five questions, and their evidence."""
    asked = prompts.questions_prompt(work.segment)
    try:
        questions: list[str] = (await work.assistant.answer(asked, work.tenant))["questions"]
    except AssistFault as fault:
        log.debug("a model does not write; rules do", reason=str(fault), outcome=fault.outcome)
        questions = []
    items = None
    if questions:
        prompt = prompts.evidence_prompt(questions, work.segment)
        items = await work.claimed(prompt, partial(prompts.read_evidence, questions=questions, segment=work.segment))
    if not items:
        return await work.write_by_rule("epc", range(len(work.segment)))
    return claiming.select_by_utility(items, work.budget_tokens, work.count)


async def _lightmem3(work: _Work) -> tuple[Item, ...]:
    """Write items by one call each time that the short-term buffer is full."""
    items: list[Item] = []
    for topics in await asyncio.to_thread(work.batches):
        prompt = prompts.topics_prompt(topics, work.segment)
        found = await work.claimed(prompt, partial(prompts.read_topics, topics=topics))
        if found is None:
            found = [*await work.write_by_rule("lightmem3", [at for topic in topics for at in topic.messages])]
        items += found
    return claiming.select_by_information(items, work.budget_tokens, work.count, work.statistics)


async def _lightmem_slm(work: _Work) -> tuple[Item, ...]:
    """Write items by one call a turn, as many at once as the model takes."""
    every = turns(work.segment)
    read = prompts.read_items
    asked = (work.claimed(prompts.items_prompt(turn, work.segment), partial(read, turn=turn)) for turn in every)
    found = await asyncio.gather(*asked)
    items: list[Item] = []
    for turn, held in zip(every, found, strict=True):
        items += await work.write_by_rule("lightmem-slm", turn) if held is None else held
    return claiming.select_by_information(items, work.budget_tokens, work.count, work.statistics)


_PAPERS: Mapping[str, Callable[[_Work], Awaitable[tuple[Item, ...]]]] = {
    "epc": _epc,
    "lightmem3": _lightmem3,
    "lightmem-slm": _lightmem_slm,
}
