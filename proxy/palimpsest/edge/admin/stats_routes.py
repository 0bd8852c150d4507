"""
Statistics over HTTP: how large the store is, and how far behind its index.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Any

from pydantic import Field

from palimpsest.domain import AssistRole
from palimpsest.domain.frozen import frozen
from palimpsest.edge.admin.gap_routes import Gaps, gaps_of
from palimpsest.edge.admin.operation import Call, Nothing, Operation
from palimpsest.edge.admin.switch_routes import Off
from palimpsest.store.journal import Journal


@frozen
class ModelUse:
    """What the language model of one role used on one day."""

    day: Annotated[str, Field(description="In UTC, as 2026-11-22.")]
    role: Annotated[AssistRole, Field(description="As `models` names it.")]
    calls: Annotated[int, Field(description="Those that failed among them.")]
    failures: Annotated[int, Field(description="Calls that the provider did not answer.")]
    prompt_tokens: Annotated[int, Field(description="Of prompts.")]
    completion_tokens: Annotated[int, Field(description="Of answers.")]
    dollars: Annotated[float, Field(description="What they cost, where the price is known.")]


@frozen
class Stats:
    """Counts of all tenants."""

    tenants: Annotated[int, Field(description="Of whom something is stored.")]
    conversations: Annotated[int, Field(description="Those of sub-agents and side requests among them.")]
    turns: Annotated[int, Field(description="Requests.")]
    messages: Annotated[int, Field(description="In all their places.")]
    contents: Annotated[int, Field(description="Different messages.")]
    memories: Annotated[int, Field(description="Passages that can be found.")]
    pending: Annotated[int, Field(description="Of these, not found by meaning yet.")]
    set_aside: Annotated[int, Field(description="Requests and answers that could not be stored.")]
    facts: Annotated[int | None, Field(description="Statements of facts; null: none were ever kept.")]
    bytes: Annotated[int, Field(description="Size of the database.")]
    switched_off: Annotated[list[Off], Field(description="For whom memory is switched off.")]
    models: Annotated[
        list[ModelUse], Field(description="Language models that help memory, on the newest day that one was asked.")
    ]
    oldest_pending_at: Annotated[
        float, Field(description="When the oldest message that waits was said, Unix seconds; 0: none.")
    ]
    gaps: Annotated[Gaps | None, Field(description="What gets lost in writing and in recall; null: it was not asked.")]
    searches: Annotated[int, Field(description="Of the newest 2,000 turns, those that searched.")]
    search_ms_p50: Annotated[float, Field(description="How long half of them took at most, milliseconds.")]
    search_ms_p95: Annotated[float, Field(description="How long 95 % of them took at most.")]


class StatsRoutes:
    """The operation that counts."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def operations(self) -> tuple[Operation[Any], ...]:
        return (Operation("GET", "/stats", "Count what is stored", self.stats, Nothing, Stats, for_operator=True),)

    async def stats(self, _call: Call[Nothing]) -> Stats:
        found = await self._journal.stats()
        return Stats(**{field.name: found[field.name] for field in fields(Stats)} | {"gaps": gaps_of(found["gaps"])})
