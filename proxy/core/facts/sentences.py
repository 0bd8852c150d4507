"""
Sentences of a user's own prose: without what is quoted, fenced, pasted or somebody else's line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MOST_PROSE_CHARS = 1_500  # of a message, code apart; a longer one is mostly pasted, and speaks of others
MOST_TEXT_CHARS = 20_000  # of a message, code and all
MOST_SENTENCE_CHARS = 400  # a longer one is no statement; and no rule reads further

_STRAIGHT = str.maketrans({"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "\u00a0": " "})
_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_FOREIGN_LINE = re.compile(
    r"^[ \t]*(?:>|\||#|\d+[:\u2192]).*$", re.MULTILINE
)  # quoted mail, tables, comments, listings
_QUOTED = re.compile(
    r'"[^"\n]{1,400}"|\u00ab[^\u00bb\n]{1,400}\u00bb|(?<!\w)\'[^\'\n]{1,200}(?:\'\w[^\'\n]{0,200})*\'(?!\w)'
    r"|`[^`\n]{1,200}`"
)
_SENTENCE = re.compile(r"[^\n.!?;]+(?:[.!?;]+(?=[^\s\"')*])[^\n.!?;]*)*(?P<end>[.!?;]*)")
_ABBREVIATED = re.compile(r"\b(?:Dr|Mr|Mrs|Ms|Prof|St|Mt|vs|e\.g|i\.e|etc|approx|No|Inc|Ltd|Jr|Sr|[A-Z])$")
_SPEAKER = re.compile(r"\s*[*_]{0,2}(?P<who>[A-Za-z][\w.-]*)(?: [A-Z][\w.-]*){0,2}[*_]{0,2}:\s")
# Of a line that stays the user's own words.
_OWN_LABELS = frozenset(
    [
        *("also", "btw", "fyi", "note", "ps", "reminder", "remember", "correction", "update", "important", "context"),
        *("background", "ok", "okay", "so", "hi", "hello", "hey", "anyway", "decision", "requirement", "preference"),
    ]
)

# What follows is a text to work on, and says nothing of its user.
_MATERIAL = re.compile(
    r"\b(?:translat(?:e|ing|ion)|rewrite|re-write|rephrase|paraphrase|proofread|reword|summari[sz]e|grammar|role-?play"
    r"|pretend|act as|acting as|persona|fictional|hypothetical(?:ly)?|character named|in the voice of"
    r"|first[- ]person|the following|[Ii]magine|[Ss]uppose|lyrics|word problem)\b"
    r"|\b(?:[Hh]ere(?:'s| is| are)|[Tt]his is) (?:the|my|an?|what|some)\b[^.:\n]{0,80}:"
    r"|\b(?:text|sentence|paragraph|email|e-mail|letter|essay|draft|message|prompt|bio|transcript|log|output|error|says"
    r"|said|like this|as follows|example)\s*:",
    re.IGNORECASE,
)
_JOKING = re.compile(r"\b(?:just |only )?(?:kidding|joking)\b|\bjk\b|(?<!\w)/s\b|\bsarcas", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Sentence:
    """
    One sentence, its apostrophes and quotation marks straight.

    `start` is its place in the message, `quoted` are the characters of it that stand between quotation marks.
    """

    text: str
    start: int
    is_question: bool
    quoted: tuple[tuple[int, int], ...]

    def is_quoted(self, at: int) -> bool:
        return any(first < at < last for first, last in self.quoted)


def sentences(text: str) -> Iterator[Sentence]:
    """The sentences that users say in their own name. Offsets are those of the text."""
    if len(text) > MOST_TEXT_CHARS:
        return
    prose = text.translate(_STRAIGHT)
    prose = _FOREIGN_LINE.sub(_blank, _FENCED.sub(_blank, prose) if "```" in prose else prose)
    if len(prose) - prose.count("\0") > MOST_PROSE_CHARS or _JOKING.search(prose):
        return
    material = _MATERIAL.search(prose)
    limit = len(prose) if material is None else material.start()
    start = -1
    for found in _SENTENCE.finditer(prose):
        start = found.start() if start < 0 else start
        if start >= limit:
            return
        piece = prose[start : found.end()]
        if found["end"] == "." and _ABBREVIATED.search(piece[:-1]):
            continue
        if len(piece) <= MOST_SENTENCE_CHARS and "\0" not in piece and not _is_of_another(piece):
            quoted = tuple(one.span() for one in _QUOTED.finditer(piece))
            yield Sentence(piece, start, piece.rstrip(" )*_\"'").endswith("?"), quoted)
        start = -1


def _is_of_another(line: str) -> bool:
    """Whether a line begins with the name of who speaks, as in a transcript."""
    speaker = _SPEAKER.match(line)
    return speaker is not None and speaker["who"].lower() not in _OWN_LABELS and " " not in speaker[0].strip()


def _blank(found: re.Match[str]) -> str:
    return "\0" * (found.end() - found.start())
