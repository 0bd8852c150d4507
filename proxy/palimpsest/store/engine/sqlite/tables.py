"""
The tables of a database file, made in one transaction, and what its header says of them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from palimpsest.domain.errors import MemoryFault
from palimpsest.store.engine import Ask, Transaction, full_text
from palimpsest.store.schema import SCHEMA, VERSION, refusal_of

APPLICATION_ID = 0x50414C49  # "PALI", in the header of the file: tells our databases from others


def make_tables(transaction: Transaction) -> None:
    """Make the tables; of processes that start together, whoever comes second finds them there."""
    if transaction.read("PRAGMA user_version") == [(0,)]:
        for statement in statements(SCHEMA + full_text.MAKE):
            transaction.write(statement)
        transaction.write(f"PRAGMA user_version = {VERSION}")
        transaction.write(f"PRAGMA application_id = {APPLICATION_ID}")


def known_version(ask: Ask, doing: str) -> int:
    """
    The version of a database of ours, which is `VERSION`.

    Raises:
        MemoryFault: it is another program's, or of another version; it begins with `doing`.
    """
    ((application,),) = ask("PRAGMA application_id")
    ((version,),) = ask("PRAGMA user_version")
    if application != APPLICATION_ID:
        raise MemoryFault(f"{doing}: it is not a Palimpsest database")
    if refusal := refusal_of(version):
        raise MemoryFault(f"{doing}: {refusal}")
    return int(version)


def statements(script: str) -> Iterator[str]:
    """The statements of a script, one by one: `executescript` would commit the transaction that they belong to."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending.strip()
            pending = ""
