"""Scopes: which stored conversations one question may look at, and what of these recall goes by."""

from __future__ import annotations

from collections.abc import Collection

from palimpsest.core.archive.chunking import scope_terms
from palimpsest.domain import Query, Reach, frozen
from palimpsest.store.engine import Ask, ids


@frozen
class Scope:
    """
    A reach with the row ids that it means. Equal scopes look at the same passages.

    `conversation`, `user` and `project` confine the reaches that they belong to; `project` "": whichever.
    """

    tenant: int
    reach: Reach
    conversation: int = 0
    user: str = ""
    project: str = ""

    @property
    def terms(self) -> tuple[str, ...]:
        """Full-text tokens that every passage of the scope holds, and perhaps some of other users."""
        tenant, conversation = scope_terms(self.tenant, self.conversation)
        return (conversation,) if self.reach is Reach.CONVERSATION else (tenant,)

    @property
    def condition(self) -> tuple[str, tuple[object, ...]]:
        """SQL on table `memory`, and its arguments: the passages of the scope and no others."""
        if self.reach is Reach.CONVERSATION:
            return "memory.tenant = ? AND memory.conversation = ?", (self.tenant, self.conversation)
        conversations = "SELECT id FROM conversation WHERE tenant = ?"
        args: list[object] = [self.tenant, self.tenant]
        if self.reach is Reach.USER:
            conversations, args = f"{conversations} AND user_id = ?", [*args, self.user]
        if self.project:
            conversations, args = f"{conversations} AND scope = ?", [*args, self.project]
        return f"memory.tenant = ? AND memory.conversation IN ({conversations})", tuple(args)


FOLDER = """CASE WHEN CAST(?2 AS BIGINT) > 0 THEN CAST(?2 AS BIGINT) ELSE coalesce((SELECT own.folder
    FROM conversation AS own WHERE own.tenant = ?1 AND own.id = ?3 AND own.folder <> 0), nullif(CAST(?2 AS BIGINT), 0))
    END"""
"""SQL: a folder that is named, or else that of a conversation, or the mark of a prompt; NULL where none is known."""


def conversations_in(ask: Ask, tenant: int, folder: int, own: int, user: str = "") -> list[int]:
    """Row ids of the main conversations, of no named project, that a tenant's user had in a folder, or `own`'s."""
    sql = (
        f"SELECT id FROM conversation WHERE tenant = ?1 AND folder <> 0 AND folder = {FOLDER}"
        " AND role = 'main' AND user_id = ?4 AND scope = ''"
    )
    return [id for (id,) in ask(sql, (tenant, folder, own, user))]


def in_other_folders(ask: Ask, tenant: int, folder: int, own: int, conversations: Collection[int]) -> list[int]:
    """Those of some conversations of a tenant, but for `own`, that are in another folder than that one, both named."""
    sql = (
        "SELECT conversation.id FROM numbers(?4) AS asked INNER JOIN conversation ON conversation.id = asked.value"
        f" WHERE conversation.tenant = ?1 AND conversation.folder > 0 AND conversation.folder <> {FOLDER}"
        f" AND {FOLDER} > 0 AND conversation.id <> ?3"
    )
    return [id for (id,) in ask(sql, (tenant, folder, own, ids(conversations)))]


def scope_of(ask: Ask, query: Query) -> tuple[Scope, int] | None:
    """The scope of a question and the row id of its conversation, 0 where that is not stored; None: nothing can be."""
    rows = ask(
        "SELECT tenant.id, coalesce(conversation.id, 0) FROM tenant LEFT JOIN conversation"
        " ON conversation.tenant = tenant.id AND conversation.public = ? WHERE tenant.name = ?",
        (query.conversation, query.tenant),
    )
    if not rows:
        return None
    tenant, conversation = rows[0]
    if query.reach is Reach.CONVERSATION:
        return (Scope(tenant, query.reach, conversation), conversation) if conversation else None
    if query.reach is Reach.USER:
        return (Scope(tenant, query.reach, user=query.user, project=query.scope), conversation) if query.user else None
    return Scope(tenant, query.reach, project=query.scope), conversation
