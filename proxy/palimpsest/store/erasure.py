"""
Erasing messages and conversations: the transactions, and the texts that each takes away.

What is erased goes from everything in `holdings.WORDS`. A conversation that lives on keeps its tree, with a content
without text in the place of each erased message; one that is erased as a whole keeps no row. Both leave tombstones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field

import orjson

from palimpsest.core.archive.chunking import SCOPE_MARK, terms
from palimpsest.domain import HeadFlag
from palimpsest.store.branch_heads import WIDTH, int64_of
from palimpsest.store.engine import Ask, Transaction, full_text
from palimpsest.store.item_erasure import (
    forget_items,
    forget_progress,
    items_said_in,
    places_that_go,
    words_that_go,
)
from palimpsest.store.messages import (
    contents_of,
    forget_blocks,
    forget_passages,
    forget_terms,
    forget_unused,
    ids,
    memories_of,
)
from palimpsest.store.tasks import put
from palimpsest.store.tombstones import ERASE_SCOPE, ERASED_DIGEST, ERASED_TURN, query_words, without_query
from palimpsest.wire.values import dumps

UNFINISHED = "erasure"  # name of the task: there until the index is merged and the log emptied

IN = "IN (SELECT value FROM numbers(?))"
HELD_ALONE = """id IN (SELECT content FROM occurrence WHERE id IN (SELECT value FROM numbers(?1))) AND NOT EXISTS (
    SELECT 1 FROM occurrence WHERE content = content.id AND id NOT IN (SELECT value FROM numbers(?1)))"""
FLAGS_AT = 3  # in a row of a listing

# What is erased is not to be taken back with a retirement.
NEWER = """
ON CONFLICT (fingerprint, after, conversation) DO UPDATE SET
    opening = excluded.opening, at = excluded.at, retirement = excluded.retirement
WHERE excluded.retirement = 0 OR erased.retirement <> 0
"""
MARK = f"""
INSERT INTO erased(fingerprint, after, conversation, opening, at, retirement)
SELECT fingerprint, before, ?1, opening, ?2, ?5 FROM (
    SELECT id, fingerprint, opening, lag(fingerprint, 1, 0) OVER (ORDER BY id) AS before FROM occurrence
    WHERE conversation = ?3 AND role NOT IN ('system', 'developer')) AS said
WHERE ?4 = '' OR id IN (SELECT value FROM numbers(?4))
{NEWER}"""
MARK_INSTRUCTIONS = f"""
INSERT INTO erased(fingerprint, after, conversation, opening, at, retirement)
SELECT fingerprint, 0, ?1, opening, ?2, ?5 FROM occurrence
WHERE conversation = ?3 AND role IN ('system', 'developer') AND (?4 = '' OR id IN (SELECT value FROM numbers(?4)))
{NEWER}"""
SAID_SINCE = f"""
SELECT EXISTS (SELECT 1 FROM turn WHERE conversation = ?1 AND created_at > ?2)
OR EXISTS (SELECT 1 FROM occurrence WHERE conversation = ?1 AND flags & {HeadFlag.ERASED} = 0)
"""


@dataclass(slots=True)
class Erased:
    """What was taken away so far: rows by store, and every text, for whoever looks whether it is really gone."""

    counts: Counter[str] = field(default_factory=Counter)
    texts: list[str] = field(default_factory=list)
    words: set[str] = field(default_factory=set)  # of the full-text index

    def take(self, name: str, rows: Iterable[tuple[str, ...]]) -> None:
        for row in rows:
            self.counts[name] += 1
            self.texts += row


def mark_scopes(transaction: Transaction, prints: Sequence[int], at: float) -> None:
    """From now on, what came before `at` and belongs to one of these leaves no text, whenever it is written."""
    transaction.write("INSERT INTO erasure(at) VALUES (?)", [(at,)])
    put(transaction, UNFINISHED)
    transaction.write(ERASE_SCOPE, [(print, at) for print in prints])


def is_unfinished(ask: Ask) -> bool:
    """Whether an erasure was begun, and not brought to its end."""
    return bool(ask("SELECT 1 FROM task WHERE name = ?", (UNFINISHED,)))


def mark_finished(transaction: Transaction) -> None:
    """The index is merged and the log emptied."""
    transaction.write("DELETE FROM task WHERE name = ?", [(UNFINISHED,)])


def mark_messages(
    transaction: Transaction,
    conversation: int,
    print: int,
    at: float,
    occurrences: Sequence[int] | None = None,
    retirement: int = 0,
) -> None:
    """
    Leave tombstones.

    Args:
        conversation: its row, and its `scope_print`.
        occurrences: None: all of the conversation.
        retirement: 0: these are erased; else they are only retired, by this one.
    """
    which = "" if occurrences is None else ids(occurrences)
    for sql in (MARK, MARK_INSTRUCTIONS):
        transaction.write(sql, [(print, at, conversation, which, retirement)])


def quoting(ask: Ask, tenant: int, occurrences: Sequence[int]) -> list[int]:
    """The blocks of the tenant that quote one of these messages, by the occurrence that each stands in."""
    gone = set(occurrences)
    rows = ask(
        "SELECT block.occurrence, block.occurrences FROM block"
        " JOIN conversation ON conversation.id = block.conversation WHERE conversation.tenant = ?",
        (tenant,),
    )
    return [anchor for anchor, quoted in rows if not gone.isdisjoint(numbers_of(quoted))]


def erase_quotes(transaction: Transaction, tenant: int, occurrences: Sequence[int], erased: Erased) -> None:
    """Remove every block of the tenant that quotes one of these, wherever it was said."""
    erase_blocks(transaction, quoting(transaction.read, tenant, occurrences), erased)


def erase_blocks(transaction: Transaction, blocks: Sequence[int], erased: Erased) -> None:
    """Remove the blocks that stand in these occurrences."""
    erased.take("blocks", transaction.read(f"SELECT text FROM block WHERE occurrence {IN}", (ids(blocks),)))
    anchors = [(anchor,) for anchor in blocks]
    transaction.write("UPDATE block SET text = zeros_for(text) WHERE occurrence = ?", anchors)
    transaction.write("DELETE FROM block WHERE occurrence = ?", anchors)


def erase_messages(
    transaction: Transaction, tenant: int, occurrences: Sequence[int], erased: Erased, flags: int = HeadFlag.ERASED
) -> None:
    """
    Take the text of these messages, of one tenant, and all that was derived from it.

    Args:
        flags: that the messages get. Of what goes for its age (`SWEPT`), only the decisions of its own turns lose
            what was looked for.
    """
    which = ids(occurrences)
    _take_texts(transaction, which, erased)
    erased.counts["messages"] += len(occurrences)
    forget_terms(transaction, tenant, which)
    _overwrite(transaction, which)
    forget_items(transaction, items_said_in(transaction.read, which))
    forget_passages(transaction, which)
    transaction.write(f"DELETE FROM fact WHERE occurrence {IN}", [(which,)])
    forget_blocks(transaction, which)
    contents = contents_of(transaction, which)
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
        erased.take("blocks", transaction.read("SELECT text FROM block WHERE conversation = ?", (conversation,)))
        transaction.write(
            "UPDATE turn SET parent = NULL WHERE conversation <> ?1 AND parent IN"
            " (SELECT id FROM turn WHERE conversation = ?1)",
            mine,
        )
        contents = contents_of(
            transaction,
            ids(row[0] for row in transaction.read("SELECT id FROM occurrence WHERE conversation = ?", mine[0])),
        )
        forget_progress(transaction, conversation)
        for table in ("block", "link", "head", "occurrence"):
            transaction.write(f"DELETE FROM {table} WHERE conversation = ?", mine)
        forget_unused(transaction, contents)
        ((turns,),) = transaction.read("SELECT count(*) FROM turn WHERE conversation = ?", mine[0])
        transaction.write("DELETE FROM turn WHERE conversation = ?", mine)
        transaction.write("DELETE FROM conversation WHERE id = ?", mine)
        erased.counts["conversations"] += 1
        erased.counts["turns"] += turns


def erase_tenant_if_empty(transaction: Transaction, tenant: int) -> None:
    """Remove a tenant of whom nothing is stored."""
    for table in ("conversation", "fact"):
        if transaction.read(f"SELECT 1 FROM {table} WHERE tenant = ? LIMIT 1", (tenant,)):
            return
    for table in ("term", "node", "content"):
        transaction.write(f"DELETE FROM {table} WHERE tenant = ?", [(tenant,)])
    transaction.write("DELETE FROM tenant WHERE id = ?", [(tenant,)])


def _take_texts(transaction: Transaction, which: str, erased: Erased) -> None:
    read = transaction.read
    erased.take(
        "texts",
        read(f"SELECT text, rest FROM content WHERE {HELD_ALONE}", (which,)),
    )
    passages = ids(row[0] for row in read(f"SELECT id FROM memory WHERE occurrence {IN}", (which,)))
    erased.take("passages", read(f"SELECT tags FROM memory WHERE id {IN}", (passages,)))
    tokens = full_text.tokens_of(read, passages)
    erased.take("full_text", tokens)
    erased.words.update(word for (row,) in tokens for word in row.split(" ") if not word.startswith(SCOPE_MARK))
    retired = read(  # their words left the table before, and may still stand in the index
        "SELECT content.text FROM retired JOIN occurrence ON occurrence.id = retired.occurrence"
        f" JOIN content ON content.id = occurrence.content WHERE retired.occurrence {IN}",
        (which,),
    )
    erased.words.update(term for (text,) in retired for term in terms(text))
    erased.take("blocks", read(f"SELECT text FROM block WHERE occurrence {IN}", (which,)))
    erased.take("facts", read(f"SELECT subject, slot, value FROM fact WHERE occurrence {IN}", (which,)))
    ((vectors,),) = read(f"SELECT count(*) FROM vector WHERE memory {IN}", (passages,))
    erased.counts["vectors"] += vectors
    items = items_said_in(read, which)
    if items != "[]":
        erased.counts["items"] += len(numbers_of(items))
        erased.texts += [text for row in words_that_go(read, items) for text in row]


def _overwrite(transaction: Transaction, which: str) -> None:
    """
    Put as many zeros in the place of every text of these occurrences (a JSON list).

    A row that grows or goes makes SQLite move its neighbours between pages, and what it moves stays behind in the free
    space of a page, `secure_delete` or not. A row of the same size is written where it stands; what is moved afterwards
    are zeros.
    """
    overwrite_passages(transaction, which)
    items = items_said_in(transaction.read, which)
    for table, columns, where, held in places_that_go(transaction.read, items) if items != "[]" else ():
        put_zeros(transaction, table, columns, where, held)
    put_zeros(transaction, "block", ("text",), "occurrence IN (SELECT value FROM numbers(?1))", which)
    words = ("subject", "slot", "value", "user_id", "scope")
    put_zeros(transaction, "fact", words, "occurrence IN (SELECT value FROM numbers(?1))", which)
    put_zeros(transaction, "content", ("text", "rest"), HELD_ALONE, which)


def overwrite_passages(transaction: Transaction, which: str) -> None:
    """The same with the words of the passages of these occurrences, whose texts may stay."""
    full_text.put_zeros(transaction, memories_of(transaction, which))
    put_zeros(transaction, "memory", ("tags",), "occurrence IN (SELECT value FROM numbers(?1))", which)


def put_zeros(transaction: Transaction, table: str, columns: Sequence[str], where: str, *args: object) -> None:
    """Put as many zeros in the place of every text of some rows; the condition is in SQL. See `_overwrite`."""
    zeros = ", ".join(f"{column} = zeros_for({column})" for column in columns)
    transaction.write(f"UPDATE {table} SET {zeros} WHERE {where}", [args])


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
    Take what was looked for from the decisions of turns.

    Args:
        turns: a condition in SQL, and its arguments: turns that may have looked for words that are erased.
    """
    found = transaction.read(
        f"SELECT id, explain FROM turn WHERE {turns} AND field(explain, 'query') IS NOT NULL", args
    )
    decisions = [(id, explain, orjson.loads(explain)) for id, explain in found]
    erased.take("queries", (query_words(decision) for *_, decision in decisions))
    bare = [(dumps(without_query(decision, ())), explain, id) for id, explain, decision in decisions]
    # spaces behind it keep its size: see `_overwrite`
    transaction.write(
        "UPDATE turn SET explain = ? WHERE id = ?",
        [(told.ljust(len(told) + _more(explain, told)), id) for told, explain, id in bare],
    )


def _more(old: str, new: str) -> int:
    """How many bytes the old text is longer."""
    return max(len(old.encode(errors="surrogatepass")) - len(new.encode(errors="surrogatepass")), 0)


def numbers_of(listed: str) -> list[int]:
    """A JSON list of numbers, as `ids` writes it."""
    return [int(number) for number in listed.strip("[]").split(",") if number]
