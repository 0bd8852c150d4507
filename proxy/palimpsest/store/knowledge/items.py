"""
Items as rows: what writers keep of conversations, the places where it was said, and how far each conversation was read.

An item is hidden while one of its sources is retired, and goes with the first that is erased. What it stood for (older
repeats, an older value) is in use again from then on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import numpy as np

from palimpsest.domain import HeadFlag, frozen
from palimpsest.domain.memories import Item, SourceMessage
from palimpsest.domain.ports import Vectors
from palimpsest.store.engine import Ask, Transaction, ids
from palimpsest.store.operation.changes import ITEMS, count

State = Literal["current", "merged", "superseded", "evicted"]

NOT_FOUND = HeadFlag.ERASED | HeadFlag.RETIRED
SEGMENT_MESSAGES = 400  # read at a time; a segment has some twenty

WAITING = f"""
SELECT conversation.id, tenant.id, tenant.name, max(occurrence.created_at), sum(length(content.text))
FROM conversation JOIN tenant ON tenant.id = conversation.tenant
LEFT JOIN item_progress ON item_progress.conversation = conversation.id
JOIN occurrence ON occurrence.conversation = conversation.id AND occurrence.id > coalesce(item_progress.through, 0)
JOIN content ON content.id = occurrence.content
WHERE occurrence.flags & {NOT_FOUND} = 0 AND coalesce(item_progress.leased_until, 0) <= ?1
    AND EXISTS (SELECT 1 FROM memory WHERE memory.occurrence = occurrence.id)
GROUP BY conversation.id, tenant.id ORDER BY conversation.id
"""
CLAIM = """
INSERT INTO item_progress(tenant, conversation, through, worker, leased_until)
SELECT tenant, id, 0, ?2, ?3 FROM conversation WHERE id = ?1
ON CONFLICT (tenant, conversation) DO UPDATE SET worker = ?2, leased_until = ?3
WHERE item_progress.leased_until <= ?4 OR item_progress.worker = ?2
"""
UNREAD = f"""
SELECT occurrence.id, occurrence.role, content.text, occurrence.created_at
FROM occurrence JOIN content ON content.id = occurrence.content
LEFT JOIN item_progress ON item_progress.conversation = occurrence.conversation
WHERE occurrence.conversation = ? AND occurrence.id > coalesce(item_progress.through, 0)
    AND occurrence.flags & {NOT_FOUND} = 0
    AND EXISTS (SELECT 1 FROM memory WHERE memory.occurrence = occurrence.id)
ORDER BY occurrence.id LIMIT ?
"""
STANDING = f"""
SELECT occurrence.id FROM numbers(?) AS asked JOIN occurrence ON occurrence.id = asked.value
WHERE occurrence.conversation = ? AND occurrence.flags & {NOT_FOUND} = 0
"""
HIDDEN = f"""
EXISTS (SELECT 1 FROM item_source JOIN occurrence ON occurrence.id = item_source.occurrence
    WHERE item_source.item = {{item}} AND occurrence.flags & {NOT_FOUND} <> 0)
"""
# What stands for a hidden item's older forms is hidden with it, so that these are in use meanwhile.
IN_USE = f"""
NOT {HIDDEN.format(item="item.id")} AND item.state <> 'evicted'
AND (item.heir = 0 OR {HIDDEN.format(item="item.heir")})
"""
OF_GROUP = f"""
SELECT item.id, item.text, item.question, item.topic, item.said_at, item.used_at, item.uses, item.judged,
    item.related, occurrence.role
FROM conversation INNER JOIN item ON item.conversation = conversation.id
INNER JOIN occurrence ON occurrence.id =
    (SELECT max(item_source.occurrence) FROM item_source WHERE item_source.item = item.id)
WHERE conversation.tenant = ?1 AND conversation.user_id = ?2
    AND CASE WHEN ?3 = 0 THEN conversation.scope = ?4 ELSE conversation.id = ?3 END AND {IN_USE}
ORDER BY item.said_at, item.id
"""
GROUPS = """
SELECT DISTINCT tenant.id, tenant.name, conversation.user_id,
    CASE WHEN conversation.user_id = '' AND ?1 = 0 THEN conversation.id ELSE 0 END,
    CASE WHEN conversation.user_id = '' AND ?1 = 0 THEN '' ELSE conversation.scope END
FROM item JOIN conversation ON conversation.id = item.conversation JOIN tenant ON tenant.id = conversation.tenant
ORDER BY 1, 3, 5, 4
"""


@frozen
class UnreadConversation:
    """A conversation with messages that no writer has read: when the newest was said, and how long they are."""

    conversation: int
    tenant: int
    tenant_name: str
    newest_at: float
    chars: int


@frozen
class Group:
    """
    The items that are compared with each other: those of one user in one project, or of one conversation of nobody's;
    where all conversations of a tenant see each other, those of all of nobody's in one project.

    `tenant` is its row; `conversation` 0: of several.
    """

    tenant: int
    tenant_name: str
    user: str
    conversation: int
    scope: str


@frozen
class StoredItem:
    """An item that is in use. Times in Unix seconds; `role` is who said its newest source."""

    id: int
    text: str
    question: str
    topic: str
    said_at: float
    used_at: float
    uses: int
    judged: int  # it was compared with all newer items up to this id
    related: int  # version of the rules that took relations from it; 0 none did
    role: str


def waiting_conversations(ask: Ask, now: float) -> list[UnreadConversation]:
    """Conversations with messages that no writer has read, or is reading."""
    return [UnreadConversation(*row) for row in ask(WAITING, (now,))]


def claim(transaction: Transaction, conversation: int, worker: str, now: float, until: float) -> bool:
    """Claim a conversation for a writer until some time; False: another one reads it."""
    if not transaction.read("SELECT 1 FROM conversation WHERE id = ?", (conversation,)):
        return False
    transaction.write(CLAIM, [(conversation, worker, until, now)])
    rows = transaction.read("SELECT worker FROM item_progress WHERE conversation = ?", (conversation,))
    return rows == [(worker,)]


def release(transaction: Transaction, conversation: int, worker: str) -> None:
    transaction.write(
        "UPDATE item_progress SET worker = '', leased_until = 0 WHERE conversation = ? AND worker = ?",
        [(conversation, worker)],
    )


def vectors_of_messages(ask: Ask, occurrences: Iterable[int], model: str) -> Mapping[int, Vectors]:
    """The sum of the vectors of each message's passages by this model, (dimensions,)."""
    rows = ask(
        "SELECT memory.occurrence, vector.own FROM numbers(?) AS asked"
        " JOIN memory ON memory.occurrence = asked.value JOIN vector ON vector.memory = memory.id WHERE model = ?",
        (ids(occurrences), model),
    )
    found: dict[int, Vectors] = {}
    for occurrence, own in rows:
        vector = np.frombuffer(own, np.float16).astype(np.float32)
        found[occurrence] = found[occurrence] + vector if occurrence in found else vector
    return found


def passages_in(ask: Ask, tenant: int) -> int:
    """How many passages of a tenant are stored."""
    return int(ask("SELECT count(*) FROM memory WHERE tenant = ?", (tenant,))[0][0])


def unread(ask: Ask, conversation: int) -> list[SourceMessage]:
    """The first messages of a conversation that no writer has read, in order."""
    rows = ask(UNREAD, (conversation, SEGMENT_MESSAGES))
    return [SourceMessage(*row) for row in rows]


def write_items(
    transaction: Transaction,
    conversation: int,
    worker: str,
    through: int,
    items: Sequence[Item],
    writer: str,
    now: float,
) -> list[int]:
    """
    Store the items of a segment, and how far the writer has read; returns the ids.

    What was erased or retired while it wrote is left out. Nothing is written where another worker took over.

    Args:
        through: the last occurrence that it read.
        writer: its name and version.
    """
    if transaction.read("SELECT worker FROM item_progress WHERE conversation = ?", (conversation,)) != [(worker,)]:
        return []
    cited = ids({span.occurrence for item in items for span in item.sources})
    there = {row[0] for row in transaction.read(STANDING, (cited, conversation))}
    written = []
    for item in items:
        spans = sorted({(span.occurrence, span.start, span.stop) for span in item.sources})
        if not spans or not there.issuperset(occurrence for occurrence, _, _ in spans):
            continue
        ((tenant, said_at),) = transaction.read(
            "SELECT conversation.tenant, occurrence.created_at FROM occurrence"
            " JOIN conversation ON conversation.id = occurrence.conversation WHERE occurrence.id = ?",
            (spans[-1][0],),
        )
        ((id,),) = transaction.read(
            "INSERT INTO item(tenant, conversation, writer, text, question, topic, said_at, created_at, used_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
            (tenant, conversation, writer, item.text, item.question, item.topic, said_at, now, said_at),
        )
        transaction.write(
            "INSERT INTO item_source(tenant, item, occurrence, start, stop) VALUES (?, ?, ?, ?, ?)",
            [(tenant, id, *span) for span in spans],
        )
        written.append(id)
    if written:
        count(transaction, ITEMS)
    transaction.write(
        "UPDATE item_progress SET through = ?, worker = '', leased_until = 0 WHERE conversation = ?",
        [(through, conversation)],
    )
    return written


def groups(ask: Ask, is_shared: bool = False) -> list[Group]:
    """All groups that have items. `is_shared`: conversations that name no user see each other."""
    return [Group(*row) for row in ask(GROUPS, (int(is_shared),))]


def items_of(ask: Ask, group: Group) -> list[StoredItem]:
    """The items of a group that are in use, oldest first."""
    args = (group.tenant, group.user, group.conversation, group.scope)
    return [StoredItem(*row) for row in ask(OF_GROUP, args)]


def vectors_of_items(ask: Ask, items: Iterable[int], model: str) -> Mapping[int, Vectors]:
    """Unit vectors of those items that have one by this model, each (dimensions,)."""
    rows = ask(
        "SELECT item, own FROM numbers(?) AS asked INNER JOIN item_vector ON item_vector.item = asked.value"
        " WHERE model = ?",
        (ids(items), model),
    )
    return {item: np.frombuffer(own, np.float16).astype(np.float32) for item, own in rows}


def save_item_vectors(transaction: Transaction, model: str, vectors: Mapping[int, Vectors]) -> None:
    """Store unit vectors of items; those of items that went meanwhile are left out."""
    count(transaction, ITEMS)
    transaction.write(
        "INSERT INTO item_vector(tenant, item, model, own) SELECT tenant, id, ?, ? FROM item WHERE id = ?"
        " ON CONFLICT (tenant, item) DO UPDATE SET model = excluded.model, own = excluded.own",
        [(model, vector.astype(np.float16).tobytes(), item) for item, vector in vectors.items()],
    )


def mark_judged(transaction: Transaction, items: Iterable[int], newest: int) -> None:
    """Note that these items were compared with all newer ones up to that id."""
    transaction.write(
        "UPDATE item SET judged = ? WHERE id = ? AND judged < ?", [(newest, item, newest) for item in items]
    )


def mark_related(transaction: Transaction, items: Iterable[int], version: int) -> None:
    """Note that relations were taken from these items by that version of the rules."""
    transaction.write("UPDATE item SET related = ? WHERE id = ?", [(version, item) for item in items])


def count_uses(transaction: Transaction, items: Iterable[int], now: float) -> None:
    """Note that these items led to passages that were recalled."""
    transaction.write("UPDATE item SET uses = uses + 1, used_at = ? WHERE id = ?", [(now, item) for item in items])


def has_unjudged(ask: Ask) -> bool:
    """Whether there are items that no consolidation has seen."""
    rows = ask("SELECT EXISTS (SELECT 1 FROM item WHERE state = 'current' AND (judged = 0 OR related = 0))")
    return bool(rows[0][0])


def in_use(ask: Ask) -> int:
    """How many items of all tenants are in use; those with a retired source are counted."""
    return int(ask("SELECT count(*) FROM item WHERE state = 'current'")[0][0])


def turns_after(ask: Ask, id: int) -> tuple[int, int]:
    """How many turns were written after this one, and the newest of all, 0 where there is none."""
    ((count, newest),) = ask("SELECT count(*), coalesce(max(id), 0) FROM turn WHERE id > ?", (id,))
    return int(count), max(int(newest), id)


def newest_turn_at(ask: Ask) -> float:
    """When the newest request was written, Unix seconds; 0: there is none."""
    rows = ask("SELECT created_at FROM turn ORDER BY id DESC LIMIT 1")
    return float(rows[0][0]) if rows else 0.0
