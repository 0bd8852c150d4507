"""
Conversations over HTTP: which are stored, what each of them is, and what a client reports of its sessions.

A request shows that a history is gone, but not whether its user dropped it or the client was started anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal

from pydantic import Field

from palimpsest.core.history.link_keys import id_print
from palimpsest.domain import Role, frozen
from palimpsest.edge.admin.operation import NOT_BLANK, Call, OfTenant, Routes, found, operation
from palimpsest.edge.admin.paging import InPeriod, NextCursor, Paged, cursor_to, position_of
from palimpsest.store.engine import Engine, Transaction
from palimpsest.store.turns.cleared import mark_cleared, named_by_client
from palimpsest.store.turns.listings import Filter, Listed, conversations, tenants

UNKNOWN_CONVERSATION = "no such conversation"
LIST = "conversations"
TENANTS = "tenants"


@dataclass(frozen=True, kw_only=True)
class Conversations(InPeriod):
    user: Annotated[str, Field(description="Only those of this user.")] = ""
    scope: Annotated[str, Field(description="Only those of this project (`x-palimpsest-scope`).")] = ""
    role: Annotated[Role | None, Field(description="Only those in which this role speaks.")] = None


@dataclass(frozen=True, kw_only=True)
class OneConversation(OfTenant):
    conversation: Annotated[str, Field(description="Id of the conversation.")]


@frozen
class Conversation:
    """A conversation that is stored."""

    conversation: Annotated[str, Field(description="Id of the conversation (`x-palimpsest-conversation`).")]
    tenant: Annotated[str, Field(description="Its tenant.")]
    user: Annotated[str, Field(description="The user named by the client; empty: none.")]
    scope: Annotated[str, Field(description="The project named by the client; empty: none.")]
    role: Annotated[Role, Field(description="Its role: the user's own, a sub-agent's, or side requests.")]
    parent: Annotated[str, Field(description="Id of the parent conversation; empty: none.")]
    title: Annotated[str, Field(description="First words of the user; empty if they were erased.")]
    created_at: Annotated[float, Field(description="When it was first stored, Unix seconds.")]
    last_at: Annotated[float | None, Field(description="When its newest turn arrived, Unix seconds.")]
    turns: Annotated[int, Field(description="Number of requests.")]
    memories: Annotated[int, Field(description="Number of passages that can be recalled.")]
    events: Annotated[dict[str, int], Field(description="Number of turns by event.")]
    models: Annotated[list[str], Field(description="Models that were asked.")]


@frozen
class ConversationPage:
    """Conversations, the newest first."""

    conversations: list[Conversation]
    next: NextCursor


@frozen
class Tenant:
    """A tenant of whom something is stored."""

    tenant: Annotated[str, Field(description="Its name, as other operations take it.")]
    conversations: Annotated[int, Field(description="Number of conversations.")]


@frozen
class TenantPage:
    """Tenants, the newest first."""

    tenants: list[Tenant]
    next: NextCursor


async def conversation_named(database: Engine, asked: OneConversation) -> Listed:
    """What is stored of a conversation; `Refused` where nothing is."""
    which = Filter(asked.tenant, conversation=asked.conversation)
    page = await database.ask(partial(conversations, which=which, after=0, limit=1), which.tenant)
    return found(next(iter(page.listed), None), UNKNOWN_CONVERSATION)


class ConversationRoutes(Routes):
    @operation("GET /conversations", "List conversations")
    async def list_conversations(self, call: Call[Conversations]) -> ConversationPage:
        asked = call.asked
        since, until = asked.period
        which = Filter(
            asked.tenant, user=asked.user, scope=asked.scope, role=asked.role or "", since=since, until=until
        )
        (after,) = position_of(LIST, asked.cursor)
        page = await self._database.ask(
            partial(conversations, which=which, after=after, limit=asked.limit), which.tenant
        )
        return ConversationPage([Conversation(**one) for one in page.listed], cursor_to(LIST, page.next))

    @operation("GET /conversations/{conversation}", "Show a conversation", missing=UNKNOWN_CONVERSATION)
    async def one(self, call: Call[OneConversation]) -> Conversation:
        return Conversation(**await conversation_named(self._database, call.asked))

    @operation("GET /tenants", "List tenants")
    async def list_tenants(self, call: Call[Paged]) -> TenantPage:
        asked = call.asked
        (after,) = position_of(TENANTS, asked.cursor)
        page = await self._database.ask(partial(tenants, tenant=asked.tenant, after=after, limit=asked.limit))
        return TenantPage([Tenant(**one) for one in page.listed], cursor_to(TENANTS, page.next))


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
class MarkedConversations:
    """The conversations of the session."""

    conversations: Annotated[list[str], Field(description="Ids of its conversations; empty: nothing is stored of it.")]


class SessionRoutes(Routes):
    @operation("POST /sessions", "Report that a user cleared or resumed a session of a client")
    async def take(self, call: Call[SessionEvent]) -> MarkedConversations:
        return MarkedConversations(await self._database.transact(partial(self._mark, call.asked)))

    def _mark(self, event: SessionEvent, transaction: Transaction) -> list[str]:
        def print_of(tenant: str) -> int:
            return id_print(self._parts.key_of(tenant), "client", f"{event.client}:{event.session}")

        named: Mapping[int, str] = dict(named_by_client(transaction.read, print_of, event.tenant))
        mark_cleared(transaction, [*named], event.event == "cleared", self._clock())
        return sorted(named.values())
