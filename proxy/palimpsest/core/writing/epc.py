"""
Expected predictive compression (EPC) without a model: what may be asked of a segment, the least evidence of each
question, and as much of it as a budget holds.

WhenLoss (arXiv 2605.24579, section 4) lets a model write five probe questions about a session and find the evidence.
Here a probe asks for an answer that stands in the segment (`core/writing/cues.py`), the rarest first, and its evidence
is the clause that answers most. Units are chosen greedily by u(e) = 1.0 coverage + 0.5 specificity - 0.3 redundancy, as
there; while the budget lasts, five more questions are asked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import groupby

from palimpsest.core.archive.chunking import query_terms, terms
from palimpsest.core.recall.utterance import QUESTION_MARKS, read_utterance
from palimpsest.core.writing.clauses import Clause, clauses, join_clauses
from palimpsest.core.writing.cues import Cue, Kind, cues
from palimpsest.core.writing.entries import LEAST_TOKENS, PAPER, Count, Weights, cost, share
from palimpsest.core.writing.information import TermStatistics
from palimpsest.domain import Item, SourceMessage, frozen

STATEMENT_SHARE = 0.5  # of the information of a statement's rarest terms, beside that of a name or number
STATEMENT_TERMS = 3
UNNAMED_SHARE = 0.1  # of what names nothing and states nothing: it comes when nothing else is left
QUESTION_SHARE = 0.5  # of what is asked, not told
TOPIC_TERMS = 2  # of a question: enough to find it by; a third costs three points of spans at 2,000 tokens
LEAST_WORDS = 3  # of a clause: fewer are a number in a list, a greeting or a heading


@frozen
class Probe:
    """
    A question: what is asked for, and the units (indices) that answer it.

    `likelihood`, w(q) of equation 4, is in bits, and as a share of the likeliest among those that are asked at once.
    """

    kind: Kind
    likelihood: float
    units: tuple[int, ...]


@frozen
class Unit:
    """A clause as evidence: its terms of meaning, the answers in it, and their share of its words, 0..1."""

    clause: Clause
    terms: frozenset[str]
    cues: tuple[Cue, ...]
    specificity: float

    @property
    def text(self) -> str:
        return f"{self.clause.speaker}: {self.clause.text}" if self.clause.speaker else self.clause.text


def write(
    segment: Sequence[SourceMessage],
    budget_tokens: int,
    count: Count,
    statistics: TermStatistics,
    weights: Weights = PAPER,
) -> tuple[Item, ...]:
    """What to keep of a segment, in order of the conversation; without statistics of the tenant all words are equal."""
    units = units_of(segment)
    probes = sorted(probes_of(units, segment, statistics), key=lambda probe: -probe.likelihood)
    chosen: dict[int, Kind] = {}
    said: set[str] = set()
    room = budget_tokens
    for first in range(0, len(probes), weights.probes):
        if room < LEAST_TOKENS:
            break
        covers = _coverage(probes[first : first + weights.probes], units, chosen)
        while covers:
            best = max(covers, key=lambda at: (utility(units[at], covers[at], said, weights), -at))
            kind = covers.pop(best)[0].kind
            spent = cost(_item([best], kind, units, segment, statistics), count)
            if spent <= room:
                room -= spent
                chosen[best] = kind
                said |= units[best].terms
    return tuple(_items(units, chosen, segment, statistics))


def units_of(segment: Sequence[SourceMessage]) -> list[Unit]:
    """The clauses of a segment that tell anything, as evidence; a question only where a user names something in it."""
    found = clauses(segment)
    speakers = {clause.speaker.lower() for clause in found}
    units = []
    for clause in found:
        meaning = frozenset(query_terms(clause.text))
        words = clause.text.split()
        if meaning and len(words) >= LEAST_WORDS and not read_utterance(clause.text).is_small_talk:
            named = tuple(cue for cue in cues(clause.text) if cue.text.lower() not in speakers or not cue.text)
            if clause.text.endswith(QUESTION_MARKS) and (clause.role == "assistant" or not named):
                continue
            specific = sum(len(cue.text.split()) for cue in named)
            units.append(Unit(clause, meaning, named, min(1.0, specific / len(words))))
    return units


def probes_of(units: Sequence[Unit], segment: Sequence[SourceMessage], statistics: TermStatistics) -> Iterator[Probe]:
    """A question for each answer: once for all units that hold it."""
    asked: dict[tuple[Kind, str], list[int]] = defaultdict(list)
    for at, unit in enumerate(units):
        for cue in unit.cues or (Cue(Kind.WHAT, ""),):
            asked[cue.kind, cue.text.lower() or str(at)].append(at)
    shares = [_evidence_share(unit, segment) for unit in units]
    for (kind, answer), where in asked.items():
        if kind is Kind.WHAT:
            rarest = sorted((statistics.bits(term) for term in units[where[0]].terms), reverse=True)[:STATEMENT_TERMS]
            part = STATEMENT_SHARE if units[where[0]].cues else UNNAMED_SHARE
            bits = part * sum(rarest) / STATEMENT_TERMS
        else:
            bits = max((statistics.bits(term) for term in terms(answer)), default=0.0)
        yield Probe(kind, bits * max(shares[at] for at in where), tuple(where))


def utility(unit: Unit, covered: Sequence[Probe], said: Set[str], weights: Weights) -> float:
    """Equation 5: what a unit is worth beside the terms that were chosen already; a probe counts as its likelihood."""
    coverage = sum(probe.likelihood for probe in covered)
    return weights.utility(coverage, unit.specificity, len(unit.terms & said) / len(unit.terms))


def _evidence_share(unit: Unit, segment: Sequence[SourceMessage]) -> float:
    return share(segment[unit.clause.message]) * (QUESTION_SHARE if unit.clause.text.endswith(QUESTION_MARKS) else 1.0)


def _coverage(probes: Sequence[Probe], units: Sequence[Unit], chosen: Mapping[int, Kind]) -> dict[int, list[Probe]]:
    """For each clause, the probes that it is to answer: of several the clause that answers most, then the shortest."""
    likeliest = probes[0].likelihood or 1.0
    covers: dict[int, list[Probe]] = defaultdict(list)
    for probe in probes:
        if not any(at in chosen for at in probe.units):
            least = max(probe.units, key=lambda at: (len(units[at].cues), -len(units[at].clause.text), -at))
            covers[least].append(replace(probe, likelihood=probe.likelihood / likeliest))
    return covers


def _items(
    units: Sequence[Unit], chosen: Mapping[int, Kind], segment: Sequence[SourceMessage], statistics: TermStatistics
) -> Iterator[Item]:
    """Items of the chosen clauses; those of one sentence make one item."""
    for _, of_sentence in groupby(sorted(chosen), key=lambda at: units[at].clause.sentence):
        ats = [*of_sentence]
        yield _item(ats, chosen[ats[0]], units, segment, statistics)


def _item(
    ats: Sequence[int], kind: Kind, units: Sequence[Unit], segment: Sequence[SourceMessage], statistics: TermStatistics
) -> Item:
    """One item of several units that answer the same kind of question."""
    first = units[ats[0]]
    text = join_clauses([first.text, *(units[at].clause.text for at in ats[1:])])
    spans = tuple(units[at].clause.span(segment) for at in ats)
    return Item(text, spans, _question(kind, first, statistics))


def _question(kind: Kind, unit: Unit, statistics: TermStatistics) -> str:
    """The question that a unit answers: its kind, and its rarest words that are not the answer."""
    answers = {term for cue in unit.cues for term in terms(cue.text)}
    topic = sorted(unit.terms - answers, key=lambda term: (-statistics.bits(term), term))[:TOPIC_TERMS]
    words = (word.strip(".,;:!?\"'()[]*") for word in unit.clause.text.split())
    shared = [word for word in dict.fromkeys(words) if not set(topic).isdisjoint(terms(word))]
    return f"{kind.capitalize()}: {', '.join(shared[:TOPIC_TERMS])}?" if shared else f"{kind.capitalize()}?"
