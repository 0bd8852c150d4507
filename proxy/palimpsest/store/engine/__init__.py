"""
The engine below the store: what one database does in its own way, behind names that all of them have.

The store asks with work functions: each is given `ask`, or a transaction, on a thread of the engine's, and may use it
until it returns. Statements are written once (`dialect.py`). SQLite (`sqlite/`) or PostgreSQL (`postgres/`) runs
them; nothing outside this folder depends on which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar

import orjson

T = TypeVar("T")

Row = tuple[Any, ...]
Ask = Callable[..., list[Row]]
"""`ask(sql, args=())` returns the rows of one SELECT; on the thread that it was given to, and while it was given."""

Statement = tuple[str, Sequence[Sequence[Any]]]
"""SQL, and the rows of arguments to run it with."""

ONCE: Sequence[Sequence[Any]] = ((),)
TRUNCATE_ATTEMPTS = 20  # to empty a log; each waits two seconds for readers

Whose = Callable[[Ask], Iterable[str]]
"""Reads names of tenants."""


def ids(values: Iterable[int]) -> str:
    """Numbers as the JSON list that `numbers` takes."""
    return orjson.dumps(list(values)).decode()


class _Asked(Exception):
    """A SELECT that was asked, and is not answered."""


Works = Callable[[], Iterable[Callable[[Ask], object]]]
"""Makes pieces of work, where it is worth while."""


def ask_ahead(ask: Ask, works: Works) -> None:
    """
    Say what will be asked: the first SELECT of each of these, none of which needs another's answer. A server is asked
    all of them at once, so that one wait is enough; elsewhere it means nothing. Asking then is as always.
    """
    ahead = getattr(ask, "ahead", None)
    if ahead is not None:
        ahead([statement for work in works() for statement in _first_asked(work)])


def drop_ahead(ask: Ask) -> None:
    """Let what was asked ahead, and not asked since, be asked anew: it would be older than other answers."""
    drop = getattr(ask, "drop", None)
    if drop is not None:
        drop()


def _first_asked(work: Callable[[Ask], object]) -> list[tuple[str, Sequence[Any]]]:
    asked: list[tuple[str, Sequence[Any]]] = []

    def note(sql: str, args: Sequence[Any] = ()) -> list[Row]:
        asked.append((sql, args))
        raise _Asked

    with suppress(_Asked):
        work(note)
    return asked


def nobody(_ask: Ask) -> Iterable[str]:
    """Names no tenant: who writes rows that it claims, or that one statement decides about, keeps nobody waiting."""
    return ()


class Transaction(Protocol):
    """Reads and writes in the order in which they are asked for; all of them or none."""

    def read(self, sql: str, args: Sequence[Any] = ()) -> list[Row]: ...

    def write(self, sql: str, rows: Sequence[Sequence[Any]] = ONCE) -> None:
        """Run one statement once for each row of arguments."""

    def write_together(self, statements: Sequence[Statement]) -> None:
        """The same of several statements none of which sees what another of them writes."""

    def new_ids(self, table: str, count: int) -> Sequence[int]:
        """So many ids for rows of a table, rising, that were never given before. See `Engine.transact`."""

    def reserve(self, counts: Mapping[str, int]) -> None:
        """Say early how many ids of which tables will be wanted: that saves waiting for them."""

    def keep_order(self, table: str) -> None:
        """Let nobody else add to this table until the end, so that its ids rise in the order of commits."""


def each(statements: Iterable[Statement]) -> Callable[[Transaction], None]:
    """Work that runs statements in order."""
    listed = list(statements)

    def work(transaction: Transaction) -> None:
        for sql, rows in listed:
            transaction.write(sql, rows)

    return work


class Files(Protocol):
    """What an engine that keeps its files itself can do for them."""

    @property
    def path(self) -> Path:
        """Of the database; others lie beside it."""

    async def truncate_log(self, attempts: int = TRUNCATE_ATTEMPTS) -> bool:
        """Leave no old page in the log; False: others read on. Raises `MemoryFault` where that cannot be tried."""

    async def vacuum(self) -> None:
        """Write the whole database anew; all other writes wait meanwhile. Raises `MemoryFault` where it cannot."""


class Engine(Protocol):
    """
    A database that is asked and written to. Every failure is a `MemoryFault` that says what to try.

    Until `open` has succeeded every read raises it, and every write tries to open first. Engines are derived from it.
    """

    writes: int  # committed
    replaced: int  # times that its files turned out to be others than those that were opened

    @property
    def place(self) -> str:
        """Where it is, for people."""

    @property
    def is_there(self) -> bool:
        """Whether there may be something to open; False: `open` makes it."""

    @property
    def files(self) -> Files | None:
        """Its files; None: a server has them, and looks after them."""

    @property
    def error(self) -> str:
        """What keeps it from working and what to try; "" while it works."""

    @property
    def is_healthy(self) -> bool: ...

    async def open(self) -> None:
        """
        Open or create it; does nothing when it is open.

        Raises:
            MemoryFault: it cannot be used now; a later attempt may succeed.
            PolicyError: it is on a network file system.
        """

    async def close(self) -> None: ...

    async def follow_file(self) -> None:
        """
        Open it anew where that has failed, or its files were replaced since, as whoever writes does by itself.
        Raises `MemoryFault`, `PolicyError`: it cannot be used now.
        """

    async def read(self, sql: str, args: Sequence[Any] = (), tenant: str = "") -> list[Row]:
        """Rows of one SELECT, as `ask`."""
        return await self.ask(lambda ask: ask(sql, args), tenant)

    async def ask(self, work: Callable[[Ask], T], tenant: str = "") -> T:
        """
        What `work` makes of several SELECTs. Cancelling interrupts it.

        Args:
            tenant: whose rows it is about; "": several tenants'. A server shows no others, whatever is asked.
        """

    def ask_at_once(self, work: Callable[[Ask], T]) -> T | None:
        """What `work` makes of a few rows by their keys, on the event loop; None: ask `ask`, which waits."""

    async def write(self, statements: Iterable[Statement]) -> None:
        """Run statements in order, in one transaction."""
        await self.transact(each(statements))

    async def transact(self, work: Callable[[Transaction], T], whose: Whose | None = None) -> T:
        """
        Run `work` in one transaction: committed when it returns, undone when it raises.

        Nobody else writes meanwhile what `work` may write, and an id that it gives is higher than all that were
        committed there before: `docs/scaling.md` says what follows from that.

        Args:
            whose: reads which tenants' rows `work` writes, and no others'; None: anybody's.

        Raises:
            MemoryFault: nothing was written. A `DataFault`: nor will it be.
        """
