"""
Items: what a writer of memory keeps of a conversation, in few words, each with the places where it was said.
"""

from __future__ import annotations

from palimpsest.domain.frozen import frozen


@frozen
class SourceMessage:
    """One stored message as a writer reads it: `text` is its readable text, `created_at` Unix seconds."""

    occurrence: int
    role: str
    text: str
    created_at: float = 0.0
    name: str = ""


@frozen
class Span:
    """A stretch of a stored message: character offsets into its text, `start` < `stop`."""

    occurrence: int
    start: int
    stop: int


@frozen
class Item:
    """
    One thing to remember.

    `text` says it; `question` is what it answers, and `topic` what it is about, "" where a writer says neither.
    `sources` are never empty, and what `text` names (names, numbers, dates, identifiers) stands in them.
    """

    text: str
    sources: tuple[Span, ...]
    question: str = ""
    topic: str = ""
