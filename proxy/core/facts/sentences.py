"""
Sentences of a user's own prose: without what is quoted, fenced, pasted or somebody else's line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MOST_PROSE_CHARS = 1_500  # of a message, code apart; a longer one is mostly pasted, and speaks of others
MOST_TEXT_CHARS = 20_000  # of a message, code and all
MOST_SENTENCE_CHARS = 400  # a longer one is no statement, and bounds the time of every rule

_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_FOREIGN_LINE = re.compile(r"^[ \t]*(?:>|\||#).*$", re.MULTILINE)  # quoted mail, a table, a heading or comment
_QUOTED = re.compile(
    r"\"[^\"\n]{1,400}\"|“[^”\n]{1,400}”|«[^»\n]{1,400}»|(?<![\w])'[^'\n]{1,200}'(?!\w)|`[^`\n]{1,200}`"
)
_SENTENCE = re.compile(r"[^\n.!?;]+(?:[.!?;]+(?=[^\s\"”')*])[^\n.!?;]*)*(?P<end>[.!?;]*)")
_ABBREVIATED = re.compile(r"\b(?:Dr|Mr|Mrs|Ms|Prof|St|Mt|vs|e\.g|i\.e|etc|approx|No|Inc|Ltd|Jr|Sr)$")
_SPEAKER = re.compile(r"\s*[*_]{0,2}(?P<who>[A-Za-z][\w.-]*(?: [A-Z][\w.-]*){0,2})[*_]{0,2}:\s")
# Of a line that stays the user's own words.
_OWN_LABELS = frozenset(
    [
        *("also", "btw", "fyi", "note", "ps", "reminder", "remember", "correction", "update", "important", "context"),
        *("background", "ok", "okay", "so", "hi", "hello", "hey", "anyway", "decision", "requirement", "preference"),
    ]
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence: text[start:stop] of the message, its apostrophes straight."""

    text: str
    start: int
    is_question: bool
    quoted: tuple[tuple[int, int], ...]  # characters of the sentence

    def is_quoted(self, at: int) -> bool:
        return any(first <= at < last for first, last in self.quoted)


def sentences(text: str) -> Iterator[Sentence]:
    """The sentences that users say in their own name. Offsets are those of the text."""
    if len(text) > MOST_TEXT_CHARS:
        return
    prose = text.translate(_STRAIGHT)
    prose = _FOREIGN_LINE.sub(_blank, _FENCED.sub(_blank, prose) if "```" in prose else prose)
    if len(prose) - prose.count("\0") > MOST_PROSE_CHARS:
        return
    start = -1
    for found in _SENTENCE.finditer(prose):
        start = found.start() if start < 0 else start
        piece = prose[start : found.end()]
        if found["end"] == "." and _ABBREVIATED.search(piece[:-1]):
            continue
        yield from _sentence(piece, start)
        start = -1


def _sentence(piece: str, start: int) -> Iterator[Sentence]:
    if len(piece) > MOST_SENTENCE_CHARS or "\0" in piece:
        return
    speaker = _SPEAKER.match(piece)
    if speaker is not None and speaker["who"].lower() not in _OWN_LABELS and " " not in speaker["who"]:
        return
    quoted = tuple(found.span() for found in _QUOTED.finditer(piece))
    yield Sentence(piece, start, piece.rstrip(" )*_").endswith("?"), quoted)


def _blank(found: re.Match[str]) -> str:
    return "\0" * (found.end() - found.start())


_STRAIGHT = str.maketrans({"\u2019": "'", "\u2018": "'", "\u00a0": " "})
