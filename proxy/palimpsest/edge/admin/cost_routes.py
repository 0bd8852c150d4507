"""
Costs over HTTP: what memory added to requests, what their providers counted, and why caches were rebuilt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from pydantic import Field

from palimpsest.domain import Rebuild
from palimpsest.domain.frozen import frozen
from palimpsest.edge.admin.operation import Call, Operation
from palimpsest.edge.admin.paging import MAX_PAGE, PAGE, OfPeriod
from palimpsest.store.costs import By, costs
from palimpsest.store.engine import Engine

Tokens = Annotated[int | None, Field(description="As providers counted; null: none of them did.")]


@dataclass(frozen=True, kw_only=True)
class Asked(OfPeriod):
    by: Annotated[By, Field(description="What is added up: the requests of a day (UTC), or of a conversation.")] = (
        By.DAY
    )
    conversation: Annotated[str, Field(description="Only this one, by its id.")] = ""
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE, description="How many of the newest to return at most.")] = PAGE


@frozen
class Costs:
    """What the requests of a day or a conversation cost; tokens."""

    name: Annotated[str, Field(description="The day, as 2026-11-22, or the id of the conversation.")]
    tenant: Annotated[str, Field(description="Of a conversation: whose it is.")]
    requests: Annotated[int, Field(description="That were archived with their answers.")]
    counted: Annotated[int, Field(description="Of these, those whose provider counted the prompt.")]
    cache_told: Annotated[int, Field(description="Of these, those where it said what came from its prefix cache.")]
    unknown: Annotated[int, Field(description="Requests of which it cannot be told what was read anew, or why.")]
    own_tokens: Annotated[int, Field(description="What clients sent themselves, by our count.")]
    added_tokens: Annotated[int, Field(description="What memory added, by our count.")]
    repeated_tokens: Annotated[int, Field(description="Of these, blocks of before, as caches hold them.")]
    input_tokens: Annotated[Tokens, Field(description="Prompts, cached parts included.")]
    output_tokens: Annotated[Tokens, Field(description="Answers.")]
    cache_read_tokens: Annotated[Tokens, Field(description="Of the prompts, from the cache.")]
    cache_write_tokens: Annotated[Tokens, Field(description="Of the prompts, written to the cache.")]
    rebuilds: Annotated[Mapping[Rebuild, int], Field(description="Requests by why something was read anew.")]
    rebuilt_tokens: Annotated[Mapping[Rebuild, int], Field(description="What was read anew for it.")]


@frozen
class CostPage:
    """Costs, the newest first."""

    costs: list[Costs]


class CostRoutes:
    """The operation that adds up costs."""

    def __init__(self, database: Engine) -> None:
        self._database = database

    def operations(self) -> tuple[Operation[Any], ...]:
        summary = "What requests cost, by day or conversation, and why prefix caches were rebuilt"
        return (Operation("GET", "/costs", summary, self.costs, Asked, CostPage),)

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
