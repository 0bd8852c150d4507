"""
A sequence that shares what stands in front with the one that it was made from.

A conversation of a thousand messages grows by two at a time. To copy a thousand references touches as many objects,
most of which are in no cache of the processor any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar, overload

T = TypeVar("T")


class PersistentList(Sequence[T]):
    """An unchanging sequence; equal to any other of the same items. `then` makes a longer one of it."""

    __slots__ = ("_all", "_claims", "_count")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._all = list(items)  # only ever extended: behind `_count` stand items of longer ones
        self._count = len(self._all)
        self._claims = [True]  # whoever takes it may extend the list, on whatever thread: the others copy

    def __repr__(self) -> str:
        return repr(tuple(self))

    @classmethod
    def of(cls, items: Sequence[T]) -> PersistentList[T]:
        """The sequence as a persistent list: itself where it is one, else a copy."""
        return items if isinstance(items, PersistentList) else cls(items)

    def then(self, kept: int, further: Sequence[T]) -> PersistentList[T]:
        """The first items of this list, at most all, with others behind them."""
        grown: PersistentList[T] = PersistentList.__new__(PersistentList)
        if 0 < kept == self._count and self._take_claim():
            grown._all = self._all
            self._all.extend(further)
        else:
            grown._all = [*self._all[:kept], *further]
        grown._count, grown._claims = kept + len(further), [True]
        return grown

    def shared(self, other: Sequence[T]) -> int:
        """How many first items are known to be the very same ones in both; there may be more."""
        return min(self._count, other._count) if isinstance(other, PersistentList) and other._all is self._all else 0

    def _take_claim(self) -> bool:
        """Take the only claim to append; False: it is taken."""
        try:
            return self._claims.pop()
        except IndexError:
            return False

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[T]:
        return islice(self._all, self._count)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PersistentList) and other._all is self._all:
            return other._count == self._count
        return isinstance(other, Sequence) and len(other) == self._count and list(other) == self._all[: self._count]

    @overload
    def __getitem__(self, at: int) -> T: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[T, ...]: ...

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            start, stop, step = at.indices(self._count)
            return tuple(self._all[start:stop]) if step == 1 else tuple(self)[at]
        if at < 0:
            at += self._count
        if not 0 <= at < self._count:
            raise IndexError(at)
        return self._all[at]
