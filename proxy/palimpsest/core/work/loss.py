"""
Losses by kind: what was named in the messages that a compaction removed, what came back of it, and what was used later.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum

from palimpsest.core.facts.extraction import proposals
from palimpsest.core.recall.wishes import is_lasting_wish
from palimpsest.core.work.account import FILE_ACTS, Lost, sorted_calls
from palimpsest.core.work.calls import Act
from palimpsest.core.work.names import is_file, names
from palimpsest.domain import FactCategory
from palimpsest.domain.frozen import frozen

OF_KIND = 40  # the newest of each: more are a list that nobody reads
TEXT_CHARS = 200  # of each; a longer rule or command is cut
COMPARED_CHARS = 60  # of a sentence, by which it is found again in a block that may cut it


class LossKind(StrEnum):
    """The kind of a thing that was named."""

    RULE = "rule"  # a lasting wish of the user's
    DECISION = "decision"
    FILE = "file"
    COMMAND = "command"
    ERROR = "error"
    NUMBER = "number"  # a value under a name: a port, a version, a limit


@frozen
class Loss:
    """A thing that the model no longer sees, and in which message it was last named."""

    kind: LossKind
    text: str
    occurrence: int
    came_back: bool  # in the block of that request
    was_used: bool  # by what the model answered next


def losses(lost: Sequence[Lost], kept: str, block: str, later: str) -> list[Loss]:
    """
    The losses of a compaction, by kind in the order of `LossKind`, of each kind the newest first.

    Args:
        lost: the messages that were removed, in the order in which they were said.
        kept: all that the client still sends; what stands there is not lost.
        block: the text that memory added to the request.
        later: the answers that followed.
    """
    newest: dict[tuple[LossKind, str], int] = {}
    for kind, text, occurrence in _named(lost):
        if (short := " ".join(text.split())[:TEXT_CHARS]) and not _stands(short, kept):
            newest.pop((kind, short), None)
            newest[kind, short] = occurrence
    found: list[Loss] = []
    for kind in LossKind:
        of_kind = [(text, at) for (one, text), at in reversed(newest.items()) if one is kind]
        found += [Loss(kind, text, at, _stands(text, block), _stands(text, later)) for text, at in of_kind[:OF_KIND]]
    return found


def _named(lost: Sequence[Lost]) -> Iterator[tuple[LossKind, str, int]]:
    texts, done = sorted_calls(lost)
    for text in texts:
        if text.role == "user" and is_lasting_wish(text.prose):
            yield LossKind.RULE, text.prose, text.occurrence
        for fact in proposals(text.prose, text.role):
            if fact.category in (FactCategory.DECISION, FactCategory.SETTING):
                kind = LossKind.DECISION if fact.category is FactCategory.DECISION else LossKind.NUMBER
                yield kind, text.prose[fact.start : fact.stop], text.occurrence
        yield from ((LossKind.FILE, name, text.occurrence) for name in sorted(names(text.prose)) if is_file(name))
    for one in done:
        occurrence = texts[one.at].occurrence
        if one.call.act in FILE_ACTS and one.call.what:
            yield LossKind.FILE, one.call.what, occurrence
        elif one.call.act is Act.RAN and one.call.what:
            yield LossKind.COMMAND, one.call.what, occurrence
            if one.is_failure and one.outcome:
                yield LossKind.ERROR, one.outcome, occurrence


def _stands(text: str, other: str) -> bool:
    return text[:COMPARED_CHARS] in other
