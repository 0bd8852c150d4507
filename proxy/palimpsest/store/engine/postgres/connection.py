"""
A connection to PostgreSQL as the store uses it: what values become, and transactions with the locks of their writer.

All locks are advisory and end with the transaction, so that a pooler in front of the server may hand connections on.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, TypeVar

import psycopg
from psycopg import RawCursor
from psycopg.adapt import AdaptersMap, Buffer, Dumper, Loader
from psycopg.types.numeric import Int8Dumper

from palimpsest.store.engine import ONCE, Row, Transaction, Whose
from palimpsest.store.engine.dialect import POSTGRES

T = TypeVar("T")
Connection = psycopg.Connection[Row]

CONNECT_SECONDS = 5
PREPARED_STATEMENTS = 600  # of each connection: all that are ever asked
LOCKS = 0x50414C49  # "PALI": the class of our advisory locks that are no tenant's
WHOLE = 0  # in it: the right to write, shared by those who name their tenants
NAME = re.compile(r"'[^']*'|:([a-z_]+)")


class _BoolDumper(Dumper):
    """Columns of both engines hold 0 and 1."""

    oid = Int8Dumper.oid

    def dump(self, obj: bool) -> bytes:
        return b"1" if obj else b"0"


class _NumberLoader(Loader):
    """Sums of whole numbers are `numeric` here."""

    def load(self, data: Buffer) -> int | float:
        text = bytes(data)
        return float(text) if b"." in text else int(text)


def connect(url: str, password: str | None, settings: Mapping[str, str | int], silent_ms: int) -> Connection:
    """
    Open a connection.

    Args:
        settings: of the server, for this connection.
        silent_ms: until a server that takes nothing more is taken for gone.

    Raises:
        psycopg.Error: it cannot be opened.
    """
    connection: Connection = psycopg.connect(
        url,
        password=password,
        options=" ".join(f"-c {name}={value}" for name, value in settings.items()),
        application_name="palimpsest",
        client_encoding="UTF8",
        connect_timeout=CONNECT_SECONDS,
        tcp_user_timeout=silent_ms,
        cursor_factory=RawCursor,
        autocommit=True,
    )
    connection.prepared_max = PREPARED_STATEMENTS
    adapt(connection.adapters)
    return connection


def adapt(adapters: AdaptersMap) -> None:
    """Let values be what they are on the other engine."""
    adapters.register_dumper(int, Int8Dumper)
    adapters.register_dumper(bool, _BoolDumper)
    adapters.register_loader("numeric", _NumberLoader)


def read(connection: Connection, sql: str, args: Sequence[Any] | Mapping[str, Any] = ()) -> list[Row]:
    """Rows of one statement."""
    return connection.execute(POSTGRES[sql], _listed(sql, args)).fetchall()


class ServerTransaction:
    """Reads and writes of one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def read(self, sql: str, args: Sequence[Any] = ()) -> list[Row]:
        return read(self._connection, sql, args)

    def write(self, sql: str, rows: Sequence[Sequence[Any]] = ONCE) -> None:
        """Run one statement once for each row of arguments."""
        if len(rows) == 1:
            self._connection.execute(POSTGRES[sql], _listed(sql, rows[0]))
        elif rows:
            with self._connection.cursor() as cursor:
                cursor.executemany(POSTGRES[sql], rows)

    def new_ids(self, table: str, count: int) -> Sequence[int]:
        given = read(
            self._connection,
            "SELECT nextval(CAST(? AS regclass)) FROM generate_series(1, ?)",
            (f"{table}_id_seq", count),
        )
        return sorted(id for (id,) in given)

    def keep_order(self, table: str) -> None:
        _lock(self._connection, "SELECT pg_advisory_xact_lock(?, ?)", (LOCKS, zlib.crc32(table.encode()) >> 1 or 1))


def in_transaction(work: Callable[[Transaction], T], whose: Whose | None) -> Callable[[Connection], T]:
    """All of it in one transaction, undone where it raises; alone among those who write the same tenants' rows."""

    def run(connection: Connection) -> T:
        transaction = ServerTransaction(connection)
        with connection.transaction():
            if whose is None:
                lock_all(connection)
            else:
                tenants = whose(transaction.read)
                _lock(connection, "SELECT pg_advisory_xact_lock_shared(?, ?)", (LOCKS, WHOLE))
                for key in sorted(_keys(tenants)):  # in one order, so that no two wait for each other
                    _lock(connection, "SELECT pg_advisory_xact_lock(?)", (key,))
            return work(transaction)

    return run


def lock_all(connection: Connection) -> None:
    """Let nobody else write anything until the end of the transaction."""
    _lock(connection, "SELECT pg_advisory_xact_lock(?, ?)", (LOCKS, WHOLE))


def _lock(connection: Connection, sql: str, args: Sequence[int]) -> None:
    casts = sql.replace("?, ?", "CAST(? AS INT4), CAST(? AS INT4)")
    read(connection, casts, args)


def _keys(tenants: Iterable[str]) -> set[int]:
    digests = (blake2b(name.encode(errors="surrogatepass"), digest_size=8).digest() for name in tenants)
    return {int.from_bytes(digest, "big", signed=True) for digest in digests}


def _listed(sql: str, args: Sequence[Any] | Mapping[str, Any]) -> Sequence[Any]:
    """Arguments in the order in which the dialect numbers them."""
    if not isinstance(args, Mapping):
        return args
    return [args[name] for name in dict.fromkeys(name for name in NAME.findall(sql) if name)]
