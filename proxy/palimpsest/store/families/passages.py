"""Passages as rows: what finds messages, by meaning and by words, and how it goes with them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from palimpsest.core.archive.chunking import SCOPE_MARK, scope_terms, terms
from palimpsest.domain import Passage, frozen
from palimpsest.store.engine import Ask, Transaction, full_text, ids
from palimpsest.store.families.family import OF_MESSAGES, Erased, Family, put_zeros

THESE = "IN (SELECT value FROM numbers(?))"


@frozen
class OccurrencePassages:
    """The passages of one occurrence."""

    occurrence: int
    tenant: int
    conversation: int
    passages: Sequence[Passage]


def write_passages(
    transaction: Transaction, findable: Sequence[OccurrencePassages], memories: Sequence[int] = ()
) -> None:
    """
    Memories, their full-text rows, and how many of a tenant's memories hold each term. Call it once in a transaction:
    most terms stand in several passages. `memories`: their ids; (): new ones.
    """
    rows = [(f, passage) for f in findable for passage in f.passages]
    if not rows:
        return
    memories = memories or transaction.new_ids("memory", len(rows))
    numbered = [*zip(memories, rows, strict=True)]
    transaction.write_together(
        [
            (
                "INSERT INTO memory(id, tenant, conversation, occurrence, start, stop, tags, kind)"
                " VALUES (?,?,?,?,?,?,?,?)",
                [
                    (id, f.tenant, f.conversation, f.occurrence, p.start, p.stop, " ".join(p.tags), p.kind)
                    for id, (f, p) in numbered
                ],
            ),
            (
                full_text.ADD,
                [(id, " ".join((*p.terms, *scope_terms(f.tenant, f.conversation)))) for id, (f, p) in numbered],
            ),
            ("INSERT INTO unindexed(tenant, memory) VALUES (?, ?)", [(f.tenant, id) for id, (f, _) in numbered]),
        ]
    )
    counted: dict[int, Counter[str]] = defaultdict(Counter)
    for f, passage in rows:
        counted[f.tenant].update(set(passage.terms))
    full_text.count(transaction, counted)


def remove_passages(transaction: Transaction, tenant: int, which: str) -> None:
    """Remove the passages of these occurrences (a JSON list) of a tenant, and count their words no more."""
    memories = _passages_of(transaction.read, which)
    _forget_terms(transaction, tenant, memories)
    full_text.put_zeros(transaction, memories)
    put_zeros(transaction, "memory", ("tags",), OF_MESSAGES, which)
    transaction.keep_order("forgotten")
    transaction.write("INSERT INTO forgotten(memory) SELECT value FROM numbers(?)", [(memories,)])
    full_text.remove(transaction, memories)
    for table, key in (("unindexed", "memory"), ("vector", "memory"), ("memory", "id")):
        transaction.write(f"DELETE FROM {table} WHERE {key} {THESE}", [(memories,)])


def _take(ask: Ask, which: str, erased: Erased) -> None:
    passages = _passages_of(ask, which)
    erased.take("passages", ask(f"SELECT tags FROM memory WHERE id {THESE}", (passages,)))
    tokens = full_text.tokens_of(ask, passages)
    erased.take("full_text", tokens)
    erased.words.update(word for (row,) in tokens for word in row.split(" ") if not word.startswith(SCOPE_MARK))
    retired = ask(  # their words left the table before, and may still stand in the index
        "SELECT content.text FROM retired JOIN occurrence ON occurrence.id = retired.occurrence"
        f" JOIN content ON content.id = occurrence.content WHERE retired.occurrence {THESE}",
        (which,),
    )
    erased.words.update(term for (text,) in retired for term in terms(text))
    ((vectors,),) = ask(f"SELECT count(*) FROM vector WHERE memory {THESE}", (passages,))
    erased.counts["vectors"] += vectors


def _forget_terms(transaction: Transaction, tenant: int, memories: str) -> None:
    texts = full_text.tokens_of(transaction.read, memories)
    counted = Counter(term for (tokens,) in texts for term in set(tokens.split(" ")) if not term.startswith(SCOPE_MARK))
    transaction.write(
        "UPDATE term SET memories = memories - ? WHERE tenant = ? AND term = ?",
        [(count, tenant, term) for term, count in counted.items()],
    )
    transaction.write(
        "DELETE FROM term WHERE tenant = ? AND term = ? AND memories <= 0", [(tenant, term) for term in counted]
    )


def _passages_of(ask: Ask, which: str) -> str:
    """Passages of these occurrences, both as JSON lists."""
    sql = "SELECT memory.id FROM numbers(?) AS gone JOIN memory ON memory.occurrence = gone.value"
    return ids(row[0] for row in ask(sql, (which,)))


PASSAGES = Family(
    words={"memory": ("tags",), "memory_text": ("tokens",), "term": ("term",)},  # the index itself is read as bytes
    numbers=frozenset({"vector", "unindexed", "forgotten", "reminder"}),
    take=_take,
    remove=remove_passages,
)
