"""
A connection to PostgreSQL as the store uses it: what values become, and transactions with the locks of their writer.

All locks are advisory and end with the transaction, so that a pooler in front of the server may hand connections on.

Whose rows a statement sees and writes, the server is told by a setting that its row-level security goes by: all, until
it is told names. A statement that lacks its condition so leads to nobody else's.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, TypeVar

import psycopg
from psycopg import RawCursor
from psycopg.adapt import AdaptersMap, Buffer, Dumper, Loader
from psycopg.pq import TransactionStatus
from psycopg.types.numeric import Int8Dumper

from palimpsest.store.engine import ONCE, Row, Statement, Transaction, Whose, nobody
from palimpsest.store.engine.postgres.dialect import NOTHING, POSTGRES

T = TypeVar("T")

Args = Sequence[Any] | Mapping[str, Any]

CONNECT_SECONDS = 5
PREPARED_STATEMENTS = 1000  # of each connection: all that are ever asked
MOST_ROWS = 32  # in one INSERT: what it costs beside its rows is little by then
MOST_ARGUMENTS = 4000  # of statements that run as one; the protocol has room for 65,535
LOCKS = 0x50414C49  # "PALI": the class of our advisory locks that are no tenant's
WHOLE = 0  # in it: the right to write, shared by those who name their tenants
NAME = re.compile(r"'[^']*'|:([a-z_]+)")
NUMBERED = re.compile(r"\$(\d+)")
INSERTED = re.compile(
    r"(INSERT INTO [^()]+\([^()]+\) VALUES )(\((?:[^()]|\([^()]*\))*\))((?: ON CONFLICT DO NOTHING)?)", re.S
)
LOCK = "SELECT pg_advisory_xact_lock(CAST(? AS INT4), CAST(? AS INT4))"
# The keys in one order, so that no two wait for each other
LOCK_TENANTS = """
SELECT lock_tenants(CAST(? AS INT4), CAST(? AS INT4), CAST(? AS BIGINT[]), CAST(? AS TEXT[]))
"""
EVERYBODY = {"palimpsest.tenants": "all"}
SEE = b"SELECT see_tenants(CAST($1 AS TEXT[]), $2 = 1)"
IDS = "SELECT CAST(? AS TEXT), nextval(CAST(? AS regclass)) FROM generate_series(1, ?)"


class _TextDumper(Dumper):
    """No text holds NUL, as no message does (`wire/storage_codec.storable`): a model's name may."""

    def dump(self, obj: str) -> bytes:
        return obj.replace("\0", " ").encode()


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


class ServerConnection(psycopg.Connection[Row]):
    """
    A connection to the server, or to a pooler in front of it.

    A pooler that gives each transaction any of its connections keeps nothing of ours: neither settings nor prepared
    statements, and whoever prepared one under a name there before may have meant another statement by it. Such a one
    is recognised: it does not tell the number of the server's process.
    """

    local: Mapping[str, str | int] = MappingProxyType({})
    """Settings that each transaction has to bring along; none where the connection is the server's own."""

    sees_all = True
    """Whether everybody's rows are seen, outside of transactions that name tenants."""

    told: tuple[bytes, list[Any]] | None = None
    """What changes that, to be sent together with the next statement."""

    known: set[str]
    """Statements that were asked here before, and so are prepared."""

    def settle(self, settings: Mapping[str, str | int]) -> None:
        """Let these settings be those of all that is done from now on."""
        self.prepare_threshold = None
        ((process,),) = self.execute("SELECT pg_backend_pid()").fetchall()
        if process != self.info.backend_pid:
            self.local = {name.removeprefix("default_"): value for name, value in settings.items()}
            return
        self.prepare_threshold = 0  # statements are constant, so each is asked again
        self.prepared_max = PREPARED_STATEMENTS
        self.execute(*_configured(settings, False), prepare=False)

    def begin(self) -> None:
        """Begin a transaction, in a pipeline."""
        # After a DROP the driver drops all prepared statements behind the next one: this must not be prepared then
        self.execute(b"BEGIN", prepare=False)
        if self.local:
            self.execute(*_configured(self.local, True))

    @contextmanager
    def reading(self, tenant: str) -> Iterator[None]:
        """A transaction for some reads where they need one. `tenant`: whose rows are seen; "": everybody's."""
        if not self.local:
            if tenant:
                self.told, self.sees_all = see([tenant], False), False
            elif not self.sees_all:
                self.told = _configured(EVERYBODY, False)
            yield
            if not tenant:
                self.sees_all = True
            return
        try:
            with self.pipeline():
                self.begin()
                if tenant:
                    self.execute(*see([tenant], True))
                yield
                self.execute(b"COMMIT")
        except BaseException:
            self.undo()
            raise

    def tell(self) -> None:
        """Say whose rows are seen, where that changes; in a pipeline."""
        told, self.told = self.told, None
        if told is not None:
            self.execute(*told)

    def undo(self) -> None:
        """End a transaction that has not come to its end."""
        if self.info.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
            with suppress(psycopg.Error):
                self.execute(b"ROLLBACK")


def connect(url: str, password: str | None, settings: Mapping[str, str | int], silent_ms: int) -> ServerConnection:
    """
    Open a connection.

    Args:
        settings: of the server, for this connection.
        silent_ms: until a server that takes nothing more is taken for gone.

    Raises:
        psycopg.Error: it cannot be opened.
    """
    connection = ServerConnection.connect(
        url,
        password=password,
        application_name="palimpsest",
        client_encoding="UTF8",
        connect_timeout=CONNECT_SECONDS,
        tcp_user_timeout=silent_ms,
        cursor_factory=RawCursor,
        autocommit=True,
    )
    adapt(connection.adapters)
    connection.known = set()
    try:
        connection.settle({**settings, **EVERYBODY})
    except BaseException:
        connection.close()
        raise
    return connection


def _configured(settings: Mapping[str, str | int], is_local: bool) -> tuple[bytes, list[str]]:
    """A statement that sets these, and its arguments."""
    calls = ", ".join(f"set_config('{name}', ${at}, {str(is_local).lower()})" for at, name in enumerate(settings, 1))
    return f"SELECT {calls}".encode(), [str(value) for value in settings.values()]


def adapt(adapters: AdaptersMap) -> None:
    """Let values be what they are on the other engine."""
    adapters.register_dumper(int, Int8Dumper)
    adapters.register_dumper(bool, _BoolDumper)
    adapters.register_dumper(str, _TextDumper)
    adapters.register_loader("numeric", _NumberLoader)


def read(connection: ServerConnection, sql: str, args: Args = ()) -> list[Row]:
    """Rows of one statement."""
    return read_all(connection, [(sql, args)])[0]


def read_all(connection: ServerConnection, statements: Sequence[tuple[str, Args]]) -> list[list[Row]]:
    """Rows of each of these statements, in one round trip."""
    if connection.told is None and len(statements) == 1 and statements[0][0] in connection.known:
        ((sql, args),) = statements
        return [connection.execute(POSTGRES[sql], listed(sql, args)).fetchall()]
    with connection.pipeline():  # to prepare a statement and to ask it would be two
        connection.tell()
        asked = [connection.execute(POSTGRES[sql], listed(sql, args)) for sql, args in statements]
    connection.known.update(sql for sql, _ in statements)
    return [cursor.fetchall() for cursor in asked]


def see(tenants: Sequence[str], is_local: bool) -> tuple[bytes, list[Any]]:
    """A statement that lets the rows of these tenants be seen and no others, and its arguments."""
    return SEE, [tenants, is_local]


class ServerTransaction:
    """
    Reads and writes of one transaction, in a pipeline.

    What is written is sent without waiting for what becomes of it; that shows when something is read, or at the end.
    """

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection
        self._writing = connection.cursor()  # for all that is written: making one takes a fifth of a statement's time
        self._asked: psycopg.Cursor[Row] | None = None  # for ids
        self._reserved: dict[str, list[int]] = {}

    def read(self, sql: str, args: Sequence[Any] = ()) -> list[Row]:
        return read(self._connection, sql, args)

    def write(self, sql: str, rows: Sequence[Sequence[Any]] = ONCE) -> None:
        """Run one statement once for each row of arguments."""
        for statement, args in _asked_of(sql, rows):
            self._writing.execute(statement, args)

    def write_together(self, statements: Sequence[Statement]) -> None:
        """As one statement: each costs our process and the server some time of its own."""
        asked = [one for sql, rows in statements for one in _asked_of(sql, rows)]
        if len(asked) == 1 or sum(len(args) for _, args in asked) > MOST_ARGUMENTS:
            for statement, args in asked:
                self._writing.execute(statement, args)
        elif asked:
            texts, listed = zip(*asked, strict=True)
            self._writing.execute(_together(texts), [arg for args in listed for arg in args])

    def reserve(self, counts: Mapping[str, int]) -> None:
        """Ask for these ids without waiting for them."""
        asked = {table: count for table, count in counts.items() if count}
        if asked:
            sql = " UNION ALL ".join([IDS] * len(asked))
            args = [arg for table, count in asked.items() for arg in (table, f"{table}_id_seq", count)]
            self._asked = self._connection.execute(POSTGRES[sql], args)

    def new_ids(self, table: str, count: int) -> Sequence[int]:
        if self._asked is not None:
            for name, id in self._asked.fetchall():
                self._reserved.setdefault(name, []).append(id)
            self._asked = None
        reserved = self._reserved.get(table, [])
        if len(reserved) < count:
            reserved = [id for _, id in self.read(IDS, (table, f"{table}_id_seq", count))]
        given, self._reserved[table] = sorted(reserved[:count]), reserved[count:]
        return given

    def keep_order(self, table: str) -> None:
        _lock(self._connection, LOCK, (LOCKS, zlib.crc32(table.encode()) >> 1 or 1))


def in_transaction(work: Callable[[Transaction], T], whose: Whose | None) -> Callable[[ServerConnection], T]:
    """All of it in one transaction, undone where it raises; alone among those who write the same tenants' rows."""

    def run(connection: ServerConnection) -> T:
        transaction = ServerTransaction(connection)
        try:
            with connection.pipeline():
                connection.begin()
                if whose is None:
                    lock_all(connection)
                else:
                    tenants = list(whose(transaction.read))
                    seen = None if whose is nobody else tenants
                    _lock(connection, LOCK_TENANTS, (LOCKS, WHOLE, sorted(_lock_keys(tenants)), seen))
                result = work(transaction)
                connection.execute(b"COMMIT")
        except BaseException:
            connection.undo()
            raise
        return result

    return run


def lock_all(connection: ServerConnection) -> None:
    """Let nobody else write anything until the end of the transaction."""
    _lock(connection, LOCK, (LOCKS, WHOLE))


def _lock(connection: ServerConnection, sql: str, args: Sequence[Any]) -> None:
    connection.execute(POSTGRES[sql], args)


def _asked_of(sql: str, rows: Sequence[Sequence[Any]]) -> Iterator[tuple[str, Sequence[Any]]]:
    """A statement for so many rows as what the server is asked, with its arguments."""
    statement = POSTGRES[sql]
    if statement == NOTHING:
        return
    if len(rows) > 1 and INSERTED.fullmatch(statement):
        for some in _in_powers_of_two(rows):
            yield _repeated(statement, len(some)), [arg for row in some for arg in row]
    else:
        for row in rows:
            yield statement, listed(sql, row)


@lru_cache(maxsize=PREPARED_STATEMENTS)
def _repeated(statement: str, count: int) -> str:
    """An INSERT of one row as one of so many."""
    parts = INSERTED.fullmatch(statement)
    assert parts is not None
    into, row, rest = parts.groups()
    width = _width(row)
    return f"{into}{', '.join(_shifted(row, number * width) for number in range(count))}{rest}"


@lru_cache(maxsize=PREPARED_STATEMENTS)
def _together(statements: Sequence[str]) -> str:
    """Several statements as one, which runs all of them on what was there before."""
    texts, width = [], 0
    for statement in statements:
        texts.append(_shifted(statement, width))
        width += _width(statement)
    *others, last = texts
    return f"WITH {', '.join(f'other{at} AS ({text})' for at, text in enumerate(others))} {last}"


def _shifted(text: str, by: int) -> str:
    return NUMBERED.sub(lambda number: f"${int(number[1]) + by}", text)


@lru_cache(maxsize=PREPARED_STATEMENTS)
def _width(text: str) -> int:
    """How many arguments it has."""
    return len(set(NUMBERED.findall(text)))


def _in_powers_of_two(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    """All of them in order, in few different sizes: each is a statement of its own to the server."""
    at = 0
    while at < len(rows):
        size = min(1 << (len(rows) - at).bit_length() - 1, MOST_ROWS)
        yield rows[at : at + size]
        at += size


def _lock_keys(tenants: Iterable[str]) -> set[int]:
    digests = (blake2b(name.encode(errors="surrogatepass"), digest_size=8).digest() for name in tenants)
    return {int.from_bytes(digest, "big", signed=True) for digest in digests}


def listed(sql: str, args: Args) -> Sequence[Any]:
    """Arguments in the order in which the dialect numbers them; it may leave out the last ones."""
    if not isinstance(args, Mapping):
        return args[: _width(POSTGRES[sql])]
    return [args[name] for name in dict.fromkeys(name for name in NAME.findall(sql) if name)]
