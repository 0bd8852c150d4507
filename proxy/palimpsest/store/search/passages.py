"""Passages as rows: what a search reads of them, in the order of their ids, and in how many a term stands."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from operator import itemgetter

from palimpsest.domain import HeadFlag, Reach
from palimpsest.store.engine import Ask, Row, Transaction, ids
from palimpsest.store.search.scope import Scope

CHANGES = 100_000  # to passages that are listed, some 1 MB; tables in memory follow each other's within seconds

# Without answers that were made again, unless their conversation went on from them all the same
TEXTS = """
SELECT memory.id, memory.occurrence, conversation.public, occurrence.role,
    substr(content.text, memory.start + 1, memory.stop - memory.start), occurrence.created_at,
    memory.start, memory.stop, memory.tags
FROM numbers(?1) AS asked INNER JOIN memory ON memory.id = asked.value
JOIN conversation ON conversation.id = memory.conversation
JOIN occurrence ON occurrence.id = memory.occurrence JOIN content ON content.id = occurrence.content
JOIN turn ON turn.id = occurrence.turn
WHERE memory.tenant = (SELECT id FROM tenant WHERE name = ?2) AND NOT (occurrence.position = turn.messages
    AND EXISTS (SELECT 1 FROM turn AS t WHERE t.tenant = (SELECT id FROM tenant WHERE name = ?2)
        AND t.parent = turn.id AND t.event = 'retry' AND t.ending = 'complete')
    AND NOT EXISTS (SELECT 1 FROM turn AS t WHERE t.tenant = (SELECT id FROM tenant WHERE name = ?2)
        AND t.parent = turn.id AND t.event NOT IN ('retry', 'edit')))
"""
NEWEST_TEXTS = f"""
SELECT occurrence.id, CASE WHEN occurrence.flags & {HeadFlag.SUMMARY | HeadFlag.ASIDE} = 0 THEN occurrence.role
ELSE 'client' END, substr(content.text, 1, ?3) FROM numbers(?1) AS asked INNER JOIN occurrence
ON occurrence.id = asked.value JOIN content ON content.id = occurrence.content ORDER BY occurrence.id DESC LIMIT ?2
"""
PASSAGES_OF = """
SELECT memory.occurrence, memory.id, substr(content.text, memory.start + 1, memory.stop - memory.start)
FROM numbers(?) AS asked INNER JOIN memory ON memory.occurrence = asked.value
JOIN occurrence ON occurrence.id = memory.occurrence JOIN content ON content.id = occurrence.content
ORDER BY memory.id
"""
OF_CONVERSATION = """
SELECT memory.id, memory.occurrence, occurrence.fingerprint, occurrence.role, memory.stop - memory.start, memory.tags
FROM memory /*+ INDEX(memory_by_conversation) */ JOIN occurrence ON occurrence.id = memory.occurrence
WHERE memory.conversation = ? AND memory.tenant = ? ORDER BY memory.id
"""
# One look-up for each passage; by the model's index it would be all vectors for each
VECTORS = """
SELECT memory, own FROM numbers(?) AS asked INNER JOIN vector ON vector.memory = asked.value AND vector.tenant = ?
WHERE /*+ NO_INDEX */ vector.model = ? AND length(vector.own) = ?
"""


def passages_after(ask: Ask, scope: Scope, last_id: int, limit: int, model: str = "", size_bytes: int = 0) -> list[Row]:
    """
    The next passages of a scope.

    Returns:
        Rows of id, occurrence, conversation, characters, tags, and of the message its fingerprint, flags and time;
        last the vector of this model and size, None where there is none.
    """
    condition, args = scope.condition
    rows = ask(
        "SELECT passage.*, vector.own FROM ("
        "SELECT memory.id, memory.occurrence, memory.conversation, memory.stop - memory.start, memory.tags,"
        " occurrence.fingerprint, occurrence.flags, occurrence.created_at"
        f" FROM memory /*+ INDEX({_index_of(scope)}) */ JOIN occurrence ON occurrence.id = memory.occurrence"
        f" WHERE {condition} AND memory.id > ? ORDER BY memory.id LIMIT ?) AS passage"
        " LEFT JOIN vector ON vector.memory = passage.id AND vector.tenant = ?"
        " AND /*+ NO_INDEX */ vector.model = ? AND length(vector.own) = ?",
        (*args, last_id, limit, scope.tenant, model, size_bytes),
    )
    return sorted(rows, key=itemgetter(0))


def vectors_of(ask: Ask, tenant: int, memories: Collection[int], model: str, size_bytes: int) -> list[Row]:
    """Rows of id and vector of this model, of those passages of a tenant that have one."""
    return ask(VECTORS, (ids(memories), tenant, model, size_bytes))


def passage_before(ask: Ask, scope: Scope, newest: int) -> int:
    """The id of the passage in front of the newest ones of a scope; 0 where it holds no more than those."""
    if last_passage(ask) <= newest:  # no id is given twice, so no scope holds more
        return 0
    condition, args = scope.condition
    sql = (
        f"SELECT memory.id FROM memory /*+ INDEX({_index_of(scope)}) */ WHERE {condition}"
        " ORDER BY memory.id DESC LIMIT 1 OFFSET ?"
    )
    return next((id for (id,) in ask(sql, (*args, newest))), 0)


def last_passage(ask: Ask) -> int:
    """The id of the newest passage of all; 0 where there is none."""
    return int(ask("SELECT coalesce(max(id), 0) FROM memory")[0][0])


def trim_changes(transaction: Transaction) -> None:
    """Drop the oldest changes; tables that are older read their scope anew."""
    transaction.write("DELETE FROM forgotten WHERE seq <= (SELECT max(seq) FROM forgotten) - ?", [(CHANGES,)])


def last_change(ask: Ask) -> int:
    """The number of the newest change to passages that had been read; see `changes_after`."""
    return int(ask("SELECT coalesce(max(seq), 0) FROM forgotten")[0][0])


def changes_after(ask: Ask, number: int) -> list[Row]:
    """Rows of number and id: passages that were removed, lost their vector or came into another scope since."""
    return ask("SELECT seq, memory FROM forgotten WHERE seq > ? ORDER BY seq", (number,))


def are_any_in(ask: Ask, scope: Scope, memories: Collection[int]) -> bool:
    """Whether any of these passages belongs to a scope."""
    condition, args = scope.condition
    asked = "SELECT 1 FROM numbers(?) AS asked INNER JOIN memory ON memory.id = asked.value"
    return bool(ask(f"{asked} WHERE {condition} LIMIT 1", (ids(memories), *args)))


def passages_of(ask: Ask, tenant: int, conversation: int) -> list[Row]:
    """Rows of id, occurrence, and of the message its fingerprint and role; characters; tags."""
    return ask(OF_CONVERSATION, (conversation, tenant))


def newest_texts(ask: Ask, occurrences: Collection[int], messages: int, chars: int) -> list[Row]:
    """
    Rows of occurrence, role ("client": in a user's place) and text of the newest of these messages, oldest first.

    Args:
        messages: at most so many.
        chars: of each text, from its beginning.
    """
    return ask(NEWEST_TEXTS, (ids(occurrences), messages, chars))[::-1]


def passages_of_messages(ask: Ask, occurrences: Collection[int]) -> list[Row]:
    """Rows of occurrence, id and text of the passages of these messages, in their order."""
    return ask(PASSAGES_OF, (ids(occurrences),))


def texts_of(ask: Ask, tenant: str, memories: Sequence[int]) -> list[Row]:
    """
    Rows of id, occurrence, public id of the conversation, role, text, time, start, stop and tags, in any order.

    Passages that are not there, or are another tenant's, are left out.
    """
    return ask(TEXTS, (ids(memories), tenant))


class PassageTexts:
    """What `texts_of` says of a tenant's passages, each read once."""

    def __init__(self, ask: Ask, tenant: str) -> None:
        self._ask = ask
        self._tenant = tenant
        self._read: dict[int, Row] = {}

    def of(self, memories: Sequence[int]) -> list[Row]:
        """The rows of these passages, in their order."""
        if missing := [id for id in dict.fromkeys(memories) if id not in self._read]:
            self._read |= {row[0]: row for row in texts_of(self._ask, self._tenant, missing)}
        return [self._read[id] for id in memories if id in self._read]


def _index_of(scope: Scope) -> str:
    """The index to use for a scope, named, as SQLite would choose a slower one."""
    return "memory_by_tenant" if scope.reach is Reach.TENANT else "memory_by_conversation"
