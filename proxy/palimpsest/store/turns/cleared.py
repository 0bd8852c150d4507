"""
Cleared conversations: what their users dropped on purpose, how far, and when.

What stands in one up to the mark is stored and found by whoever looks for it, but does not come back into it by itself,
nor for a while into another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from palimpsest.domain import LinkKind
from palimpsest.store.engine import Ask, Transaction

NAMED = """
SELECT DISTINCT conversation.id, conversation.public FROM link JOIN conversation ON conversation.id = link.conversation
WHERE link.tenant = ? AND link.fingerprint = ? AND link.kind = ?
"""
SERVING = "SELECT id, public FROM conversation WHERE tenant = ? AND parent = ?"
MARK = """
UPDATE conversation SET
    cleared = coalesce((SELECT max(id) FROM occurrence WHERE conversation = conversation.id), 0), cleared_at = ?
WHERE id = ?
"""
UNMARK = "UPDATE conversation SET cleared = 0, cleared_at = ? WHERE id = ?"


def named_by_client(ask: Ask, print_of: Callable[[str], int], tenant: str = "") -> Sequence[tuple[int, str]]:
    """
    The conversations that a client has named by an id, and those that serve them: row id, public id.

    Args:
        print_of: of the id, in the tenant of that name (`core.history.link_keys.id_print`).
        tenant: "": whichever.
    """
    found: dict[int, str] = {}
    for number, name in ask("SELECT id, name FROM tenant WHERE ?1 IN ('', name)", (tenant,)):
        own = ask(NAMED, (number, print_of(name), LinkKind.CLIENT_ID.value))
        found |= own
        for _, public in own:
            found |= ask(SERVING, (number, public))
    return [*found.items()]


def mark_cleared(transaction: Transaction, conversations: Sequence[int], cleared: bool, now: float) -> None:
    """Mark all that stands in these conversations now as dropped on purpose, or none of it. `now`: Unix seconds."""
    transaction.write(MARK if cleared else UNMARK, [(now, conversation) for conversation in conversations])


def cleared_in(ask: Ask, tenant: int, own: int, since: float) -> Mapping[int, int]:
    """
    By conversation, the last occurrence that its user cleared on purpose; row ids.

    Args:
        own: conversation that is included however long ago it was cleared.
        since: Unix seconds; other conversations are included only if they were cleared later.
    """
    sql = "SELECT id, cleared FROM conversation WHERE tenant = ? AND cleared > 0 AND (id = ? OR cleared_at > ?)"
    return dict(ask(sql, (tenant, own, since)))
