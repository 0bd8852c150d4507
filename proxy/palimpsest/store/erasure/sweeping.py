"""What is due by its age or for room: the questions and the small steps of a sweep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from palimpsest.core.archive.retention import SIDE_REQUESTS, TOOL_RESULTS, TURNS, Cutoffs
from palimpsest.domain import HeadFlag, frozen
from palimpsest.store.engine import Ask, Transaction
from palimpsest.store.turns.tombstones import ERASED_TURN

SWEPT_TURN = '{"swept":true}'  # `turn.explain` of a decision that went for its age
HOLDER, LOCK = "retention", "retention run"  # names of tasks: who sweeps by itself, and who sweeps at this moment

CONVERSATIONS = """
SELECT conversation.id, conversation.public, conversation.created_at, tenant.id, tenant.name
FROM conversation JOIN tenant ON tenant.id = conversation.tenant WHERE conversation.id > ?
ORDER BY conversation.id LIMIT ?
"""
KIND = f"""CASE WHEN turn.role = 'side' THEN '{SIDE_REQUESTS}'
    WHEN occurrence.role IN ('tool', 'function') THEN '{TOOL_RESULTS}' ELSE '{TURNS}' END"""
MESSAGES = f"""
SELECT occurrence.id, {KIND} AS kind, occurrence.created_at FROM occurrence JOIN turn ON turn.id = occurrence.turn
WHERE occurrence.conversation = ? AND occurrence.flags & {HeadFlag.ERASED} = 0 AND occurrence.created_at <= ?
ORDER BY occurrence.id
"""
TOLD = f"explain NOT IN ('{{}}', '{ERASED_TURN}', '{SWEPT_TURN}')"
EXPLAINED = (
    f"SELECT id, created_at FROM turn WHERE conversation = ? AND created_at <= ? AND ending <> 'open' AND {TOLD}"
)
ENDED = f"""
SELECT (SELECT created_at FROM turn WHERE conversation = ?1 ORDER BY id DESC LIMIT 1),
    EXISTS (SELECT 1 FROM turn WHERE conversation = ?1 AND role <> 'side'),
    EXISTS (SELECT 1 FROM occurrence WHERE conversation = ?1 AND flags & {HeadFlag.ERASED} = 0)
"""
OLDEST = f"""
SELECT occurrence.id, {KIND} AS kind, occurrence.conversation, conversation.public, tenant.id, tenant.name
FROM occurrence JOIN turn ON turn.id = occurrence.turn
JOIN conversation ON conversation.id = occurrence.conversation JOIN tenant ON tenant.id = conversation.tenant
WHERE occurrence.id > ? AND occurrence.flags & {HeadFlag.ERASED} = 0 AND turn.ending <> 'open'
ORDER BY occurrence.id LIMIT ?
"""
RETIRED = """
SELECT occurrence.id, 'retired', occurrence.conversation, conversation.public, tenant.id, tenant.name
FROM retired JOIN occurrence ON occurrence.id = retired.occurrence
JOIN conversation ON conversation.id = occurrence.conversation JOIN tenant ON tenant.id = conversation.tenant
WHERE retired.retirement = ? ORDER BY occurrence.id LIMIT ?
"""


@frozen
class StoredConversation:
    """A conversation as a sweep meets it."""

    id: int
    public: str
    created_at: float
    tenant: int
    tenant_name: str


@dataclass(slots=True)
class DueParts:
    """What of one conversation is to go: messages by kind, and the turns whose decisions are."""

    conversation: int
    public: str
    tenant: int
    tenant_name: str
    messages: dict[str, list[int]]
    explained: list[int]
    oldest: dict[str, float]  # by kind, when the oldest came that is due; Unix seconds

    @property
    def occurrences(self) -> list[int]:
        return sorted(occurrence for listed in self.messages.values() for occurrence in listed)


def conversations_after(ask: Ask, last: int, limit: int) -> list[StoredConversation]:
    """The next conversations, in the order of their ids."""
    return [StoredConversation(*row) for row in ask(CONVERSATIONS, (last, limit))]


def due_parts(ask: Ask, stored: StoredConversation, cutoffs: Cutoffs) -> DueParts | None:
    """The messages of a conversation that are due; None: none are."""
    if stored.created_at > cutoffs.newest:
        return None
    messages: dict[str, list[int]] = {}
    oldest: dict[str, float] = {}
    most = max(cutoffs.turns, cutoffs.tool_results, cutoffs.side_requests)
    for occurrence, kind, created_at in ask(MESSAGES, (stored.id, most)) if most else ():
        if created_at <= getattr(cutoffs, kind):
            messages.setdefault(kind, []).append(occurrence)
            oldest[kind] = min(created_at, oldest.get(kind, created_at))
    explained = ask(EXPLAINED, (stored.id, cutoffs.explain)) if cutoffs.explain else []
    if explained:
        oldest["explain"] = min(created_at for _, created_at in explained)
    if not messages and not explained and not last_turn_at(ask, stored.id, cutoffs):
        return None
    numbers = [turn for turn, _ in explained]
    return DueParts(stored.id, stored.public, stored.tenant, stored.tenant_name, messages, numbers, oldest)


def oldest_of_all(ask: Ask, after: int, limit: int) -> list[DueParts]:
    """The messages that came first of all behind occurrence `after`, by conversation."""
    return _by_conversation(ask(OLDEST, (after, limit)))


def of_retirement(ask: Ask, retirement: int, limit: int) -> list[DueParts]:
    """Some messages of a retirement, by conversation."""
    return _by_conversation(ask(RETIRED, (retirement, limit)))


def _by_conversation(rows: Sequence[tuple[int, str, int, str, int, str]]) -> list[DueParts]:
    found: dict[int, DueParts] = {}
    for occurrence, kind, conversation, public, tenant, name in rows:
        due = found.setdefault(conversation, DueParts(conversation, public, tenant, name, {}, [], {}))
        due.messages.setdefault(kind, []).append(occurrence)
    return list(found.values())


def last_turn_at(ask: Ask, conversation: int, cutoffs: Cutoffs) -> float:
    """When the last turn of a conversation came, if all of it may go; 0: it may not."""
    ((newest, others, held),) = ask(ENDED, (conversation,))
    cutoff = cutoffs.turns if others else cutoffs.side_requests
    return float(newest) if newest is not None and not held and newest <= cutoff else 0.0


def sweep_explained(transaction: Transaction, turns: Sequence[int]) -> None:
    """Erase the records of these decisions."""
    transaction.write("UPDATE turn SET explain = ? WHERE id = ?", [(SWEPT_TURN, turn) for turn in turns])


Work = Callable[[Ask], list[DueParts]]


def due_conversations(cutoffs_of: Callable[[str], Cutoffs], stored: Sequence[StoredConversation]) -> Work:
    """A read of which of these conversations have something due, by cutoffs of their tenants."""

    def work(ask: Ask) -> list[DueParts]:
        found = (due_parts(ask, one, cutoffs_of(one.tenant_name)) for one in stored)
        return [due for due in found if due is not None]

    return work
