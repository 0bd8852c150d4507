"""The tables on a server, made in one transaction by whoever comes first."""

from __future__ import annotations

import re
from pathlib import Path

from palimpsest.domain.errors import MemoryFault
from palimpsest.store.engine import full_text
from palimpsest.store.engine.dialect import NOTHING, POSTGRES
from palimpsest.store.engine.postgres.connection import ServerConnection, lock_all, read
from palimpsest.store.engine.sqlite.tables import statements
from palimpsest.store.schema import SCHEMA, VERSION, refusal_of

FOLDER = Path(__file__).parent
OTHERS = "SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tablename = 'tenant'"
IS_OURS = "SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tablename = 'palimpsest'"

POSTGRES |= {
    full_text.CLEAR[0][0]: "TRUNCATE memory_text, posting, posted",
    full_text.CLEAR[1][0]: NOTHING,  # the index is made with the tables
    full_text.COUNT: NOTHING,  # postings are counted
    full_text.COUNTED: "SELECT term, memories FROM counted($1, $2)",
    full_text.ZEROS: NOTHING,  # a row that is changed is another row: nothing is written over
    full_text.CHANGES: "SELECT 0",
    full_text.MERGE: NOTHING,
    full_text.OPTIMISE: "SELECT post_all()",
}
"""Of the full-text index, what PostgreSQL does in a way of its own."""

OWN = re.compile(r"CREATE TABLE term\b")  # a view, see full_text.sql


def script() -> list[str]:
    """Statements that make everything. Text is compared byte by byte, as on SQLite, whatever the server's locale is."""
    tables = [
        re.sub(r"\bTEXT\b", 'TEXT COLLATE "C"', POSTGRES[sql]) for sql in statements(SCHEMA) if not OWN.match(sql)
    ]
    others = [(FOLDER / name).read_text() for name in ("functions.sql", "full_text.sql")]
    return [others[0], *tables, others[1]]


def make_tables(connection: ServerConnection, doing: str) -> None:
    """
    Make the tables where there are none.

    Args:
        doing: what for, as an error begins.

    Raises:
        MemoryFault: the database is another program's, of another version, or has another encoding.
        psycopg.Error: it cannot be done.
    """
    with connection.transaction():
        if not read(connection, IS_OURS):
            lock_all(connection)  # of processes that start together, whoever comes second finds them there
        if not read(connection, IS_OURS):
            ((encoding,),) = read(connection, "SHOW server_encoding")
            if encoding != "UTF8":
                raise MemoryFault(f"{doing}: its encoding is {encoding}: create one with ENCODING 'UTF8'")
            if read(connection, OTHERS):
                raise MemoryFault(f"{doing}: it belongs to another program: choose another database")
            for statement in script():
                connection.execute(statement.encode(), prepare=False)
            connection.execute("CREATE TABLE palimpsest (version BIGINT NOT NULL)", prepare=False)
            connection.execute("INSERT INTO palimpsest VALUES ($1)", (VERSION,), prepare=False)
        ((version,),) = read(connection, "SELECT version FROM palimpsest")
        if refusal := refusal_of(version):
            raise MemoryFault(f"{doing}: {refusal}")
