"""
What the archivist writes: requests and answers as they were taken, and batches of what was made of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import monotonic

from proxy.domain import Ending, Heard, Record, Turn
from proxy.ports import Span, Wire
from proxy.tracing import NO_SPAN


@dataclass(frozen=True, slots=True)
class _TurnItem:
    """What is to be written of a turn."""

    turn: Turn

    @property
    def tenant(self) -> str:
        return self.turn.tenant

    @property
    def conversation(self) -> str:
        return self.turn.conversation


@dataclass(frozen=True, slots=True)
class RequestItem(_TurnItem):
    """A request that is to be written."""

    chars: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class AnswerItem(_TurnItem):
    """An answer that is to be written, as it was overheard."""

    wire: Wire
    payloads: Sequence[bytes]
    streamed: bool
    ending: Ending
    at: float
    committed: asyncio.Future[None]
    chars: int
    size_bytes: int
    span: Span = NO_SPAN  # ends with the commit


Item = RequestItem | AnswerItem
Result = Record | Heard | Exception
"""What became of an item; an exception where it cannot be read."""


@dataclass(slots=True)
class Batch:
    """What is written in one transaction."""

    records: list[tuple[RequestItem, Record]] = field(default_factory=list)
    heard: list[tuple[AnswerItem, Heard]] = field(default_factory=list)
    broken: list[tuple[Item, Exception]] = field(default_factory=list)  # what could not be read
    turns: int = 0
    chars: int = 0
    began_at: float = field(default_factory=monotonic)
    size_bytes: int = 0

    def __len__(self) -> int:
        """Requests and answers that can be written."""
        return len(self.records) + len(self.heard)

    @property
    def items(self) -> list[Item]:
        """Of what can be written."""
        return [*(item for item, _ in self.records), *(item for item, _ in self.heard)]

    @property
    def everything(self) -> list[Item]:
        """Also what could not be read."""
        return [*self.items, *(item for item, _ in self.broken)]

    def add(self, item: Item, result: Result) -> None:
        self.turns += isinstance(item, RequestItem)
        self.chars += item.chars
        self.size_bytes += item.size_bytes
        if isinstance(result, Exception):
            self.broken.append((item, result))
        elif isinstance(item, RequestItem):
            assert isinstance(result, Record)
            self.records.append((item, result))
        else:
            assert isinstance(result, Heard)
            self.heard.append((item, result))

    def end_waiting(self) -> None:
        """Let the ends of all answers go, also of those that could not be written."""
        for item in self.everything:
            if not isinstance(item, AnswerItem):
                continue
            item.span.end()
            if not item.committed.done():
                item.committed.set_result(None)

    def halves(self) -> tuple[Batch, Batch]:
        """Two batches of two or more items; requests stay in front of answers."""
        middle = len(self) // 2
        requests, answers = min(middle, len(self.records)), max(middle - len(self.records), 0)
        return (
            Batch(self.records[:requests], self.heard[:answers]),
            Batch(self.records[requests:], self.heard[answers:]),
        )
