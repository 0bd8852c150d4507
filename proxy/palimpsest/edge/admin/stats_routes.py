"""
Statistics over HTTP: how large the store is, and how far behind its index.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated

from pydantic import Field

from palimpsest.domain import AssistRole, Json
from palimpsest.domain.frozen import frozen
from palimpsest.edge.admin.operation import Call, Nothing, operation
from palimpsest.edge.admin.parts import Routes
from palimpsest.edge.admin.switch_routes import Off


@frozen
class ModelUse:
    """What the language model of one role used on one day."""

    day: Annotated[str, Field(description="In UTC, as 2026-11-22.")]
    role: Annotated[AssistRole, Field(description="As `models` names it.")]
    calls: Annotated[int, Field(description="Number of calls, including failed ones.")]
    failures: Annotated[int, Field(description="Calls that the provider did not answer.")]
    prompt_tokens: Annotated[int, Field(description="Prompt tokens.")]
    completion_tokens: Annotated[int, Field(description="Answer tokens.")]
    dollars: Annotated[float, Field(description="Cost, if the price is known.")]


@frozen
class Gaps:
    """Estimated losses, from the newest questions that memory asked itself; all tenants together."""

    probes: Annotated[int, Field(description="Number of questions in the estimate, at most 200.")]
    since: Annotated[float, Field(description="When the oldest of them was asked, Unix seconds.")]
    until: Annotated[float, Field(description="When the newest of them was asked.")]
    write_gap: Annotated[float, Field(description="Share of answers that are not stored.")]
    write_error: Annotated[float, Field(description="Half the width of the 95 % confidence interval.")]
    retrieval_gap: Annotated[float, Field(description="Share of answers that are stored but not recalled.")]
    retrieval_error: Annotated[float, Field(description="Half the width of its 95 % confidence interval.")]
    verdict: Annotated[str, Field(description="Where more is lost: write, retrieval, or mixed.")]
    stages: Annotated[
        dict[str, int],
        Field(
            description="Questions by the stage at which the answer was lost: stored, redacted, indexed, embedded "
            "(write); candidate, ranked, likely, packed (retrieval); found: it was not."
        ),
    ]


@frozen
class Stats:
    """Counts of all tenants."""

    tenants: Annotated[int, Field(description="Number of tenants with stored data.")]
    conversations: Annotated[
        int, Field(description="Number of conversations, including those of sub-agents and side requests.")
    ]
    turns: Annotated[int, Field(description="Number of requests.")]
    messages: Annotated[int, Field(description="Number of message occurrences.")]
    contents: Annotated[int, Field(description="Number of distinct messages.")]
    memories: Annotated[int, Field(description="Number of passages that can be recalled.")]
    pending: Annotated[int, Field(description="Passages that have no vector yet.")]
    set_aside: Annotated[int, Field(description="Number of requests and answers that could not be stored.")]
    facts: Annotated[int | None, Field(description="Number of statements of facts; null: none were ever stored.")]
    bytes: Annotated[int, Field(description="Size of the database.")]
    switched_off: Annotated[list[Off], Field(description="Tenants for whom memory is switched off.")]
    models: Annotated[
        list[ModelUse], Field(description="Language models that help memory, on the newest day that one was asked.")
    ]
    oldest_pending_at: Annotated[
        float, Field(description="When the oldest waiting message was sent, Unix seconds; 0: none waits.")
    ]
    gaps: Annotated[Gaps | None, Field(description="Estimated losses in writing and in recall; null: not measured.")]
    searches: Annotated[int, Field(description="Number of searches in the newest 2,000 turns.")]
    search_ms_p50: Annotated[float, Field(description="Median search time, milliseconds.")]
    search_ms_p95: Annotated[float, Field(description="95th percentile of the search time, milliseconds.")]


class StatsRoutes(Routes):
    """The operation that counts."""

    @operation("GET /stats", "Count what is stored", for_operator=True)
    async def stats(self, _call: Call[Nothing]) -> Stats:
        found = await self._journal.stats()
        return Stats(**{field.name: found[field.name] for field in fields(Stats)} | {"gaps": gaps_of(found["gaps"])})


def gaps_of(found: Json | None) -> Gaps | None:
    """The estimate as a response value."""
    return None if found is None else Gaps(**found)
