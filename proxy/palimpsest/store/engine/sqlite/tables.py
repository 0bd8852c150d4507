"""The tables of a database file, made in one transaction, and what its header says of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from palimpsest.store.engine import Transaction, full_text
from palimpsest.store.version import VERSION

APPLICATION_ID = 0x50414C49  # "PALI", in the header of the file: tells our databases from others


def make_tables(transaction: Transaction) -> None:
    """Make the tables; of processes that start together, whoever comes second finds them there."""
    from palimpsest.store.schema import SCHEMA  # late: only an empty file gets tables

    if transaction.read("PRAGMA user_version") == [(0,)]:
        for statement in statements(SCHEMA + full_text.MAKE):
            transaction.write(statement)
        transaction.write(f"PRAGMA user_version = {VERSION}")
        transaction.write(f"PRAGMA application_id = {APPLICATION_ID}")


def statements(script: str) -> Iterator[str]:
    """The statements of a script, one by one: `executescript` would commit the transaction that they belong to."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending.strip()
            pending = ""
