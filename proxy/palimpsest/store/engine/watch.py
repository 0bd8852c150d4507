"""
The watch over a driver: its errors become faults that say what to try, and are remembered until the same goes well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from palimpsest.domain.errors import DataFault, MemoryFault

E = TypeVar("E", bound=Exception)

OPENING = "opening"


class Watch(Generic[E]):
    """One for each database."""

    def __init__(
        self,
        place: str,  # of the database, for people
        kind: type[E],  # the base of the driver's errors
        words_of: Callable[[E], str],  # what an error says
        advice_on: Callable[[E], str],  # what the operator can do about it; "": nothing
        is_of_the_data: Callable[[E], bool],  # whether the same record would fail again anywhere
        on_failure: Callable[[E], None] = lambda failure: None,  # is told of each error
    ) -> None:
        self._place = place
        self._kind = kind
        self._words_of = words_of
        self._advice_on = advice_on
        self._is_of_the_data = is_of_the_data
        self._on_failure = on_failure
        self._errors: dict[str, str] = {}

    @property
    def error(self) -> str:
        """What keeps the database from working and what to try; "" while it works."""
        return next(iter(self._errors.values()), "")

    @contextmanager
    def __call__(self, doing: str) -> Iterator[None]:
        """
        Watch one piece of work. `doing`: what it does with the database, `OPENING` or another word. Raises
        `MemoryFault`: the driver failed. A `DataFault`: it would do so again.
        """
        try:
            yield
        except MemoryFault as fault:
            if doing == OPENING:
                self._errors[doing] = str(fault)
            raise
        except self._kind as cause:
            self._on_failure(cause)
            advice = self._advice_on(cause)
            text = f"{doing} {self._place}: {self._words_of(cause)}" + (f"; {advice}" if advice else "")
            if advice:
                self._errors[doing] = text
            raise (DataFault if self._is_of_the_data(cause) else MemoryFault)(text) from cause
        else:
            self._errors.pop(doing, None)
