"""
Conversations over HTTP: which are stored, and what each of them is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated

from pydantic import Field

from palimpsest.domain import Role
from palimpsest.domain.frozen import frozen
from palimpsest.edge.admin.operation import Call, OfTenant, Refused, operation
from palimpsest.edge.admin.paging import InPeriod, NextCursor, Paged, cursor_to, position_of
from palimpsest.edge.admin.parts import Routes
from palimpsest.store.turns.listings import Filter, conversations, tenants

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


class ConversationRoutes(Routes):
    """The operations that list conversations, and whose they are."""

    @operation("GET /conversations", "List conversations")
    async def list_conversations(self, call: Call[Conversations]) -> ConversationPage:
        asked = call.asked
        since, until = asked.period
        which = Filter(
            asked.tenant, user=asked.user, scope=asked.scope, role=asked.role or "", since=since, until=until
        )
        (after,) = position_of(LIST, asked.cursor)
        page = await self._database.ask(partial(conversations, which=which, after=after, limit=asked.limit))
        return ConversationPage([Conversation(**one) for one in page.listed], cursor_to(LIST, page.next))

    @operation("GET /conversations/{conversation}", "Show a conversation", missing=UNKNOWN_CONVERSATION)
    async def one(self, call: Call[OneConversation]) -> Conversation:
        which = Filter(call.asked.tenant, conversation=call.asked.conversation)
        page = await self._database.ask(partial(conversations, which=which, after=0, limit=1))
        for one in page.listed:
            return Conversation(**one)
        raise Refused(404, UNKNOWN_CONVERSATION)

    @operation("GET /tenants", "List tenants")
    async def list_tenants(self, call: Call[Paged]) -> TenantPage:
        asked = call.asked
        (after,) = position_of(TENANTS, asked.cursor)
        page = await self._database.ask(partial(tenants, tenant=asked.tenant, after=after, limit=asked.limit))
        return TenantPage([Tenant(**one) for one in page.listed], cursor_to(TENANTS, page.next))
