"""
The probability that the rest of the work needs a name which a compaction took away.

A logistic regression over where and how often a name stood. What it was fitted on, and how it does where it was not
fitted, is in docs/benchmarks.md (`palimpsest bench work`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from math import exp, log, log1p
from operator import mul

from palimpsest.core.work.names import is_file, is_time, names, parts

TOOL_ROLES = ("tool", "function")
_NONE: frozenset[str] = frozenset()
_WORD = re.compile(r"[A-Za-z]{3,}")
_DEFINED = re.compile(
    r"\b(?:func|def|fn|class|type|interface|struct|enum|function|const|var|let)\s+(?:\([^)\n]{0,80}\)\s*)?(\w{4,})"
)

# Log-odds for each unit of a signal, in the order of `signals`; "bias" is the constant.
WEIGHTS: Mapping[str, float] = {
    **{"messages": 1.31, "results": -0.85, "said": 0.06, "called": 0.46, "only_results": -0.68, "defined": 0.51},
    **{"distance": -0.64, "span": -0.27, "first": -1.33, "known": 0.6, "file": 0.71, "slash": 0.17, "length": -0.49},
    **{"time": -0.74, "bias": 0.51},
}


@dataclass(slots=True)
class Mentions:
    """Where one name stood: messages as places in what was lost, 0 the oldest, rising."""

    messages: list[int] = field(default_factory=list)
    results: int = 0  # of them, results of tools
    is_called: bool = False  # stands in what a call says
    is_defined: bool = False  # source code that was shown defines it


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
        """All that it says."""
        return f"{self.prose}\n{self.called}" if self.called else self.prose


def mentioned(lost: Sequence[LostText]) -> dict[str, Mentions]:
    """Every name of what was lost, with where it stood."""
    found: dict[str, Mentions] = {}
    defined: set[str] = set()
    for at, message in enumerate(lost):
        is_result = message.role in TOOL_ROLES
        said, called = names(message.prose), names(message.called) if message.called else _NONE
        defined.update(_DEFINED.findall(message.text))
        for name in said | called:
            if (one := found.get(name)) is None:
                one = found[name] = Mentions()
            one.messages.append(at)
            one.results += is_result
            one.is_called |= name in called
    for name in defined & found.keys():
        found[name].is_defined = True
    return found


def words(texts: Sequence[str]) -> frozenset[str]:
    """The different words of some texts, lower case."""
    return frozenset(word.lower() for text in texts for word in set(_WORD.findall(text)))


def signals(name: str, one: Mentions, count: int, known: Set[str]) -> tuple[float, ...]:
    """
    What tells whether a name is needed, in the order of `WEIGHTS`.

    Args:
        count: of messages that were lost.
        known: `words` of what the model still sees.
    """
    made_of = parts(name)
    messages = one.messages
    said = len(messages) - one.results
    return (
        log(len(messages)),
        log1p(one.results),
        log1p(said),
        float(one.is_called),
        float(not said),
        float(one.is_defined),
        log(count - messages[-1]),
        log1p(messages[-1] - messages[0]),
        messages[0] / count,
        sum(part in known for part in made_of) / len(made_of) if made_of else 0.0,
        float(is_file(name)),
        float("/" in name),
        log(len(name)),
        float(is_time(name)),
    )


def need(name: str, one: Mentions, count: int, known: Set[str]) -> float:
    """The probability, 0..1; arguments as of `signals`."""
    odds = sum(map(mul, WEIGHTS.values(), (*signals(name, one, count, known), 1.0)))
    return 1 / (1 + exp(-odds))
