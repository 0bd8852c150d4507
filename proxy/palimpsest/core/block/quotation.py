"""
Quotation: which passages of a block the answer to it uses, told from words that both have and the question has not.
"""

from __future__ import annotations

import re

from palimpsest.core.archive.chunking import identifiers
from palimpsest.wire.frame import passages_of

RUN_WORDS = 5  # that stand together in passage and answer: four are met by chance in one pair of messages of thirty
NUMBER_DIGITS = 3  # a shorter number means many things
ANSWER_CHARS = 100_000  # of a longer answer the beginning is looked at

_WORD = re.compile(r"[^\W_]+")


def count_quoted(block: str, answer: str, question: str = "") -> tuple[int, int]:
    """
    Count the passages of a block that an answer quotes.

    A passage is quoted where the answer repeats five words of it in a row, or an identifier or a number of three digits
    or more, that the question does not have.

    Args:
        block: as it was shown, frame included.
        question: what was said beside the block in the same request.

    Returns:
        Passages of the block that are quoted, and all of them.
    """
    passages = passages_of(block)
    said = _marks(answer[:ANSWER_CHARS]) - _marks(question[:ANSWER_CHARS])
    return sum(not said.isdisjoint(_marks(passage)) for passage in passages), len(passages)


def _marks(text: str) -> set[tuple[str, ...]]:
    """What a text is known by: its runs of words, and what names one thing exactly."""
    words = _WORD.findall(text.lower())
    marks = {tuple(words[at : at + RUN_WORDS]) for at in range(len(words) - RUN_WORDS + 1)}
    marks.update((word,) for word in words if word.isdecimal() and len(word) >= NUMBER_DIGITS)
    marks.update((name,) for name in identifiers(text))
    return marks
