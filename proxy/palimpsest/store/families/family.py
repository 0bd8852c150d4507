"""
A family of tables: what is derived from messages and holds their words, and how it goes with them.

Whoever adds such tables describes them by a `Family` and lists it in `store/families/registry.py`: erasure, retention,
the removal of a request that was refused and the search of the disk walk that list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from palimpsest.domain.frozen import frozen
from palimpsest.store.engine import Ask, Transaction

OF_MESSAGES = "occurrence IN (SELECT value FROM numbers(?1))"  # rows of one of these


@dataclass(slots=True)
class Erased:
    """What was taken away so far: rows by store, and every text, for whoever looks whether it is really gone."""

    counts: Counter[str] = field(default_factory=Counter)
    texts: list[str] = field(default_factory=list)
    words: set[str] = field(default_factory=set)  # of the full-text index

    def take(self, name: str, rows: Iterable[tuple[str, ...]]) -> None:
        for row in rows:
            self.counts[name] += 1
            self.texts += row


def keep_all(transaction: Transaction, conversation: int, erased: Erased) -> None:
    """Remove nothing: what a family has of a conversation stands in its messages."""


@frozen
class Family:
    """
    The tables of a family, and its functions. Messages come as a JSON list of occurrences, for `numbers`.

    Attributes:
        words: by table, the columns that hold words.
        numbers: tables with nothing but numbers that follow from words.
        take: reads the words that go with these messages.
        remove: removes what follows from these messages of a tenant; zeros first, see `put_zeros`.
        retire: takes what follows from these messages out of use, or back into it; passages are cut anew instead.
        remove_conversation: removes what is left of a conversation (its row) whose messages are gone.
    """

    words: Mapping[str, tuple[str, ...]]
    numbers: frozenset[str]
    take: Callable[[Ask, str, Erased], None]
    remove: Callable[[Transaction, int, str], None]
    retire: Callable[[Transaction, str, bool], None] = lambda _transaction, _which, _is_retired: None
    remove_conversation: Callable[[Transaction, int, Erased], None] = keep_all


def put_zeros(transaction: Transaction, table: str, columns: Sequence[str], where: str, *args: object) -> None:
    """
    Put as many zeros in the place of every text of some rows; the condition is in SQL.

    A row that grows or goes makes SQLite move its neighbours between pages, and what it moves stays behind in the free
    space of a page, `secure_delete` or not. A row of the same size is written where it stands; what is moved afterwards
    are zeros.
    """
    zeros = ", ".join(f"{column} = zeros_for({column})" for column in columns)
    transaction.write(f"UPDATE {table} SET {zeros} WHERE {where}", [args])
