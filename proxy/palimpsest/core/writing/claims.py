"""Claims: a model's statements of what messages say, before they are verified."""

from __future__ import annotations

from collections.abc import Sequence

from palimpsest.core.archive.chunking import query_terms
from palimpsest.core.writing.clauses import clauses, is_order
from palimpsest.core.writing.cues import cues
from palimpsest.core.writing.entries import PAPER, Count, cost
from palimpsest.core.writing.grounding import says_no_more, source_spans
from palimpsest.core.writing.information import TermStatistics
from palimpsest.core.writing.topics import label
from palimpsest.domain import Item, SourceMessage, Span, frozen

QUESTION_CHARS = 200
TOPIC_CHARS = 60


@frozen
class Claim:
    """A text, the messages that it claims to tell (indexes into the segment), and what it answers or is about."""

    text: str
    messages: tuple[int, ...]
    question: str = ""
    topic: str = ""


def verified(claims: Sequence[Claim], segment: Sequence[SourceMessage], statistics: TermStatistics) -> list[Item]:
    """
    The claims that hold, as items with their sources.

    A question or topic that names what the segment does not is left out; a topic is named by its words instead.
    """
    items = []
    spoken = [part for clause in clauses(segment) for part in (clause.speaker, clause.text)]
    for claim in claims:
        text = " ".join(claim.text.split())
        if spans := source_spans(text, segment, frozenset(claim.messages)):
            question = claim.question.strip()
            is_asked = len(question) <= QUESTION_CHARS and question.endswith("?") and _is_named_in(question, spoken)
            topic = claim.topic.strip()
            if topic and (len(topic) > TOPIC_CHARS or not _is_named_in(topic, spoken)):
                topic = label([segment[at].text for at in claim.messages if at < len(segment)], statistics)
            items.append(Item(text, spans, question if is_asked else "", topic))
    return items


def select_by_information(
    items: Sequence[Item], budget_tokens: int, count: Count, statistics: TermStatistics
) -> tuple[Item, ...]:
    """Select items by what they tell that is new for their length, until the budget is full, in order."""
    said: set[str] = set()
    left = [(item, frozenset(query_terms(item.text)), cost(item, count)) for item in items]
    kept: list[Item] = []
    while left:
        best = max(left, key=lambda row: statistics.information(row[1] - said) / row[2])
        left.remove(best)
        item, terms, tokens = best
        if tokens <= budget_tokens and terms - said:
            budget_tokens -= tokens
            kept.append(item)
            said |= terms
    return in_order(kept)


def select_by_utility(items: Sequence[Item], budget_tokens: int, count: Count) -> tuple[Item, ...]:
    """
    Select items by u(e) of WhenLoss (equation 5) until the budget is full, in order of the conversation.

    Of items whose spans overlap the longest is kept, and covers the questions of all of them.
    """
    merged: list[tuple[Item, int]] = []
    for item in sorted(items, key=lambda item: -len(item.text)):
        at = next((at for at, (other, _) in enumerate(merged) if _overlap(item.sources, other.sources)), None)
        if at is None:
            merged.append((item, 1))
        else:
            merged[at] = (merged[at][0], merged[at][1] + 1)
    said: set[str] = set()
    kept: list[Item] = []
    while merged:
        best = max(merged, key=lambda row: _utility(row[0], row[1], said))
        merged.remove(best)
        tokens = cost(best[0], count)
        if tokens <= budget_tokens:
            budget_tokens -= tokens
            kept.append(best[0])
            said |= set(query_terms(best[0].text))
    return in_order(kept)


def in_order(items: Sequence[Item]) -> tuple[Item, ...]:
    """The items by where their first span stands in the conversation."""
    return tuple(sorted(items, key=lambda item: (item.sources[0].occurrence, item.sources[0].start)))


def _utility(item: Item, coverage: int, said: set[str]) -> float:
    """Utility u(e) of an item, given the terms of the items that were selected before it."""
    words = item.text.split()
    terms = set(query_terms(item.text))
    specificity = min(1.0, sum(len(cue.text.split()) for cue in cues(item.text)) / len(words))
    return PAPER.utility(coverage, specificity, len(terms & said) / max(len(terms), 1))


def _overlap(a: Sequence[Span], b: Sequence[Span]) -> bool:
    """Whether a span of one shares characters with a span of the other."""
    return any(
        one.occurrence == other.occurrence and one.start < other.stop and other.start < one.stop
        for one in a
        for other in b
    )


def _is_named_in(text: str, said: Sequence[str]) -> bool:
    """Whether all that a question or topic names stands in these texts, and it is no order."""
    return not is_order(text) and says_no_more(text, said, is_statement=False)
