"""
Costs over HTTP: what memory added to requests, what their providers counted, and why caches were rebuilt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from pydantic import Field

from palimpsest.domain import Rebuild
from palimpsest.domain.frozen import frozen
from palimpsest.edge.admin.operation import Call, operation
from palimpsest.edge.admin.paging import MAX_PAGE, PAGE, OfPeriod
from palimpsest.edge.admin.parts import Routes
from palimpsest.store.turns.costs import By, costs

Tokens = Annotated[int | None, Field(description="Counted by providers; null: no provider counted them.")]


@dataclass(frozen=True, kw_only=True)
class Asked(OfPeriod):
    by: Annotated[By, Field(description="Group requests by day (UTC) or by conversation.")] = By.DAY
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
    """The operation that adds up costs."""

    @operation("GET /costs", "What requests cost, by day or conversation, and why prefix caches were rebuilt")
    async def costs(self, call: Call[Asked]) -> CostPage:
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
