"""
Scores of a reader under four inputs, and the gaps between them: loss at writing, or at reading.

WhenLoss (arXiv 2605.24579, sections 3, 5.4 and 6.3): TFC is the conversation's most recent 32,000 tokens, OE the gold
evidence alone, CSM everything that was kept, RM what retrieval returned. Write gap = OE - CSM, retrieval gap = CSM -
RM.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

import numpy as np

from palimpsest.core.recall.gaps import verdict
from palimpsest.evaluation.facts import holds
from palimpsest.evaluation.facts import normalised as normalised_text
from palimpsest.evaluation.score import normalised

SAME_SHARE = 0.5  # WhenLoss 6.3: of a turn's words and its closest segment's, together
CONDITIONS = ("TFC", "OE", "CSM", "RM")

_SPAN = re.compile(r"\d[\w.,:/-]*|[^\W\d_a-z][\w'-]+")


@dataclass(frozen=True, slots=True)
class Gaps:
    """The stages at which a score is lost, and the verdict: "write", "retrieval" or "mixed"."""

    write: float
    retrieval: float

    @property
    def verdict(self) -> str:
        return verdict(self.write, self.retrieval)


def gaps(oracle: float, stored: float, retrieved: float) -> Gaps:
    """The two gaps, from the scores of OE, CSM and RM."""
    return Gaps(oracle - stored, stored - retrieved)


class Segments:
    """Texts that may hold what was said: entries of a memory, and their lines, as sets of words."""

    def __init__(self, entries: Sequence[str]) -> None:
        self._sets = [
            words for entry in entries for part in (entry, *entry.split("\n")) if (words := frozenset(normalised(part)))
        ]
        self._text = normalised_text("\n".join(entries))

    def keeps(self, turn: str) -> bool:
        """Whether a turn is preserved: more than half of all words of it and its closest segment are in both."""
        wanted = frozenset(normalised(turn))
        return any(len(wanted & words) > SAME_SHARE * len(wanted | words) for words in self._sets)

    def turn_recall(self, turns: Sequence[str]) -> float:
        """Share of these turns that are preserved."""
        return float(np.mean([self.keeps(turn) for turn in turns]))

    def span_recall(self, spans: Sequence[str]) -> float:
        """Share of these spans that stand here, and not inside a longer word or number."""
        return float(np.mean([holds(self._text, normalised_text(span)) for span in spans]))


def spans(answer: str | None, conversation: str) -> list[str]:
    """
    Names, dates and numbers of an answer, each once.

    A word in capitals is a name unless the conversation has it in small letters too: answers begin with a capital.
    """
    found = dict.fromkeys(span.rstrip(".,:/-'") for span in _SPAN.findall(answer or ""))
    return [
        span
        for span in found
        if not span[0].isalpha() or not re.search(rf"\b{re.escape(span.lower())}\b", conversation)
    ]


def contains_match(answer: str, gold: str) -> float:
    """CM: whether an answer holds the gold answer, word by word."""
    return float(f" {' '.join(normalised(gold))} " in f" {' '.join(normalised(answer))} ")


def token_f1(answer: str, gold: str) -> float:
    """Harmonic mean of precision and recall of words, repeats counted, as SQuAD does (Rajpurkar et al. 2016), 0..1."""
    said, wanted = normalised(answer), normalised(gold)
    same = (Counter(said) & Counter(wanted)).total()
    return 2 * same / (len(said) + len(wanted)) if same else 0.0


def bleu_1(answer: str, gold: str) -> float:
    """BLEU-1: precision of words, repeats counted, less where the answer is shorter (Papineni et al. 2002), 0..1."""
    said, wanted = normalised(answer), normalised(gold)
    same = (Counter(said) & Counter(wanted)).total()
    return same / len(said) * min(1.0, exp(1 - len(wanted) / len(said))) if same else 0.0
