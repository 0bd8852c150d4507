"""
What is written of turns: requests and answers as they were taken, batches of what was made of them, what became of
each, and the protocol of whoever writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from palimpsest.domain import AnswerRecord, Cost, Ending, Record, Turn, frozen
from palimpsest.domain.ports import Wire

if TYPE_CHECKING:  # the archive process starts a third faster without it
    from palimpsest.settings.policy import Policy

STUCK_SECONDS = 5.0  # a text or a transaction that takes longer is said: the largest ones take less
GATHER_SECONDS = 0.025  # a request waits so long for a fast answer, to be written with it, in half the time


@frozen
class _TurnItem:
    """What is to be written of a turn."""

    number: int  # in the order in which it was taken
    turn: Turn
    chars: int
    size_bytes: int  # of memory

    @property
    def tenant(self) -> str:
        return self.turn.tenant

    @property
    def conversation(self) -> str:
        return self.turn.conversation


@frozen
class RequestItem(_TurnItem):
    """A request that is to be written."""


@frozen
class AnswerItem(_TurnItem):
    """An answer that is to be written, as it was overheard."""

    wire: Wire
    payloads: Sequence[bytes]
    streamed: bool
    ending: Ending
    at: float


Item = RequestItem | AnswerItem
Result = Record | AnswerRecord | Exception
"""What became of reading an item; an exception where it cannot be read."""


@frozen
class Outcome:
    """An item that is finished: it is on the disk, or never will be."""

    number: int
    is_lost: bool = False
    prompt_tokens: int = 0  # that the upstream counted, where it said so; 0: it did not
    cost: Cost | None = None  # of an answer that was written now


@dataclass(slots=True)
class Batch:
    """What is written in one transaction."""

    records: list[tuple[RequestItem, Record]] = field(default_factory=list)
    heard: list[tuple[AnswerItem, AnswerRecord]] = field(default_factory=list)
    broken: list[tuple[Item, Exception]] = field(default_factory=list)  # what could not be read
    chars: int = 0
    began_at: float = field(default_factory=monotonic)

    def __len__(self) -> int:
        """Requests and answers that can be written."""
        return len(self.records) + len(self.heard)

    @property
    def items(self) -> list[Item]:
        """The items that can be written."""
        return [*(item for item, _ in self.records), *(item for item, _ in self.heard)]

    @property
    def everything(self) -> list[Item]:
        """All items, including those that could not be read."""
        return [*self.items, *(item for item, _ in self.broken)]

    def add(self, item: Item, result: Result) -> None:
        """Add an item with what was read of it; an exception puts it among the broken ones."""
        self.chars += item.chars
        if isinstance(result, Exception):
            self.broken.append((item, result))
        elif isinstance(item, RequestItem):
            assert isinstance(result, Record)
            self.records.append((item, result))
        else:
            assert isinstance(result, AnswerRecord)
            self.heard.append((item, result))

    def halves(self) -> tuple[Batch, Batch]:
        """Two batches of two or more items; requests stay in front of answers."""
        middle = len(self) // 2
        requests, answers = min(middle, len(self.records)), max(middle - len(self.records), 0)
        return (
            Batch(self.records[:requests], self.heard[:answers]),
            Batch(self.records[requests:], self.heard[answers:]),
        )


Report = Callable[[Sequence[Outcome]], None]
"""Told what has been done with, after each transaction."""


@frozen
class WriterState:
    """How a writer is at one moment."""

    is_failing: bool = False  # nothing can be written now, or much too slowly
    held_up: frozenset[str] = frozenset()  # tenants, one of whose texts takes too long to read
    troubles: tuple[str, ...] = ()  # what keeps turns from the disk, and what was kept from it; names nobody


class Writer(Protocol):
    """A writer of items, in order within each conversation."""

    @property
    def state(self) -> WriterState: ...

    def put(self, item: Item) -> None:
        """Take an item; returns at once."""

    def apply(self, policy: Policy) -> None:
        """Apply another policy to items that are put from now on."""

    async def write(self, report: Report) -> None:
        """Write what waits; forever."""

    def close(self) -> None:
        """Begin nothing new."""
