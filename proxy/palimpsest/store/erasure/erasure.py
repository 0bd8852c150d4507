"""
Erasing messages and conversations: the transactions, and the texts that each takes away.

What is erased goes with all that follows from it (`store/families/registry.py`). A conversation that lives on keeps its
tree, with a content without text in the place of each erased message; one that is erased as a whole keeps no row. Both
leave tombstones.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

import orjson

from palimpsest.domain import HeadFlag
from palimpsest.store.engine import Ask, Transaction, ids
from palimpsest.store.families.family import Erased, put_zeros
from palimpsest.store.families.registry import FAMILIES, remove_derived
from palimpsest.store.operation.changes import put_position
from palimpsest.store.turns.branch_heads import WIDTH, int64_of
from palimpsest.store.turns.messages import content_ids_of, forget_unused
from palimpsest.store.turns.tombstones import ERASE_SCOPE, ERASED_DIGEST, ERASED_TURN, query_words, without_query
from palimpsest.wire.values import dumps

UNFINISHED = "erasure"  # name of the task: there until the index is merged and the log emptied

IN = "IN (SELECT value FROM numbers(?))"
HELD_ALONE = """id IN (SELECT content FROM occurrence WHERE id IN (SELECT value FROM numbers(?1))) AND NOT EXISTS (
    SELECT 1 FROM occurrence WHERE content = content.id AND id NOT IN (SELECT value FROM numbers(?1)))"""
FLAGS_AT = 3  # in a row of a listing

# What is erased is not to be taken back with a retirement. A message that stands twice behind the same one, as in a
# request beside a conversation, which repeats it, is marked once: PostgreSQL changes no row twice in one statement.
NEWER = """
ON CONFLICT (fingerprint, after, conversation) DO UPDATE SET
    opening = excluded.opening, at = excluded.at, retirement = excluded.retirement
WHERE excluded.retirement = 0 OR erased.retirement <> 0
"""
MARK = f"""
INSERT INTO erased(fingerprint, after, conversation, opening, at, retirement)
SELECT fingerprint, before, ?1, min(opening), ?2, ?5 FROM (
    SELECT id, fingerprint, opening, lag(fingerprint, 1, 0) OVER (ORDER BY id) AS before FROM occurrence
    WHERE conversation = ?3 AND role NOT IN ('system', 'developer')) AS said
WHERE ?4 = '' OR id IN (SELECT value FROM numbers(?4))
GROUP BY fingerprint, before
{NEWER}"""
MARK_INSTRUCTIONS = f"""
INSERT INTO erased(fingerprint, after, conversation, opening, at, retirement)
SELECT fingerprint, 0, ?1, min(opening), ?2, ?5 FROM occurrence
WHERE conversation = ?3 AND role IN ('system', 'developer') AND (?4 = '' OR id IN (SELECT value FROM numbers(?4)))
GROUP BY fingerprint
{NEWER}"""
SAID_SINCE = f"""
SELECT EXISTS (SELECT 1 FROM turn WHERE conversation = ?1 AND created_at > ?2)
OR EXISTS (SELECT 1 FROM occurrence WHERE conversation = ?1 AND flags & {HeadFlag.ERASED} = 0)
"""


def mark_scopes(transaction: Transaction, prints: Sequence[int], at: float) -> None:
    """Write tombstones for whole scopes: what belongs to one and came before `at` is stored without text."""
    transaction.write("INSERT INTO erasure(at) VALUES (?)", [(at,)])
    put_position(transaction, UNFINISHED)
    transaction.write(ERASE_SCOPE, [(fingerprint, at) for fingerprint in prints])


def is_unfinished(ask: Ask) -> bool:
    """Whether an erasure was begun, and not brought to its end."""
    return bool(ask("SELECT 1 FROM task WHERE name = ?", (UNFINISHED,)))


def mark_finished(transaction: Transaction) -> None:
    """Note that the index is merged and the log emptied."""
    transaction.write("DELETE FROM task WHERE name = ?", [(UNFINISHED,)])


def mark_messages(
    transaction: Transaction,
    conversation: int,
    fingerprint: int,
    at: float,
    occurrences: Sequence[int] | None = None,
    retirement: int = 0,
) -> None:
    """
    Write tombstones for messages, so that they are not stored when they are sent again.

    Args:
        conversation: its row, and its `scope_print`.
        occurrences: None: all of the conversation.
        retirement: 0: these are erased; else they are only retired, by this one.
    """
    which = "" if occurrences is None else ids(occurrences)
    for sql in (MARK, MARK_INSTRUCTIONS):
        transaction.write(sql, [(fingerprint, at, conversation, which, retirement)])


def erase_messages(
    transaction: Transaction, tenant: int, occurrences: Sequence[int], erased: Erased, flags: int = HeadFlag.ERASED
) -> None:
    """
    Erase the text of messages of one tenant, and all that was derived from it. `flags`: that the messages get. Of what
    goes for its age (`SWEPT`), only the decisions of its own turns lose what was looked for.
    """
    which = ids(occurrences)
    erased.take("texts", transaction.read(f"SELECT text, rest FROM content WHERE {HELD_ALONE}", (which,)))
    for family in FAMILIES:
        family.take(transaction.read, which, erased)
    erased.counts["messages"] += len(occurrences)
    remove_derived(transaction, tenant, which)
    put_zeros(transaction, "content", ("text", "rest"), HELD_ALONE, which)
    contents = content_ids_of(transaction, which)
    roles = [role for (role,) in transaction.read(f"SELECT DISTINCT role FROM occurrence WHERE id {IN}", (which,))]
    transaction.write(
        "INSERT INTO content(tenant, digest, text, rest) VALUES (?, ?, '', ?) ON CONFLICT DO NOTHING",
        [(tenant, ERASED_DIGEST + role.encode(), dumps({"role": role})) for role in roles],
    )
    transaction.write(
        "UPDATE occurrence SET content = (SELECT id FROM content WHERE tenant = ? AND digest = ?),"
        f" flags = (flags | ?) & ~{HeadFlag.RETIRED} WHERE id {IN} AND role = ?",
        [(tenant, ERASED_DIGEST + role.encode(), flags, which, role) for role in roles],
    )
    transaction.write(f"DELETE FROM retired WHERE occurrence {IN}", [(which,)])
    forget_unused(transaction, contents)
    conversations = conversations_of(transaction, which)
    mark_heads(transaction, conversations, set(occurrences), flags, HeadFlag.RETIRED)
    if flags & HeadFlag.SWEPT:
        _erase_queries(transaction, f"id IN (SELECT turn FROM occurrence WHERE id {IN})", (which,), erased)
    else:
        since = f"conversation {IN} AND id >= (SELECT turn FROM occurrence WHERE id = ?)"
        _erase_queries(transaction, since, (conversations, min(occurrences, default=0)), erased)
    transaction.write(
        f"UPDATE turn SET explain = ? WHERE ending = 'open' AND id IN (SELECT turn FROM occurrence WHERE id {IN})",
        [(ERASED_TURN, which)],
    )


def erase_conversation(transaction: Transaction, conversation: int, at: float, erased: Erased) -> None:
    """Remove a conversation whose messages were erased, unless something was said in it since it was looked at."""
    if transaction.read(SAID_SINCE, (conversation, at)) != [(0,)]:
        return
    mine = [(conversation,)]
    if transaction.read("SELECT 1 FROM conversation WHERE id = ?", mine[0]):
        transaction.write(
            "UPDATE turn SET parent = NULL WHERE conversation <> ?1 AND parent IN"
            " (SELECT id FROM turn WHERE conversation = ?1)",
            mine,
        )
        contents = content_ids_of(
            transaction,
            ids(row[0] for row in transaction.read("SELECT id FROM occurrence WHERE conversation = ?", mine[0])),
        )
        for family in FAMILIES:
            family.remove_conversation(transaction, conversation, erased)
        for table in ("link", "head", "listing", "occurrence"):
            transaction.write(f"DELETE FROM {table} WHERE conversation = ?", mine)
        forget_unused(transaction, contents)
        ((turns,),) = transaction.read("SELECT count(*) FROM turn WHERE conversation = ?", mine[0])
        transaction.write("DELETE FROM turn WHERE conversation = ?", mine)
        transaction.write("DELETE FROM conversation WHERE id = ?", mine)
        erased.counts["conversations"] += 1
        erased.counts["turns"] += turns


def erase_tenant_if_empty(transaction: Transaction, tenant: int) -> None:
    for table in ("conversation", "fact"):
        if transaction.read(f"SELECT 1 FROM {table} WHERE tenant = ? LIMIT 1", (tenant,)):
            return
    for table in ("term", "node", "content"):
        transaction.write(f"DELETE FROM {table} WHERE tenant = ?", [(tenant,)])
    transaction.write("DELETE FROM tenant WHERE id = ?", [(tenant,)])


def conversations_of(transaction: Transaction, which: str) -> str:
    """The conversations that these occurrences stand in, both as JSON lists."""
    rows = transaction.read(f"SELECT DISTINCT conversation FROM occurrence WHERE id {IN}", (which,))
    return ids(row[0] for row in rows)


def mark_heads(transaction: Transaction, conversations: str, meant: Set[int], put: int, take: int) -> None:
    """
    Change the flags of messages in the listings of these conversations (a JSON list).

    Args:
        meant: occurrences.
        put, take: flags that they get, and that they lose.
    """
    for table, column in (("head", "listing"), ("listing", "rows")):
        changed = []
        sql = f"SELECT turn, {column} FROM {table} WHERE conversation {IN}"
        for turn, listing in transaction.read(sql, (conversations,)):
            numbers = int64_of(listing)
            for start in range(0, len(numbers), WIDTH):
                if numbers[start + WIDTH - 2] in meant:
                    numbers[start + FLAGS_AT] = (numbers[start + FLAGS_AT] | put) & ~take
            changed.append((numbers.tobytes(), turn))
        transaction.write(f"UPDATE {table} SET {column} = ? WHERE turn = ?", changed)


def _erase_queries(transaction: Transaction, turns: str, args: Sequence[object], erased: Erased) -> None:
    """
    Remove the query texts from the decisions of turns.

    Args:
        turns: a condition in SQL, and its arguments: turns that may have looked for words that are erased.
    """
    found = transaction.read(
        f"SELECT id, explain FROM turn WHERE {turns} AND field(explain, 'query') IS NOT NULL", args
    )
    decisions = [(id, explain, orjson.loads(explain)) for id, explain in found]
    erased.take("queries", (query_words(decision) for *_, decision in decisions))
    bare = [(dumps(without_query(decision, ())), explain, id) for id, explain, decision in decisions]
    # spaces behind it keep its size: see `put_zeros`
    transaction.write(
        "UPDATE turn SET explain = ? WHERE id = ?",
        [(told.ljust(len(told) + _growth_bytes(explain, told)), id) for told, explain, id in bare],
    )


def _growth_bytes(old: str, new: str) -> int:
    """How many bytes longer the old text is."""
    return max(len(old.encode(errors="surrogatepass")) - len(new.encode(errors="surrogatepass")), 0)
