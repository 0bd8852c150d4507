"""
Specific facts, found by rule in what people and the assistant said, so that their loss can be checked.

LANTERN (arXiv 2606.05182, section 4.2) lets a model name such facts and a judge look for them. Here both are rules, so
that anyone gets the same figures: a fact is a stretch of text that names one thing (a value, a path, a command, an
amount, a decision), and it is recovered when that stretch stands in the restored block. A paraphrase does not count,
for any system alike.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from palimpsest.evaluation.datasets import DatasetMessage

MIN_FACT_CHARS = 4  # shorter ones stand in any text by chance
MAX_FACT_CHARS = 160  # a longer command or sentence is cut by any packing, and says no one thing
TELLING_ROLES = ("user", "assistant")  # what a tool returned can be had again; what was said about it cannot

_TAIL = ".,;:!?)]}'\"`*>"
_EXTENSIONS = (
    "c|cc|cfg|conf|cpp|cs|css|csv|db|env|go|h|html|ini|ipynb|java|js|json|jsonl|jsx|kt|lock|log|md|pdf|php|plist|proto"
    "|py|rb|rs|scss|sh|sql|svg|swift|toml|ts|tsx|txt|vue|xml|ya?ml|zip"
)
_MARKS = re.compile("[\"'`*\u2018\u2019\u201c\u201d]")
_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Sept|Oct|Nov|Dec)[a-z]*"
_UNITS = (
    "%|percent|[kKMGT]i?B|bytes|bits|px|ms|seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?|months?|years?|km|cm"
    "|mm|miles?|kg|grams?|mg|lbs?|mph|[kMG]?Hz|kW|°[CF]?|degrees|dollars|euros|tokens|lines|users|people|million"
    "|billion|thousand|points|times|pages|rows|files|tests|characters|chars"
)
_COUNTED = (
    "Chapter|Day|Example|Figure|Item|Line|Lines|Option|Page|Part|Phase|Point|Question|Section|Step|Table|Task|Week"
)
_COMMAND = (
    r"(?:apt|apt-get|brew|bun|cargo|chmod|conda|cp|curl|deno|docker|docker-compose|export|gh|git|go|gradle|grep|java|kubectl"
    r"|make|mkdir|mv|mvn|node|npm|npx|pip3?|pnpm|poetry|psql|pytest|python3?|rm|ruff|sed|ssh|sudo|tar|tsc|uv|uvicorn|wget"
    r"|yarn|\./[\w./-]+) +[-\w./~'\"$@:=][^\n`]*"
)
_FENCE = re.compile(r"```(?:ba|z|)sh(?:ell|ession)?\n(.*?)```|```(?:console|shell)\n(.*?)```", re.DOTALL)
_FENCED = re.compile(rf"^ *(?:\$ )?({_COMMAND})", re.MULTILINE)
_SENTENCES = re.compile(r"(?:[^.!?\n]|[.!?](?!\s|$))+")
_DECIDES = re.compile(
    r"\b(?:[Ll]et's (?:use|go with|keep|stick|make|call|add|not)|(?:[Ww]e|I)(?:'ll| will| should| have| decided)"
    r" (?:use|go with|keep|stick|rename|call|store|not|never|always|decided|chosen)|[Ii]nstead of|rather than|[Pp]refer"
    r"|must not|[Dd]o(?:n't| not) (?:use|add|change|touch|remove|want)|[Aa]lways use|[Nn]ever use)\b"
)

# A stretch belongs to the first kind whose rule finds it; what lies inside it is not found again.
RULES: Mapping[str, re.Pattern[str]] = {
    "url": re.compile(r"https?://[^\s<>\"'`)\]}|\\]+"),
    "command": re.compile(rf"(?:`|\$ )({_COMMAND})"),
    "port": re.compile(r"\b[Pp]ort:? (?:number )?\d{2,5}\b|\b(?:localhost|(?:[\w-]+\.)+[\w-]+):\d{4,5}\b(?!\.[a-z])"),
    "path": re.compile(
        rf"(?<![\w/.@:-])(?:[\w.@+-]+/)+[\w.@+-]*\.(?:{_EXTENSIONS})\b|(?<![\w/.@:-])(?:~|\.{{1,2}})?/(?:[\w.@+-]+/)*"
        rf"[\w.@+-]*\w|(?<![\w/.@:-])\w[\w.-]*\.(?:{_EXTENSIONS})\b(?!\()"
    ),
    "error": re.compile(
        r"\b[A-Z]\w*(?:Error|Exception|Fault|Warning)\b|\bE(?:ACCES|ADDRINUSE|CONNREFUSED|CONNRESET|EXIST|INVAL|NOENT"
        r"|NOTFOUND|PERM|PIPE|TIMEDOUT)\b|\b[A-Z]{1,4}-?\d{3,5}\b"
        r"|\b(?:[Ee]rror|[Ss]tatus|[Ee]xit)(?: code)?:? \d{1,5}\b"
    ),
    "version": re.compile(r"\bv?\d+\.\d+\.\d+(?:[\w.+-]*\w)?\b|\bv\d+(?:\.\d+)+\b|\b[A-Z]\w+ \d+\.\d+\b"),
    "config": re.compile(
        r"\b[A-Za-z_][\w.-]{2,} ?= ?(?:\"[^\"\n]{1,60}\"|'[^'\n]{1,60}'|-?\d[\d._]*\b|[Tt]rue\b|[Ff]alse\b)"
        r"|\b[A-Z][A-Z\d]*(?:_[A-Z\d]+)+(?:=[-\w./:@]+)?|(?<![\w-])--[a-z][\w-]+(?:=[-\w./:]+)?"
        r"|(?<=\")[\w.-]+\": ?(?:\"[^\"\n]{1,60}\"|-?\d[\d.]*|true\b|false\b|null\b)"
    ),
    "function": re.compile(
        r"\b[A-Za-z_]\w+(?:\.[A-Za-z_]\w*)*(?=\()|\b[a-z\d]+(?:_[a-z\d]+)+\b|\b[a-z][a-z\d]*(?:[A-Z][a-z\d]+)+\b"
        r"|\b(?:[A-Z][a-z\d]+){2,}\b"
    ),
    "date": re.compile(
        rf"\b{_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?(?:,? (?:19|20)\d\d)?\b|\b\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH}"
        rf"(?:,? (?:19|20)\d\d)?\b|\b{_MONTH} (?:19|20)\d\d\b|\b\d{{4}}-\d\d-\d\d\b|\b\d{{1,2}}/\d{{1,2}}/\d{{2,4}}\b"
        r"|\b(?:[01]?\d|2[0-3])(?::[0-5]\d)? ?[ap]\.?m\b"
    ),
    "number": re.compile(
        rf"[$€£]\s?\d[\d.,]*(?: ?(?:million|billion|[kKMB]\b))?|\b\d[\d.,]*(?:-| ?)(?:{_UNITS})(?!\w)"
        rf"|\b(?!(?:{_COUNTED}) )[A-Z][A-Za-z]+(?:[ -][A-Z][A-Za-z]+)*[ -]\d[\d.,]*\b|\b\d{{1,3}}(?:,\d{{3}})+\b"
    ),
    "name": re.compile(r"(?<=[a-z,;] )[A-Z][a-z]+(?:(?: of| the| de| van| von)? [A-Z][a-z]+)+\b"),
}
DECISION = "decision"
DECISION_CHARS = (20, MAX_FACT_CHARS)


@dataclass(frozen=True, slots=True)
class Fact:
    """`key` is its normalised text: what must stand in a restored block. `messages`: where it was said, rising."""

    kind: str
    text: str
    key: str
    messages: tuple[int, ...]


def normalised(text: str) -> str:
    """Lower case, any white space one blank, no quotation or emphasis marks: how stretches are compared."""
    return " ".join(_MARKS.sub("", text.lower()).split())


def facts_of(texts: Sequence[tuple[str, str]]) -> tuple[Fact, ...]:
    """
    The facts of a stretch of conversation, in order of first mention, each once.

    Args:
        texts: (role, text) of each message; facts of tools and instructions are left out.
    """
    said: dict[str, tuple[str, str, list[int]]] = {}
    for at, (role, text) in enumerate(texts):
        if role not in TELLING_ROLES:
            continue
        for kind, found in _found(text):
            key = normalised(found)
            if len(key) >= MIN_FACT_CHARS:
                said.setdefault(key, (kind, found, []))[2].append(at)
    return tuple(Fact(kind, text, key, tuple(dict.fromkeys(places))) for key, (kind, text, places) in said.items())


def holds(normalised_text: str, key: str) -> bool:
    """Whether a fact stands in a normalised text, not inside a longer word or number."""
    at = normalised_text.find(key)
    while at >= 0:
        before, after = normalised_text[at - 1 : at], normalised_text[at + len(key) : at + len(key) + 1]
        if not (_joins(before, key[0]) or _joins(key[-1], after)):
            return True
        at = normalised_text.find(key, at + 1)
    return False


def said_in(messages: Sequence[DatasetMessage]) -> list[tuple[str, str]]:
    """Role and text of each message, as `facts_of` takes them."""
    return [(said.role, said.text) for said in messages]


class Rarity:
    """In how many conversations of a data set each fact is said: what most of them say is no fact of one of them."""

    def __init__(self, conversations: Iterable[Sequence[tuple[str, str]]]) -> None:
        self._said: Counter[str] = Counter()
        for texts in conversations:
            self._said.update({fact.key for fact in facts_of(texts)})

    def is_rare(self, fact: Fact, most: int) -> bool:
        """Whether at most so many conversations say it, its own included."""
        return self._said[fact.key] <= most


def _found(text: str) -> Iterator[tuple[str, str]]:
    """The facts in a text, as kind and characters."""
    taken = bytearray(len(text))
    for kind, rule in RULES.items():
        for start, stop in _spans(kind, rule, text):
            found = text[start:stop].strip().rstrip(_TAIL)
            if any(taken[start:stop]) or not found or len(found) > MAX_FACT_CHARS:
                continue
            taken[start:stop] = b"\1" * (stop - start)
            yield kind, found
    for sentence in _SENTENCES.finditer(text):
        said = sentence[0].strip()
        if DECISION_CHARS[0] <= len(said) <= DECISION_CHARS[1] and _DECIDES.search(said):
            yield DECISION, said


def _spans(kind: str, rule: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    """The spans of a text that a rule finds."""
    for match in rule.finditer(text):
        yield match.span(match.lastindex or 0)
    if kind == "command":
        for fence in _FENCE.finditer(text):
            start, stop = fence.span(fence.lastindex or 0)
            for command in _FENCED.finditer(text, start, stop):
                yield command.span(1)


def _joins(left: str, right: str) -> bool:
    """Whether two neighbouring characters belong to one word."""
    return bool(left and right) and left.isalnum() and right.isalnum()
