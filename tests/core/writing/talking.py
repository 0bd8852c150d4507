"""Segments of talk for tests of writers."""

from collections.abc import Sequence

from palimpsest.core.writing.information import TermStatistics
from palimpsest.domain import SourceMessage


def segment(*lines: str) -> tuple[SourceMessage, ...]:
    """Messages of "role: text", whose occurrences count from 100."""
    told = (line.partition(": ") for line in lines)
    return tuple(SourceMessage(100 + at, role, text, 1000.0 + at) for at, (role, _, text) in enumerate(told))


def statistics(messages: Sequence[SourceMessage]) -> TermStatistics:
    return TermStatistics().with_texts(said.text for said in messages)


def count(text: str) -> int:
    """Words and signs, about as tokens are counted."""
    return len(text.split())


def quoted(messages: Sequence[SourceMessage], occurrence: int, start: int, stop: int) -> str:
    (said,) = [message for message in messages if message.occurrence == occurrence]
    return said.text[start:stop]
