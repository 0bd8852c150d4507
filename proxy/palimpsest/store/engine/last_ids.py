"""The last id that was given in each table: none is given twice, also after rows were removed, or copied."""

from __future__ import annotations

from palimpsest.store.engine import Ask, Transaction
from palimpsest.store.engine.postgres.dialect import POSTGRES

LAST = "SELECT name, seq FROM last_id WHERE seq > 0 ORDER BY name"
FORGET = "DELETE FROM last_id WHERE name = ?"
SET = "INSERT INTO last_id(name, seq) VALUES (?1, ?2)"

POSTGRES |= {
    FORGET: "SELECT $1::text",
    SET: "SELECT setval(format('%I', sequencename)::regclass, $2) FROM pg_sequences"
    " WHERE schemaname = current_schema() AND regexp_replace(sequencename, '_[a-z]+_seq$', '') = $1",
}


def last_ids(ask: Ask) -> dict[str, int]:
    """By table, where one was ever given."""
    return {name: int(last) for name, last in ask(LAST)}


def set_last_ids(transaction: Transaction, last: dict[str, int]) -> None:
    """Give ids behind these from now on."""
    for row in last.items():
        transaction.write(FORGET, [row[:1]])
        transaction.write(SET, [row])
