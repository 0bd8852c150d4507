"""Cues: answers that a clause holds, as people, dates, amounts, places, identifiers and statements."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum

from palimpsest.core.archive.chunking import names_something, tags
from palimpsest.core.recall.dates import MONTHS
from palimpsest.domain.frozen import frozen


class Kind(StrEnum):
    """The kind of answer that a question asks for."""

    WHO = "who"
    WHEN = "when"
    COUNT = "how many"
    WHERE = "where"
    WHICH = "which"
    WHAT = "what"


@frozen
class Cue:
    """An answer that stands in a text: offsets into it."""

    kind: Kind
    text: str


WORD_CHARS = 4  # shorter words stay in small letters in headings too

_MONTH = "|".join(month.capitalize() for month in MONTHS)
_DAY = "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
_WHEN = re.compile(
    rf"\b(?:{_MONTH})\b(?:,? \d{{1,2}}(?:st|nd|rd|th)?\b)?(?:,? (?:19|20)\d\d\b)?|\b(?:19|20)\d\d\b|\b{_DAY}s?\b"
    r"|\b(?:yesterday|tomorrow|tonight|today)\b"
    r"|\b(?:last|next|this|past|every) (?:week(?:end)?|month|year|summer|winter|spring|fall|autumn|night|morning"
    r"|evening|afternoon|day|\w+day)s?\b"
    r"|\b(?:\w+ )?(?:days?|weeks?|months?|years?|hours?) ago\b|\b\d{1,2}(?::\d\d)? ?[ap]\.?m\b|\b\d{1,2}:\d\d\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"[$\u20ac\u00a3]?\b\d[\d.,:/-]*\d%?|\b\d+%?|"
    r"\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|twice|hundred|thousand|million)\b"
)
_PLACE = re.compile(
    r"\b(?:in|at|from|to|near|around|visit(?:ed|ing)?|toward) (?:the )?([^\W\d_a-z][\w'&-]+(?: [^\W\d_a-z][\w'&-]+)*)"
)
_NAME = re.compile(
    r"(?<![.!?:] )(?<=[ \"'(\u201c])((?:[^\W\d_a-z][\w'&-]*[\w])(?: (?:of |the |and |de )?[^\W\d_a-z][\w'&-]*\w)*)"
)
_QUOTED = re.compile(r"[\"\u201c]([^\"\u201d\n]{2,60})[\"\u201d]")
_PRONOUN = re.compile(r"I(?:'\w+)?|I\u2019\w+|OK|Ok")
_STATES = re.compile(
    r"\b(?:decid|chose|choose|prefer|favou?rite|plan(?:s|ned|ning)?\b|going to|want(?:s|ed)? to|sign(?:ed)? up|bought"
    r"|start(?:ed)?|stopp?ed|quit|moved?|dropp?ed|joined|adopt|married|engaged|pregnant|graduat|passed|failed|won|lost"
    r"|broke|love|hate|enjoy|allergic|never|always|no longer|not\b|must|need(?:s|ed)? to|working on"
    r"|works? (?:as|at|for)|live[sd]?|name[ds]?|born|birthday|died|agreed|promis|instead|switch"
    r"|us(?:e|ing)\b|implement)|n['\u2019]t\b",
    re.IGNORECASE,
)


def cues(text: str) -> tuple[Cue, ...]:
    """The answers that stand in a clause, each once."""
    return tuple(dict.fromkeys(_cues(text)))


def _cues(text: str) -> Iterator[Cue]:
    """The times, counts, names and marks of a text that a question could ask for."""
    for found in _WHEN.finditer(text):
        yield Cue(Kind.WHEN, found[0])
    for found in _NUMBER.finditer(_WHEN.sub(lambda m: " " * len(m[0]), text)):
        yield Cue(Kind.COUNT, found[0])
    places = {found[1].strip() for found in _PLACE.finditer(text)}
    is_heading = all(word[:1].isupper() for word in text.split() if len(word) >= WORD_CHARS)
    for found in () if is_heading else _NAME.finditer(text):
        name = found[1]
        if not _PRONOUN.fullmatch(name) and not _WHEN.fullmatch(name):
            yield Cue(Kind.WHERE if name in places else Kind.WHO, name)
    for found in _QUOTED.finditer(text):
        yield Cue(Kind.WHICH, found[1])
    for tag in tags(text):
        if names_something(tag):
            yield Cue(Kind.WHICH, tag)
    if _STATES.search(text):
        yield Cue(Kind.WHAT, "")
