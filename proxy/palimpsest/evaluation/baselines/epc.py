"""
Baseline: expected predictive compression (EPC), the least text that answers what will be asked of a session.

WhenLoss (arXiv 2605.24579, sections 4 and 5.3, appendix A.1): per session one call for five probe questions and one for
the least evidence of each; evidence that overlaps is merged; units are chosen greedily by 1.0 coverage (probe questions
that it supports) + 0.5 specificity (names, dates and numbers, as a share of its words) - 0.3 redundancy (words that
were chosen already, as a share) until the budget is used. Found like `summary`, by the cosine of all-MiniLM-L6-v2.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass

from palimpsest.evaluation.baselines.summary import Segment, Summary, segments
from palimpsest.evaluation.datasets import Conversation
from palimpsest.evaluation.filling import Piece
from palimpsest.evaluation.score import normalised
from palimpsest.memory.tokens.counter import encoder

COVERAGE, SPECIFICITY, REDUNDANCY = 1.0, 0.5, 0.3  # WhenLoss 5.3
OVERLAP_SHARE = 0.5  # of the shorter one's words: then two units are one piece of evidence
PROBE_TOKENS = 300  # five questions
ENCODING = "cl100k_base"
PROBES = """You are writing long-term memory before
the future question is known.
Given this conversation session,
generate 5 likely future questions
that may require information from it.
Prefer questions about factual details,
names, dates, numbers, preferences,
plans, temporal changes, decisions,
and negations.

Return only a numbered list.

{session_turns}"""
EVIDENCE = """You are compressing a conversation
session into long-term memory under
a hard budget of {max_tokens} tokens.

Use the probe questions to identify
minimal supporting evidence.
Keep exact entities, dates, numbers,
preferences, decisions, negations,
and temporal relations.
Avoid generic summaries.

For each selected item, use this format:
[Q] likely future question
[E] minimal supporting evidence
[S] session_{session_id}_turn_{{turn_id}}

Probe questions:
{probe_questions}

Conversation:
{session_turns}"""

_UNIT = re.compile(r"\[Q\]\s*(?P<question>.*?)\s*\[E\]\s*(?P<evidence>.*?)\s*\[S\]\s*(?P<source>[^\n\[]*)", re.DOTALL)
_SPECIFIC = re.compile(r"\b[A-Z][\w-]+|\b\w*\d[\w.,:/-]*")


@dataclass(frozen=True, slots=True)
class Unit:
    """One piece of evidence, and the questions that it answers."""

    questions: tuple[str, ...]
    evidence: str
    source: str

    @property
    def text(self) -> str:
        return f"[Q] {' '.join(self.questions)}\n[E] {self.evidence}\n[S] {self.source}"


class Epc(Summary):
    """Entries of question, evidence and source, by cosine."""

    name = "epc"

    async def write(self, conversation: Conversation) -> list[Piece]:
        """Everything that is kept: question, evidence and source."""
        parts = segments(conversation, self._write_tokens)
        written = await asyncio.gather(*(self._units(part) for part in parts))
        return [
            Piece(unit.text, _sources(unit, part)) for part, units in zip(parts, written, strict=True) for unit in units
        ]

    async def _units(self, part: Segment) -> list[Unit]:
        """Ask the model for probes and their evidence, and choose units within the budget."""
        probes = await self._model.complete(PROBES.format(session_turns=part.text), PROBE_TOKENS)
        prompt = EVIDENCE.format(
            max_tokens=part.max_tokens, session_id=part.session, probe_questions=probes, session_turns=part.text
        )
        answer = await self._model.complete(prompt, part.max_tokens)
        units = [Unit((m["question"],), m["evidence"], m["source"].strip()) for m in _UNIT.finditer(answer)]
        return chosen(merged(units), part.max_tokens)


def merged(units: Sequence[Unit]) -> list[Unit]:
    """Merge units whose evidence overlaps into the longest, for all of their questions."""
    whole: list[Unit] = []
    for unit in sorted(units, key=lambda unit: -len(unit.evidence)):
        words = set(normalised(unit.evidence))
        for at, other in enumerate(whole):
            if len(words & set(normalised(other.evidence))) > OVERLAP_SHARE * len(words):
                whole[at] = Unit((*other.questions, *unit.questions), other.evidence, other.source)
                break
        else:
            whole.append(unit)
    return whole


def chosen(units: Sequence[Unit], max_tokens: int) -> list[Unit]:
    """Choose units by utility, one at a time, as long as they fit."""
    left = list(units)
    said: set[str] = set()
    picked: list[Unit] = []
    room = max_tokens
    while left:
        best = max(left, key=lambda unit: utility(unit, said))
        left.remove(best)
        tokens = len(encoder(ENCODING).encode_ordinary(best.text))
        if tokens <= room:
            room -= tokens
            picked.append(best)
            said |= set(normalised(best.evidence))
    return picked


def utility(unit: Unit, said: set[str]) -> float:
    """Equation 5: what a unit is worth beside the words that were chosen already."""
    words = normalised(unit.evidence)
    if not words:
        return float("-inf")
    specific = len(_SPECIFIC.findall(unit.evidence)) / len(words)
    redundant = sum(word in said for word in words) / len(words)
    return COVERAGE * len(unit.questions) + SPECIFICITY * specific - REDUNDANCY * redundant


def _sources(unit: Unit, part: Segment) -> tuple[int, ...]:
    """Indexes of the messages that a unit names, all of its session where it names none."""
    named = [int(number) for number in re.findall(r"turn_(\d+)", unit.source)]
    return tuple(at for at in named if at in part.messages) or part.messages
