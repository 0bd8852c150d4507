"""
Sessions over HTTP: what a client's hook tells that its requests do not.

A request shows that a history is gone, but not whether its user dropped it or the client was started anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal

from pydantic import Field

from palimpsest.core.history.link_keys import id_print
from palimpsest.domain.frozen import frozen
from palimpsest.edge.admin.operation import NOT_BLANK, Call, OfTenant, operation
from palimpsest.edge.admin.parts import Routes
from palimpsest.store.engine import Transaction
from palimpsest.store.turns.cleared import mark_cleared, named_by_client


@dataclass(frozen=True, kw_only=True)
class SessionEvent(OfTenant):
    client: Annotated[
        str, Field(description="Name of its row in config/clients.yaml, such as `claude-code`.", pattern=NOT_BLANK)
    ]
    session: Annotated[str, Field(description="Id of the session, as its requests carry it.", pattern=NOT_BLANK)]
    event: Annotated[
        Literal["cleared", "resumed"],
        Field(
            description="cleared: stop recalling it by itself, in other sessions for an hour; resumed: allow it again."
        ),
    ]


@frozen
class Marked:
    """The conversations of the session."""

    conversations: Annotated[list[str], Field(description="Ids of its conversations; empty: nothing is stored of it.")]


class SessionRoutes(Routes):
    """The operation that takes a session's events."""

    @operation("POST /sessions", "Report that a user cleared or resumed a session of a client")
    async def take(self, call: Call[SessionEvent]) -> Marked:
        return Marked(await self._database.transact(partial(self._mark, call.asked)))

    def _mark(self, event: SessionEvent, transaction: Transaction) -> list[str]:
        def print_of(tenant: str) -> int:
            return id_print(self._parts.key_of(tenant), "client", f"{event.client}:{event.session}")

        found: Mapping[int, str] = dict(named_by_client(transaction.read, print_of, event.tenant))
        mark_cleared(transaction, [*found], event.event == "cleared", self._clock())
        return sorted(found.values())
