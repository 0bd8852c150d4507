"""Rows that only benchmarks ask for: a store made larger by its own (`bench growth`), and all its vectors."""

from __future__ import annotations

from palimpsest.store.engine import Ask, Transaction

# Every original row once again, its ids moved by an offset. Texts are stored once either way.
COPY_ROWS = (
    "INSERT INTO conversation(id, tenant, public, role, parent, user_id, scope, created_at)"
    " SELECT id + ?1, tenant, public || '/' || ?1, role, parent, user_id, scope, created_at"
    " FROM conversation WHERE id < ?2",
    "INSERT INTO occurrence SELECT id + ?1, tenant, conversation + ?1, turn, position, content, abs(random()), opening,"
    " flags, role, created_at FROM occurrence WHERE id < ?2",
    "INSERT INTO memory SELECT id + ?1, tenant, conversation + ?1, occurrence + ?1, start, stop, tags, kind"
    " FROM memory WHERE id < ?2",
    "INSERT INTO memory_text(rowid, tokens) SELECT rowid + ?1, tokens FROM memory_text WHERE rowid < ?2",
)


def id_offset(ask: Ask) -> int:
    """The number that ids move by from copy to copy: above every id that was given so far."""
    return int(ask("SELECT max(seq) + 1 FROM last_id")[0][0])


def copy_rows(transaction: Transaction, copy: int, id_offset: int) -> None:
    """
    Insert copy number `copy` of all original rows, with ids moved by `copy * id_offset`.

    Args:
        copy: from 1.
        id_offset: as of before the first copy.
    """
    for sql in COPY_ROWS:
        transaction.write(sql, [(copy * id_offset, id_offset)])


def multiply_term_counts(transaction: Transaction, copies: int) -> None:
    """Multiply by `copies` how many passages are counted as holding each term."""
    transaction.write("UPDATE term SET memories = memories * ?", [(copies,)])


def passages_without_vector(ask: Ask, limit: int) -> list[int]:
    """Ids of the next passages behind the last one that has a vector."""
    rows = ask(
        "SELECT id FROM memory WHERE id > (SELECT coalesce(max(memory), 0) FROM vector) ORDER BY id LIMIT ?", (limit,)
    )
    return [id for (id,) in rows]


def vectors_of_tenant(ask: Ask, tenant: int) -> list[bytes]:
    """Every vector, of any model, in the order of the passages."""
    rows = ask(
        "SELECT vector.own FROM memory JOIN vector ON vector.memory = memory.id WHERE memory.tenant = ?"
        " ORDER BY memory.id",
        (tenant,),
    )
    return [own for (own,) in rows]
