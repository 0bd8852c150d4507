"""Items and relations page by page, for operators and programs. A tenant of "" means all of them."""

from __future__ import annotations

from collections.abc import Mapping

from palimpsest.store.engine import Ask, ids
from palimpsest.store.knowledge.items import HIDDEN, IN_USE
from palimpsest.store.turns.listings import OF_CONVERSATION, OF_TENANT, Filter, Page, conditions_of, page_of

ITEMS = f"""
SELECT item.id, tenant.name, conversation.public, conversation.user_id, conversation.scope, item.writer, item.text,
    item.question, item.topic, item.said_at, item.uses,
    CASE WHEN {HIDDEN.format(item="item.id")} THEN 'hidden' WHEN {IN_USE} THEN 'current' ELSE item.state END, item.heir
FROM item JOIN conversation ON conversation.id = item.conversation JOIN tenant ON tenant.id = item.tenant
"""
SOURCES = """
SELECT item, occurrence, start, stop FROM item_source WHERE item IN (SELECT value FROM numbers(?))
ORDER BY item, occurrence, start, stop
"""
NAMES = (
    *("tenant", "conversation", "user", "scope", "writer", "text", "question", "topic", "said_at", "uses"),
    *("state", "heir"),
)


def item_page(ask: Ask, which: Filter, before: int, limit: int) -> Page:
    """
    A page of items, the newest first.

    Args:
        which: tenant, conversation, user and scope of it count.
        before: the page begins in front of this id; 0: with the newest.
    """
    rows, following = page_of(ask, ITEMS, "item.id", conditions_of(which, OF_CONVERSATION, OF_TENANT), before, limit)
    sources: dict[int, list[Mapping[str, int]]] = {row[0]: [] for row in rows}
    for item, occurrence, start, stop in ask(SOURCES, (ids(sources),)):
        sources[item].append({"occurrence": occurrence, "start": start, "stop": stop})
    items = [{"item": id, **dict(zip(NAMES, told, strict=True)), "sources": sources[id]} for id, *told in rows]
    return Page(items, following)


def tenant_ids(ask: Ask, tenant: str) -> list[tuple[int, str]]:
    """Rows and names of the tenants that are meant."""
    return [(id, name) for id, name in ask("SELECT id, name FROM tenant WHERE ?1 = '' OR name = ?1", (tenant,))]
