"""Statistics over HTTP: how large the store is, how far behind its index, and what requests cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Annotated

from pydantic import Field

from palimpsest.domain import AssistRole, Json, Rebuild, frozen
from palimpsest.edge.admin.operation import Call, Nothing, Routes, operation
from palimpsest.edge.admin.paging import MAX_PAGE, PAGE, OfPeriod
from palimpsest.edge.admin.policy_routes import Off
from palimpsest.store.turns.costs import CostGrouping, costs

Tokens = Annotated[int | None, Field(description="Counted by providers; null: no provider counted them.")]


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
    @operation("GET /stats", "Count what is stored", for_operator=True)
    async def stats(self, _call: Call[Nothing]) -> Stats:
        found = await self._journal.stats()
        return Stats(**{field.name: found[field.name] for field in fields(Stats)} | {"gaps": read_gaps(found["gaps"])})


def read_gaps(found: Json | None) -> Gaps | None:
    """The estimate as a response value."""
    return None if found is None else Gaps(**found)


@dataclass(frozen=True, kw_only=True)
class StatsQuery(OfPeriod):
    by: Annotated[CostGrouping, Field(description="Group requests by day (UTC) or by conversation.")] = CostGrouping.DAY
    conversation: Annotated[str, Field(description="Only this conversation, by id.")] = ""
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE, description="Maximum number of rows, newest first.")] = PAGE


@frozen
class Costs:
    """What the requests of a day or a conversation cost; tokens."""

    name: Annotated[str, Field(description="The day, as 2026-11-22, or the id of the conversation.")]
    tenant: Annotated[str, Field(description="Tenant of the conversation.")]
    requests: Annotated[int, Field(description="Requests that were archived with their answers.")]
    counted: Annotated[int, Field(description="Requests whose prompt the provider counted.")]
    cache_told: Annotated[int, Field(description="Requests for which the provider reported its prefix cache.")]
    unknown: Annotated[int, Field(description="Requests for which cache rebuilds could not be determined.")]
    own_tokens: Annotated[int, Field(description="Tokens that clients sent, as counted by the proxy.")]
    added_tokens: Annotated[int, Field(description="Tokens that memory added, as counted by the proxy.")]
    repeated_tokens: Annotated[int, Field(description="Tokens of repeated earlier blocks, which caches hold.")]
    input_tokens: Annotated[Tokens, Field(description="Prompt tokens, including cached ones.")]
    output_tokens: Annotated[Tokens, Field(description="Answer tokens.")]
    cache_read_tokens: Annotated[Tokens, Field(description="Prompt tokens read from the cache.")]
    cache_write_tokens: Annotated[Tokens, Field(description="Prompt tokens written to the cache.")]
    rebuilds: Annotated[Mapping[Rebuild, int], Field(description="Number of requests by reason of a cache rebuild.")]
    rebuilt_tokens: Annotated[Mapping[Rebuild, int], Field(description="Tokens read again, by the same reasons.")]


@frozen
class CostPage:
    """Costs, the newest first."""

    costs: list[Costs]


class CostRoutes(Routes):
    @operation("GET /costs", "What requests cost, by day or conversation, and why prefix caches were rebuilt")
    async def costs(self, call: Call[StatsQuery]) -> CostPage:
        asked, (since, until) = call.asked, call.asked.period
        look = partial(
            costs,
            by=asked.by,
            limit=asked.limit,
            tenant=asked.tenant,
            conversation=asked.conversation,
            since=since,
            until=until,
        )
        return CostPage([Costs(name=row.pop(asked.by.value), **row) for row in await self._database.ask(look)])
