"""
Losses by kind: what was named in the messages that a compaction removed, what came back of it, and what was used later.

A thing counts where somebody who goes on would have to look for it again: what people and models said in prose, which
files tools opened or changed, what was run. What a tool printed names hundreds of files and numbers that nobody missed;
commands that only show something, and failures of commands that passed later, are no loss either.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum
from operator import itemgetter

from palimpsest.core.facts.extraction import proposals
from palimpsest.core.facts.sentences import MOST_PROSE_CHARS
from palimpsest.core.recall.wishes import is_lasting_wish
from palimpsest.core.work.account import FILE_ACTS, LostMessage, open_failures, runs_of, sorted_calls
from palimpsest.core.work.calls import only_looks
from palimpsest.core.work.names import is_file, names
from palimpsest.core.work.need import LostText
from palimpsest.core.work.statements import decisions, values, without_printed
from palimpsest.domain import FactCategory, frozen

OF_KIND = 40  # the newest of each: more are a list that nobody reads
TEXT_CHARS = 200  # of each; a longer rule or command is cut
COMPARED_CHARS = 60  # of a sentence, by which it is found again in a block that may cut it
PATH_PARTS = 2  # by which a file is found again, wherever its path begins

_FAULT = re.compile(  # an error that happened, by its message, or one that has a number
    r"\b[A-Z]\w*(?:Error|Exception): [^\n\"`]{3,100}|\b(?:E|ERR|TS|CVE)-?\d{3,6}\b(?: \([^)\n]{3,90}\))?"
)


class LossKind(StrEnum):
    """The kind of a thing that was named."""

    RULE = "rule"  # a lasting wish of the user's
    DECISION = "decision"
    NUMBER = "number"  # a value under a name: a port, a version, a limit
    ERROR = "error"
    COMMAND = "command"
    FILE = "file"


@frozen
class Loss:
    """A thing that the model no longer sees, and in which message it was last named."""

    kind: LossKind
    text: str
    occurrence: int
    came_back: bool  # in the block of that request
    was_used: bool  # by what the model answered next


def losses(lost: Sequence[LostMessage], kept: str, block: str, later: str) -> list[Loss]:
    """
    The losses of a compaction, by kind in the order of `LossKind`, of each kind the newest first.

    Args:
        lost: the messages that were removed, in the order in which they were said.
        kept: all that the client still sends; what stands there is not lost.
        block: the text that memory added to the request.
        later: the answers that followed.
    """
    kept, block, later = (" ".join(text.split()) for text in (kept, block, later))
    newest: dict[tuple[LossKind, str], tuple[str, int]] = {}
    for kind, text, occurrence in sorted(_lost_things(lost), key=itemgetter(2)):
        if (short := " ".join(text.split())[:TEXT_CHARS]) and not is_held_by(short, kept):
            newest.pop(thing := (kind, _tail(short)), None)
            newest[thing] = short, occurrence
    bare = {(kind, path.rpartition("/")[2]) for kind, path in newest if kind is LossKind.FILE and "/" in path}
    newest = {thing: loss for thing, loss in newest.items() if thing not in bare}
    found: list[Loss] = []
    for kind in LossKind:
        of_kind = [loss for (one, _), loss in reversed(newest.items()) if one is kind]
        found += [
            Loss(kind, text, at, is_held_by(text, block), is_held_by(text, later)) for text, at in of_kind[:OF_KIND]
        ]
    return found


def is_held_by(text: str, other: str) -> bool:
    """Whether another text holds it: a file by the end of its path, a sentence by its beginning, as blocks cut it."""
    return _tail(text)[:COMPARED_CHARS] in other


def _tail(text: str) -> str:
    """A path without the folders in which it begins, which are told or not; any other text as it is."""
    return "/".join(text.removeprefix("./").split("/")[-PATH_PARTS:]) if is_file(text) and " " not in text else text


def _lost_things(lost: Sequence[LostMessage]) -> Iterator[tuple[LossKind, str, int]]:
    """The rules, decisions, numbers, files, commands and errors in lost messages: kind, text, occurrence."""
    texts, done = sorted_calls(lost)
    told = [(kind, named, text.occurrence) for text in texts for kind, named in dict.fromkeys(_stated_things(text))]
    times = Counter(named for _, named, _ in told)
    # a file without its folder is named once as an example, and again where work comes back to it
    yield from (one for one in told if one[0] is not LossKind.FILE or "/" in one[1] or times[one[1]] > 1)
    runs = runs_of(done)
    for one in done:
        if one.call.act in FILE_ACTS and is_file(one.call.what):
            yield LossKind.FILE, one.call.what, texts[one.at].occurrence
    for command, one in runs.items():
        if not only_looks(command) and any(map(str.isalpha, command)):
            yield LossKind.COMMAND, command, texts[one.at].occurrence
    for command, one in open_failures(runs, texts, done):
        yield LossKind.ERROR, one.outcome or command, texts[one.result_at].occurrence


def _stated_things(text: LostText) -> Iterator[tuple[LossKind, str]]:
    """What a message says in its own words, and the settings that a tool returned."""
    for fact in proposals(text.prose, text.role):
        if fact.category in (FactCategory.DECISION, FactCategory.SETTING):
            kind = LossKind.DECISION if fact.category is FactCategory.DECISION else LossKind.NUMBER
            yield kind, text.prose[fact.start : fact.stop]
    if not (prose := without_printed(text)):
        return
    if text.role == "user" and is_lasting_wish(text.prose):
        yield LossKind.RULE, text.prose
    if text.role == "assistant":
        yield from ((LossKind.DECISION, one) for one in decisions(text))
    yield from ((LossKind.ERROR, fault[0]) for fault in _FAULT.finditer(text.prose))
    yield from ((LossKind.NUMBER, one) for one in values(text))
    if text.role == "assistant" or len(prose) <= MOST_PROSE_CHARS:
        yield from ((LossKind.FILE, name) for name in sorted(names(prose)) if is_file(name) and "://" not in name)
