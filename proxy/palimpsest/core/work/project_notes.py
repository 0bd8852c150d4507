"""
Notes of a project: which of a user's messages are worth telling where another conversation in its folder begins.

How it is run and where things are, what is not to be touched, what was decided and what changed. An answer for once
("use the second one then") is none, nor are most orders.
"""

from __future__ import annotations

import re

from palimpsest.core.recall.updates import tells_of_change
from palimpsest.core.recall.wishes import form, is_material
from palimpsest.core.work.need import LostText
from palimpsest.core.work.statements import SENTENCE, binds, told_from

NOTE_CHARS = 200  # of one: a longer message tells of its day, too
REST, IDLE = 2, 3  # the urgency of a note that neither forbids nor sets anything, and of what is none
_SETTING = re.compile(  # a path, an option of a command, a variable that is set, a port, a command to use
    r"(?:^|[\s(`'\"])(?:~/|\.{0,2}/)[\w.@-]+|(?<=\s)--?[a-z][\w-]+|(?<![\w.@/-])[\w.@-]+/[\w.@/-]*\.\w"
    r"|\b[A-Z_]{3,}=\w|\bport \d|\blistens? on \d{2}"
    r"|\b(?:needs?|uses?|with|via|just|only|always) `[^`\n ]{1,40} [^`\n]{1,80}`"
)
_LOOKS = re.compile(r"(?i)\W*(?:please |now |next,? |then )*(?:look|have a look|see|check|review|read|open|compare)\b")
_FORBIDS = re.compile(
    r"(?i)\b(?:never|nobody|do not|don['\u2019]?t (?!see|know|think|get|have|need|worry|mind)|must ?n[o'\u2019]t"
    r"|(?:leave|keep) (?:[^.!?,;\n]|\.\w){1,60}(?:alone|untouched|as (?:it is|they are))|hands off|off.limits"
    r"|without asking|ask (?:me )?(?:first|before))\b"
)
_PASSES = re.compile(r"(?i)\b(?:yet|now|today|tonight|this (?:one|time)|until|just|for (?:the moment|once))\b")
_FOR_ONCE = re.compile(r"(?i)(?=.{1,60}$).*\bthen\W*$")  # a brief answer: a longer sentence may tell of a condition


def is_note(text: str) -> bool:
    """Whether a user's message decides, forbids or changes something, or tells how something is run or where it is."""
    opening = next(SENTENCE.finditer(text), None)
    if opening is not None and _FOR_ONCE.match(opening[0]):
        text = text[opening.end() :]
    changes = tells_of_change(text) and not form(text)["opens_text"]
    return changes or binds(LostText(0, "user", text)) or _sets_up(text)


def urgency(text: str) -> int:
    """The order in which notes are told: 0 what forbids, 1 what names a file, an option or a setting, 2 the rest."""
    forbids = (_FORBIDS.search(one) and not _PASSES.search(one) for one in SENTENCE.findall(text))
    return 0 if any(forbids) else 1 if _SETTING.search(text) else REST


def noted_part(text: str) -> tuple[int, int]:
    """
    From where to where a note is told: all behind its thanks, or of a longer one the sentences around its most urgent
    one that are worth it, too.
    """
    start = told_from(text)
    if len(text) - start <= NOTE_CHARS:
        return start, len(text)
    spans = [(found.end() - len(found[0].lstrip()), found.end()) for found in SENTENCE.finditer(text)]
    said = [text[start:stop] for start, stop in spans]
    worth = [urgency(one) if urgency(one) < REST or is_note(one) else IDLE for one in said]
    low = high = worth.index(min(worth))
    while True:
        if high + 1 < len(spans) and worth[high + 1] < IDLE and spans[high + 1][1] - spans[low][0] <= NOTE_CHARS:
            high += 1
        elif low and worth[low - 1] < IDLE and spans[high][1] - spans[low - 1][0] <= NOTE_CHARS:
            low -= 1
        else:
            return spans[low][0], spans[high][1]


def _sets_up(text: str) -> bool:
    """Whether a message tells of a setting: no order, no question and no material."""
    if not _SETTING.search(text) or _LOOKS.match(text) or text.rstrip().endswith("?"):
        return False
    return not is_material(text) and not form(text)["opens_text"]
