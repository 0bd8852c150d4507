"""The clauses of messages: the smallest stretches of talk that can be evidence, with their places."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from palimpsest.domain import SourceMessage, Span, frozen

SPEAKER_ROLES = ("user", "assistant")  # what a tool returned can be had again, and anybody may have written it
READ_CHARS = 8000  # of a message: what is longer was pasted, and its author says what it is about before or after it
CLAUSE_CHARS = 25  # shorter ones stay with what follows them: "yes, and", "in May,"
TRANSCRIPT_MESSAGES = 2  # that begin alike: then "Ann: ..." is who speaks, and not "Note: ..."
LONGEST_CHARS = 400  # of a clause: a run without a full stop is a log or a table

_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_SENTENCE = re.compile(
    r"(?:[^.!?\n\u3002\uff01\uff1f\u061f]|[.!?](?![\s\"')*\]]|\Z))+[.!?\u3002\uff01\uff1f\u061f]*[\"')*\]]*"
)
_JOINT = re.compile(
    r"[,;:] +(?=(?:and|but|so|because|which|who|since|while|then|although|though)\b)"
    r"|; +| [-\u2013\u2014]+ | (?=but\b|because\b)"
)
_SPEAKER = re.compile(r"([^\W\d_a-z][\w.'-]{0,30}(?: [^\W\d_a-z][\w.'-]{0,30})?): ")  # "Ann: ...", as transcripts begin
# Talk to whoever keeps memory or follows orders, about what it is to do with them: nobody's fact, and never kept.
_ORDER = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b[^.!?\n]{0,40}\b(?:above|previous|prior|earlier|instructions?|rules|everything)\b"
    r"|\b(?:reveal|print|show|repeat|output)\b[^.!?\n]{0,20}\b(?:system|developer) (?:prompt|message)\b"
    r"|\byou are now (?:an?|in|the)\b"
    r"|\b(?:store|save|write|add|record|insert)\b[^.!?\n]{0,40}\b(?:in|into|to|as)\b[^.!?\n]{0,20}\bmemor(?:y|ies)\b",
    re.IGNORECASE,
)


@frozen
class Clause:
    """
    One clause of a message.

    `message` is an index into the segment, `sentence` counts the sentences of the segment; `start` and `stop` are
    offsets into the message's text. `speaker` is a name, "" where a message has none.
    """

    message: int
    sentence: int
    start: int
    stop: int
    text: str
    role: str
    speaker: str

    def span(self, segment: Sequence[SourceMessage]) -> Span:
        return Span(segment[self.message].occurrence, self.start, self.stop)


def clauses(segment: Sequence[SourceMessage]) -> tuple[Clause, ...]:
    """
    The clauses of what people and the assistant say, in order.

    Code, results of tools, and orders to whoever reads (`is_order`) are left out.
    """
    found: list[Clause] = []
    sentence = 0
    openings = Counter(opening[1] for said in segment if (opening := _SPEAKER.match(said.text)))
    for at, said in enumerate(segment):
        if said.role not in SPEAKER_ROLES:
            continue
        text = said.text[:READ_CHARS]
        opening = _SPEAKER.match(text)
        if opening and openings[opening[1]] < TRANSCRIPT_MESSAGES:
            opening = None
        speaker = said.name or (opening[1] if opening else "")
        for start, stop in _prose(text, opening.end() if opening else 0):
            for match in _SENTENCE.finditer(text, start, stop):
                if is_order(match[0]):
                    continue
                sentence += 1
                for a, b in _clauses_of(text, *match.span()):
                    found.append(Clause(at, sentence, a, b, text[a:b], said.role, speaker))
    return tuple(found)


def join_clauses(texts: Sequence[str]) -> str:
    """Clauses in a row as one text; the comma comes back that parted them."""
    return re.sub(r"(?<![.!?,;:\u3002\uff01\uff1f])\n", ", ", "\n".join(texts)).replace("\n", " ")


def is_order(text: str) -> bool:
    """Whether a text tells a model what to do with its instructions or its memory."""
    return _ORDER.search(text) is not None


def _prose(text: str, start: int) -> Iterator[tuple[int, int]]:
    """Stretches outside of fenced code."""
    for fence in _FENCE.finditer(text):
        if fence.start() > start:
            yield start, fence.start()
        start = max(start, fence.end())
    if start < len(text):
        yield start, len(text)


def _clauses_of(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """The spans of the clauses of a sentence, cut at joints and trimmed."""
    cuts = [start]
    for joint in _JOINT.finditer(text, start, stop):
        if joint.start() - cuts[-1] >= CLAUSE_CHARS and stop - joint.end() >= CLAUSE_CHARS:
            cuts.append(joint.end())
    for a, b in zip(cuts, [*cuts[1:], stop], strict=True):
        trimmed = text[a:b]
        a += len(trimmed) - len(trimmed.lstrip(" \t-*#>\u2022"))
        b = a + len(text[a:b].rstrip(" ,;:\u2013\u2014-"))
        if b - a > 1 and b - a <= LONGEST_CHARS:
            yield a, b
