"""
Repetition: a store that is made larger by its own rows, for measurements (`palimpsest bench growth`).
"""

from __future__ import annotations

from palimpsest.store.engine import Ask, Transaction

# Every row of the first telling once again, its ids moved on. Texts are stored once either way.
AGAIN = (
    "INSERT INTO conversation(id, tenant, public, role, parent, user_id, scope, created_at)"
    " SELECT id + ?1, tenant, public || '/' || ?1, role, parent, user_id, scope, created_at"
    " FROM conversation WHERE id < ?2",
    "INSERT INTO occurrence SELECT id + ?1, conversation + ?1, turn, position, content, abs(random()), opening, flags,"
    " role, created_at FROM occurrence WHERE id < ?2",
    "INSERT INTO memory SELECT id + ?1, tenant, conversation + ?1, occurrence + ?1, start, stop, tags, kind"
    " FROM memory WHERE id < ?2",
    "INSERT INTO memory_text(rowid, tokens) SELECT rowid + ?1, tokens FROM memory_text WHERE rowid < ?2",
)


def room_of_ids(ask: Ask) -> int:
    """What ids are moved on by for each repetition: more than any that was given."""
    return int(ask("SELECT max(seq) + 1 FROM last_id")[0][0])


def repeat(transaction: Transaction, number: int, room: int) -> None:
    """
    Say once more all that was said first.

    Args:
        number: of the repetition, from 1.
        room: `room_of_ids` before the first one.
    """
    for sql in AGAIN:
        transaction.write(sql, [(number * room, room)])


def count_terms_again(transaction: Transaction, tellings: int) -> None:
    """Let each term be held by so many times as many passages."""
    transaction.write("UPDATE term SET memories = memories * ?", [(tellings,)])


def passages_without_vector(ask: Ask, limit: int) -> list[int]:
    """Ids of the next passages behind the last one that has a vector."""
    rows = ask(
        "SELECT id FROM memory WHERE id > (SELECT coalesce(max(memory), 0) FROM vector) ORDER BY id LIMIT ?", (limit,)
    )
    return [id for (id,) in rows]
