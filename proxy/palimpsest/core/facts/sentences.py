"""Sentences of a user's own prose: without what is quoted, fenced, pasted or somebody else's line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from palimpsest.domain.frozen import frozen

MOST_PROSE_CHARS = 1_500  # of a message, code apart; a longer one is mostly pasted, and speaks of others
MOST_TEXT_CHARS = 20_000  # of a message, code and all
MOST_SENTENCE_CHARS = 400  # that are read of one; nobody states a fact further on, and no rule looks there

ABBREVIATED_CHARS = 8  # of the longest abbreviation, with what stands around it

_STRAIGHT = str.maketrans({"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "\u00a0": " "})
_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_FOREIGN_LINE = re.compile(
    r"^[ \t]*(?:>|\||#|\d+[:\u2192]).*$", re.MULTILINE
)  # quoted mail, tables, comments, listings
_QUOTED = re.compile(
    r'"[^"\n]{1,400}"|\u00ab[^\u00bb\n]{1,400}\u00bb|`[^`\n]{1,200}`'
    r"|(?<!\w)'[^'\n]{1,200}(?:'\w[^'\n]{0,200})*'(?!\w)"
)
_MARK = re.compile("[\"'`\u00ab]")
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
# In lower case, which a search reads faster than either case.
_TASK = re.compile(
    r"\b(?:translat(?:e|ing|ion)|re-?write|rephrase|paraphrase|proofread|reword|summari[sz]e|grammar|role-?play"
    r"|pretend"
    r"|act as|acting as|persona|fictional|hypothetical(?:ly)?|character named|in the voice of|first[- ]person"
    r"|the following|imagine|suppose|lyrics|word problem)\b"
    r"|\b(?:check|fix|review|edit|polish|shorten|correct|improve|classify|reply to|respond to|answer|explain"
    r"|what do you (?:think|make) of|wrong with) (?:this|that|these|his|her|their|the)"
    r" (?:\w+ )?(?:text|sentences?|paragraph|e-?mail|letter|essay|messages?|post|tweet|article|bio|statement|review"
    r"|story|resume|cv|poem|speech|transcript|comment|page|document)\b"
)
_HEADING = re.compile(
    r"\b(?:(?:here(?:'s| is| are)|this is) (?:the|my|an?|what|some)\b[^.:\n]{0,80}|text|sentence|paragraph"
    r"|e-?mail|letter|essay|draft|message|prompt|bio|transcript|log|output|error|says|said|like this|as follows"
    r"|example|(?:begin|start|say|read|go)s(?: with)?)\s{0,3}:"
)
# What makes all that follows a play: who says "I" there is somebody else.
_PLAY = re.compile(
    r"\b(?:role-?play(?:ing)?|(?:stay|remain|speak|answer) in character|text adventure|dungeon master"
    r"|pretend (?:to be|that|you|we|i)\b|let's (?:pretend|act|improvise|play out)|you(?:'ll| will| are to)? (?:now )?"
    r"(?:play|act as|pretend to be) (?:a|an|the|my|me)\b|(?:i want|i'd like|i need) you to (?:play|act|be)"
    r" (?:as |like )?"
    r"(?:a|an|the|my)\b|i(?:'ll| will|'m going to) (?:play|act as) (?:a|an|the|your|my)\b|(?:mock|practi[cs]e"
    r"|simulated?)"
    r" (?:a |an |the |my )?(?:\w+ )?(?:interview|conversation|dialogue|phone call|negotiation))"
)
_JOKE = re.compile(r"kidding|joking|sarcas| jk\b| /s(?!\S)")


@frozen
class Sentence:
    """
    One sentence, its apostrophes and quotation marks straight.

    `start` is its place in the message, `quoted` are the characters of it that stand between quotation marks. `is_cut`:
    it goes on behind `text`.
    """

    text: str
    start: int
    is_question: bool
    quoted: tuple[tuple[int, int], ...]
    is_cut: bool = False

    def is_quoted(self, at: int) -> bool:
        return any(first < at < last for first, last in self.quoted)


def sentences(text: str) -> Iterator[Sentence]:
    """The sentences that users say in their own name. Offsets are those of the text."""
    if len(text) > MOST_TEXT_CHARS:
        return
    prose = text.translate(_STRAIGHT)
    prose = _FOREIGN_LINE.sub(_blank, _FENCED.sub(_blank, prose) if "```" in prose else prose)
    lower = prose.lower()
    if len(prose) - prose.count("\0") > MOST_PROSE_CHARS or _JOKE.search(lower):
        return
    materials = (_TASK.search(lower), _HEADING.search(lower) if ":" in lower else None)
    limit = min((found.start() for found in materials if found is not None), default=len(prose))
    start = -1
    for found in _SENTENCE.finditer(prose):
        start = found.start() if start < 0 else start
        if start >= limit:
            return
        piece = prose[start : found.end()]
        if found["end"] == "." and _ABBREVIATED.search(piece, max(0, len(piece) - ABBREVIATED_CHARS), len(piece) - 1):
            continue
        if "\0" not in piece and not _is_of_another(piece):
            quoted = tuple(one.span() for one in _QUOTED.finditer(piece)) if _MARK.search(piece) else ()
            is_question = piece.rstrip(" )*_\"'").endswith("?")
            read = piece[: min(MOST_SENTENCE_CHARS, limit - start)]
            yield Sentence(read, start, is_question, quoted, len(read) < len(piece))
        start = -1


def is_played(earlier: Iterable[str]) -> bool:
    """Whether these texts of people and instructions make what follows them a role play."""
    return any(_PLAY.search(text.translate(_STRAIGHT).lower()) for text in earlier)


def _is_of_another(line: str) -> bool:
    """Whether a line begins with the name of who speaks, as in a transcript."""
    speaker = _SPEAKER.match(line)
    return speaker is not None and speaker["who"].lower() not in _OWN_LABELS and " " not in speaker[0].strip()


def _blank(found: re.Match[str]) -> str:
    return "\0" * (found.end() - found.start())
