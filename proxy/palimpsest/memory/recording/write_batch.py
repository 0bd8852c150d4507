"""
What is written of turns: requests and answers as they were taken, what became of each, and the protocol of whoever
writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from palimpsest.domain import Cost, Ending, Turn, frozen
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


@frozen
class Outcome:
    """An item that is finished: it is on the disk, or never will be."""

    number: int
    is_lost: bool = False
    prompt_tokens: int = 0  # that the upstream counted, where it said so; 0: it did not
    cost: Cost | None = None  # of an answer that was written now


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
