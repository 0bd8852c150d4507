"""
Messages as rows: their contents, once for each tenant, the places where they occur, and the passages that find them.
"""

from __future__ import annotations

from collections.abc import Sequence

from palimpsest.domain import Entry, HeadFlag, frozen
from palimpsest.store.engine import Ask, Row, Transaction, ids
from palimpsest.store.families.passages import OccurrencePassages
from palimpsest.store.families.registry import remove_derived


@frozen
class NewOccurrence:
    """One message in one place of one conversation."""

    occurrence: int
    tenant: int
    conversation: int
    turn: int
    position: int
    entry: Entry
    created_at: float
    retirement: int = 0  # that this message belongs to; 0 none


@frozen
class ShownMessage:
    """A stored message as it is shown: where it stands, who said what, and when (Unix seconds)."""

    conversation: str
    occurrence: int
    role: str
    text: str
    created_at: float


SHOWN = (
    f"occurrence.flags & {HeadFlag.ERASED | HeadFlag.RETIRED} = 0 AND occurrence.role NOT IN ('system', 'developer')"
)
SAID = """
SELECT conversation.public, occurrence.id, occurrence.role, content.text, occurrence.created_at
FROM tenant JOIN conversation ON conversation.tenant = tenant.id AND conversation.public = ?2
JOIN occurrence ON occurrence.conversation = conversation.id JOIN content ON content.id = occurrence.content
WHERE tenant.name = ?1 AND """


def message(ask: Ask, tenant: str, conversation: str, occurrence: int) -> ShownMessage | None:
    """A message of a conversation (public id); None: there is none, or it is an instruction, erased or retired."""
    rows = ask(f"{SAID} occurrence.id = ?3 AND {SHOWN}", (tenant, conversation, occurrence))
    return ShownMessage(*rows[0]) if rows else None


def message_with_neighbours(ask: Ask, tenant: str, said: ShownMessage, count: int) -> list[ShownMessage]:
    """A message with up to `count` messages archived before it, and as many after it, in its conversation."""
    where = (tenant, said.conversation, said.occurrence, count)
    before = ask(f"{SAID} occurrence.id < ?3 AND {SHOWN} ORDER BY occurrence.id DESC LIMIT ?4", where)
    after = ask(f"{SAID} occurrence.id > ?3 AND {SHOWN} ORDER BY occurrence.id LIMIT ?4", where)
    return [*(ShownMessage(*row) for row in reversed(before)), said, *(ShownMessage(*row) for row in after)]


def messages_of(ask: Ask, tenant: str, conversation: str) -> list[tuple[int, int]]:
    """Occurrence and fingerprint of each message of a conversation, by its public id, in the order of their coming."""
    rows: list[Row] = ask(
        "SELECT occurrence.id, fingerprint FROM occurrence"
        " JOIN conversation ON conversation.id = occurrence.conversation"
        " WHERE public = ? AND conversation.tenant = (SELECT id FROM tenant WHERE name = ?) ORDER BY occurrence.id",
        (conversation, tenant),
    )
    return [(occurrence, full) for occurrence, full in rows]


def write_occurrences(transaction: Transaction, occurrences: Sequence[NewOccurrence]) -> list[OccurrencePassages]:
    """Messages in their places. Returns the passages that find them, for `write_passages`."""
    transaction.write(
        "INSERT INTO content(tenant, digest, text, rest) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        [(s.tenant, s.entry.digest, s.entry.text, s.entry.rest) for s in occurrences],
    )
    transaction.write(
        "INSERT INTO occurrence"
        "(id, tenant, conversation, turn, position, content, fingerprint, opening, flags, role, created_at) VALUES"
        " (?1, ?2, ?3, ?4, ?5, (SELECT id FROM content WHERE tenant = ?2 AND digest = ?6), ?7, ?8, ?9, ?10, ?11)",
        [
            (
                *(s.occurrence, s.tenant, s.conversation, s.turn, s.position, s.entry.digest),
                *(s.entry.new.fingerprint.full, s.entry.new.fingerprint.opening, s.entry.new.flags),
                *(s.entry.new.message.role, s.created_at),
            )
            for s in occurrences
        ],
    )
    transaction.write(
        "INSERT INTO retired(occurrence, tenant, retirement, memory) VALUES (?, ?, ?, 0)",
        [(s.occurrence, s.tenant, s.retirement) for s in occurrences if s.retirement],
    )
    return [OccurrencePassages(s.occurrence, s.tenant, s.conversation, s.entry.passages) for s in occurrences]


def forget_occurrences(transaction: Transaction, tenant: int, occurrences: Sequence[int]) -> None:
    """Remove occurrences, all that is derived from them, and contents that no other occurrence uses."""
    if not occurrences:
        return
    which = ids(occurrences)
    remove_derived(transaction, tenant, which)
    contents = content_ids_of(transaction, which)
    sql = "DELETE FROM occurrence WHERE id IN (SELECT value FROM numbers(?)) AND tenant = ?"
    transaction.write(sql, [(which, tenant)])
    forget_unused(transaction, contents)


def content_ids_of(transaction: Transaction, which: str) -> str:
    """The ids of the contents of these occurrences; both are JSON lists."""
    sql = "SELECT DISTINCT content FROM occurrence WHERE id IN (SELECT value FROM numbers(?))"
    return ids(row[0] for row in transaction.read(sql, (which,)))


def forget_unused(transaction: Transaction, contents: str) -> None:
    """Remove those of these contents (a JSON list of ids) that no message uses any more."""
    transaction.write(
        "DELETE FROM content WHERE id IN (SELECT value FROM numbers(?))"
        " AND NOT EXISTS (SELECT 1 FROM occurrence WHERE occurrence.content = content.id)",
        [(contents,)],
    )
