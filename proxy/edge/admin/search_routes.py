"""
Search over HTTP: what recall would find, with the rank and score of each signal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from proxy.domain import Candidate, Query, Reach
from proxy.edge.admin.operation import NOT_BLANK, Call, OfTenant, Operation, Refused
from proxy.ports import Remembering
from proxy.store.journal import Journal

SEARCH_RESULTS = 20  # a screenful
MAX_RESULTS = 200


@dataclass(frozen=True, kw_only=True)
class Search(OfTenant):
    q: Annotated[str, Field(pattern=NOT_BLANK, description="What to search for.")]
    conversation: Annotated[str, Field(description="Id of the only conversation to search.")] = ""
    limit: Annotated[int, Field(ge=1, le=MAX_RESULTS, description="The most results to return.")] = SEARCH_RESULTS


class SearchRoutes:
    """The operation that searches."""

    def __init__(self, journal: Journal, remembering: Remembering, default_tenant: str) -> None:
        """
        Args:
            default_tenant: tenant of an operator's search that names none: `tenants.static`.
        """
        self._journal = journal
        self._remembering = remembering
        self._default_tenant = default_tenant

    def operations(self) -> tuple[Operation[Any], ...]:
        return (Operation("GET", "/search", "Search as recall would", self.search, Search, dict),)

    async def search(self, call: Call[Search]) -> dict[str, Any]:
        asked = call.asked
        tenant = asked.tenant or self._default_tenant
        if not tenant:
            raise Refused(400, "tenant is required: whose memory to search")
        query = Query(tenant, "", asked.q, reach=Reach.TENANT)
        if asked.conversation:
            all_of_it = await self._journal.occurrences(tenant, asked.conversation)
            query = Query(tenant, asked.conversation, asked.q, reach=Reach.CONVERSATION, lost=all_of_it)
        recalled = await self._remembering.recall(query, asked.limit)
        return {
            "admitted": recalled.admitted,
            "reason": recalled.reason,
            "lexical_only": recalled.lexical_only,
            "elapsed_ms": recalled.elapsed_ms,
            "results": [_result(candidate) for candidate in recalled.candidates],
        }


def _result(candidate: Candidate) -> dict[str, Any]:
    memory = candidate.memory
    return {
        "memory": memory.id,
        "conversation": memory.conversation,
        "occurrence": memory.occurrence,
        "position": memory.position,
        "role": memory.role,
        "created_at": memory.created_at,
        "text": memory.text,
        "score": candidate.score,
        "signals": candidate.signals,
    }
