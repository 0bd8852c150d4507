"""
The span check: whether a text says nothing but what was said, and where that stands.

What a model writes about a conversation may be invented, turned round or dictated by a message. So it is held against
the clauses that it claims to tell: all names, numbers, dates and identifiers must stand there, nearly all other words,
and a negation on both sides or on neither. What fails is not stored.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from palimpsest.core.archive.chunking import query_terms, terms
from palimpsest.core.recall.utterance import folded
from palimpsest.core.writing.clauses import Clause, clauses, is_order
from palimpsest.domain import SourceMessage, Span

FOREIGN_SHARE = 0.2  # of a text's words of meaning: a verb put otherwise, not a second statement
MOST_CLAUSES = 4  # one item tells one thing
REPORTING = frozenset(
    terms("user assistant speaker person people someone says said tells told mentions mentioned asks asked their who")
)

_WORD = re.compile(r"[^\W_]+(?:['\u2019._:/@+-]+[^\W_]+)*")
_SPECIFIC = re.compile(r"[^\W\d_a-z]|\d")  # a capital or a digit
_NEGATION = re.compile(
    r"\b(?:no|not|never|none|nobody|nothing|neither|nor|without|cannot|kein\w*|nicht|nie|pas|jamais|nunca|nao|não|non)\b"
    r"|n['\u2019]t\b",
    re.IGNORECASE,
)


def source_spans(text: str, segment: Sequence[SourceMessage], messages: Collection[int]) -> tuple[Span, ...]:
    """
    The spans of the messages in which a text was said; empty where it was not.

    Args:
        text: what is to be stored.
        segment: the messages that it may come from.
        messages: indexes into the segment, those that the text claims to tell; others are not looked at.

    Returns:
        Spans of at most four clauses that hold what the text says, in order of the conversation.
    """
    if is_order(text):
        return ()
    claimed = tuple(clause for clause in clauses(segment) if clause.message in messages)
    chosen = _covering_clauses(frozenset(query_terms(text)), claimed)
    if not chosen or not says_no_more(text, [spoken for clause in chosen for spoken in (clause.speaker, clause.text)]):
        return ()
    return tuple(clause.span(segment) for clause in chosen)


def says_no_more(text: str, said: Sequence[str], *, is_statement: bool = True) -> bool:
    """Whether a text (a question or title: what it names) says no more than these, and turns nothing round."""
    whole = "\n".join(said)
    words = {folded(word) for word in _WORD.findall(whole)}
    words |= {part for word in words for part in re.split(r"[^\w]+", word)}
    held = frozenset(terms(whole))
    meaning = [term for term in query_terms(text) if term not in REPORTING]
    for word in filter(_SPECIFIC.search, _WORD.findall(text)):
        is_said = folded(word) in words or folded(word).removesuffix("'s") in words
        if not is_said and not REPORTING.issuperset(query_terms(word)):
            return False
    if not is_statement:
        return True
    foreign = sum(term not in held for term in meaning)
    return (
        bool(meaning)
        and foreign <= FOREIGN_SHARE * len(meaning)
        and bool(_NEGATION.search(text)) == bool(_NEGATION.search(whole))
    )


def _covering_clauses(meaning: frozenset[str], told: Sequence[Clause]) -> list[Clause]:
    """The fewest clauses that hold most of these terms, greedily."""
    left = set(meaning)
    held = [frozenset((*terms(clause.text), *terms(clause.speaker))) for clause in told]
    chosen: list[int] = []
    while left and len(chosen) < MOST_CLAUSES:
        best = max(range(len(told)), key=lambda at: (len(left & held[at]), -len(told[at].text), -at), default=-1)
        if best < 0 or not left & held[best]:
            break
        chosen.append(best)
        left -= held[best]
    return [told[at] for at in sorted(chosen)]
