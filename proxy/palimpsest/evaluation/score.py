"""
Scores of evidence and answers, compared word for word: no model judges.

A message counts as found when at least 60 % of its runs of five words stand in the text, one of fewer than eight words
when all of it does. Another order, another form, cut tails and quotations in pieces do no harm; paraphrase does.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

FOUND_SHARE = 0.60
SHORT_WORDS = 8  # fewer have so few runs that one lost word decides
RUN_WORDS = 5
UNANSWERED = ("adversarial", "abstention")  # categories whose right answer is that nothing was said
SAYS_LITTLE = frozenset({"yes", "no", "none", "true", "false", "unknown", "n a", "not mentioned"})
MIN_ANSWER_CHARS = 2

_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Evidence:
    """What of the gold messages was found."""

    any: bool
    all: bool
    fraction: float


class BlockText:
    """The text that a memory returned, prepared for many look-ups."""

    def __init__(self, text: str) -> None:
        words = normalised(text)
        self._runs = _runs(words)
        self._joined = f" {' '.join(words)} "

    def evidence(self, gold: Sequence[str]) -> Evidence:
        """
        Score how much of the evidence stands in the block.

        Args:
            gold: the texts of the messages that hold the answer, at least one.
        """
        found = [self.holds(text) for text in gold]
        return Evidence(any(found), all(found), sum(found) / len(found))

    def holds(self, message: str) -> bool:
        """Whether a message counts as found. One without words never does."""
        words = normalised(message)
        if len(words) < SHORT_WORDS:
            return self.says(words)
        runs = _runs(words)
        return len(runs & self._runs) / len(runs) >= FOUND_SHARE

    def says(self, words: Collection[str]) -> bool:
        """Whether these words stand here, in this order, side by side."""
        return bool(words) and f" {' '.join(words)} " in self._joined


def normalised(text: str) -> list[str]:
    """Words in lower case, without apostrophes and signs."""
    return _WORD.findall(text.lower().replace("\u2019", "'").replace("'", ""))


def literal(answer: str | None, category: str, question: str, conversation: BlockText) -> list[str]:
    """
    The words of an answer that can be looked for; none where finding them would say nothing.

    That is a yes or no, words that the question holds already, and an answer that nobody gave in these words: it has
    to be concluded, and no memory could quote it.
    """
    words = normalised(answer or "")
    said = " ".join(words)
    if category in UNANSWERED or said in SAYS_LITTLE or len(said) < MIN_ANSWER_CHARS:
        return []
    return words if conversation.says(words) and not BlockText(question).says(words) else []


def _runs(words: Sequence[str]) -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(words[at : at + RUN_WORDS]) for at in range(len(words) - RUN_WORDS + 1))


def count_evidence(found: dict[str, list[float]], what: str, text: str, texts: Sequence[str]) -> None:
    """Add whether a text holds any and all of the evidence (`texts`) to the lists `WHAT, any` and `WHAT, all`."""
    evidence = BlockText(text).evidence(texts)
    found[f"{what}, any"].append(float(evidence.any))
    found[f"{what}, all"].append(float(evidence.all))
