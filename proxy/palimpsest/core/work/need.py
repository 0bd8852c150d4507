"""
The probability that the rest of the work needs a name which a compaction took away.

A logistic regression over where and how often a name stood, who wrote it, and what the model still sees of what stood
beside it. What it was fitted on, and how it does where it was not fitted, is in docs/benchmarks.md (`palimpsest bench
work`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from math import exp, log, log1p
from operator import mul

from palimpsest.core.work.names import Places, is_file, parts

SPEAKERS = ("user", "assistant")
NEVER = 0.5  # log-odds of distance: so much farther than the oldest message is what nobody wrote
COUNTED_LINES = 10  # so many numbers in one message, half or more of those between them, count its lines
_WORD = re.compile(r"[A-Za-z]{3,}")

# Log-odds for each unit of a signal, in the order of `signals`; "bias" is the constant.
WEIGHTS: Mapping[str, float] = {
    **{"messages": 1.03, "files": -0.91, "changed": 0.95, "called": -0.39, "written": -0.44, "company": 0.21},
    **{"known": 0.31, "file": 0.29, "attribute": -0.52, "length": -0.41, "bias": 0.82},
}


@dataclass(slots=True)
class Mentions:
    """Where one name stood: messages as places in what was lost, 0 the oldest, rising; -1: in none."""

    messages: list[int] = field(default_factory=list)
    called: int = -1  # the newest with a call that says it
    written: int = -1  # the newest in which a person or the model wrote it
    company: int = 0  # the most names of any of its messages that the model still sees
    files: set[str] = field(default_factory=set)  # in which a tool showed it, or changed it


@dataclass(frozen=True, slots=True)
class LostText:
    """
    One message that was lost: what it says itself, and what its calls say, escapes resolved.

    `occurrence` is the store's number of it.
    """

    occurrence: int
    role: str
    prose: str
    called: str = ""

    @property
    def text(self) -> str:
        """All that the message says, calls included."""
        return f"{self.prose}\n{self.called}" if self.called else self.prose


def name_mentions(
    lost: Sequence[LostText], stood: Sequence[Places], heads: Sequence[str], seen: Set[str]
) -> dict[str, Mentions]:
    """
    Every name in what was lost, with how often and where it stood.

    Args:
        stood: of each message the names with their places.
        heads: of each message the file that it is from, or "".
        seen: names that the model still sees.
    """
    found: dict[str, Mentions] = {}
    for at, message in enumerate(lost):
        end = len(message.prose)
        here, called = _uncounted(dict(stood[at]).keys()), {name for name, place in stood[at] if place > end}
        company = len(seen & here)
        for name in here:
            if (one := found.get(name)) is None:
                one = found[name] = Mentions()
            one.messages.append(at)
            one.company = max(one.company, company)
            if message.role in SPEAKERS:
                one.written = at
            if name in called:
                one.called = at
            if heads[at]:
                one.files.add(heads[at])
    return found


def _uncounted(found: Set[str]) -> Set[str]:
    """Names without the numbers by which a log counts its lines."""
    numbers = {name: int(name) for name in found if name.isdecimal()}
    if len(numbers) < COUNTED_LINES or max(numbers.values()) - min(numbers.values()) >= 2 * len(numbers):
        return found
    return found - numbers.keys()


def words(texts: Sequence[str]) -> frozenset[str]:
    """The different words of some texts, lower case."""
    return frozenset(word.lower() for text in texts for word in set(_WORD.findall(text)))


def signals(name: str, one: Mentions, count: int, known: Set[str], changed: Set[str]) -> tuple[float, ...]:
    """
    The signals of whether a name is needed, in the order of `WEIGHTS`.

    Args:
        count: of messages that were lost.
        known: `words` of what the model still sees.
        changed: files that were created or edited.
    """
    made_of = parts(name)
    is_path = is_file(name)
    return (
        log(len(one.messages)),
        log1p(len(one.files)),
        float(not one.files.isdisjoint(changed)),
        log(count - one.called) if one.called >= 0 else log(count) + NEVER,
        log(count - one.written) if one.written >= 0 else log(count) + NEVER,
        log1p(one.company),
        sum(part in known for part in made_of) / len(made_of) if made_of else 0.0,
        float(is_path),
        float("." in name and not is_path),
        log(len(name)),
    )


def need(name: str, one: Mentions, count: int, known: Set[str], changed: Set[str]) -> float:
    """The probability that a name is needed, 0..1; arguments as of `signals`."""
    odds = sum(map(mul, WEIGHTS.values(), (*signals(name, one, count, known, changed), 1.0)))
    return 1 / (1 + exp(-odds))
