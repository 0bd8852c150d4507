"""A batch of requests and answers, as they are written in one transaction."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic

from palimpsest.domain import AnswerRecord, Record
from palimpsest.memory.recording.write_batch import AnswerItem, Item, RequestItem

Result = Record | AnswerRecord | Exception
"""What became of reading an item; an exception where it cannot be read."""


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
