"""
Standing rules: what a user asked to hold from now on, in the words in which it was asked.

A later rule about the same thing takes the place of an earlier one: who says "always answer in English" no longer wants
German. Two rules are about the same thing where they share most words that carry meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from palimpsest.core.archive.chunking import query_terms
from palimpsest.core.recall.utterance import is_lasting_wish
from palimpsest.domain import AccountLine
from palimpsest.domain.frozen import frozen

RULE_CHARS = 200  # of one rule: a longer sentence tells more than it asks
RULES_CHARS = 400  # of all rules of a block
SHARED = 0.5  # of the words of the shorter one, from which on two rules are about the same thing
LEAST_CHARS = 12  # "never mind" is no rule

_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?](?!\s|$)[^.!?\n]*)*[.!?]*")
_LASTS = re.compile(
    r"(?i)\b(?:always|never|from now on|in (?:the )?future|every time|whenever|by default|do not ever|don't ever"
    r"|remember to|make sure (?:to|you|that you) (?:always|never))\b"
)
_IDLE = frozenset("always never now every time whenever future default remember sure make ever".split())  # noqa: SIM905
_MARKUP = re.compile(r"^[\s>*#\-\d.)]+")


@frozen
class _Rule:
    text: str
    occurrence: int
    about: frozenset[str]


def rules(said: Iterable[tuple[int, str]], visible: str) -> tuple[AccountLine, ...]:
    """
    The rules that hold, oldest first, in at most 400 characters; where there are more, the newest.

    Args:
        said: occurrence and text of what the user said, in its order.
        visible: what the model still sees: its rules are not told again, but take the place of earlier ones.
    """
    holding: list[_Rule] = []
    for occurrence, text in said:
        for rule in _rules_of(text, occurrence):
            holding = [other for other in holding if not _is_about(rule, other)]
            holding.append(rule)
    still = [rule for seen in _rules_of(visible, 0) for rule in [seen]]
    lines: list[AccountLine] = []
    room = RULES_CHARS
    for rule in reversed(holding):
        if rule.text in visible or any(_is_about(seen, rule) for seen in still):
            continue
        line = AccountLine("user", rule.text, (rule.occurrence,))
        if line.chars <= room:
            lines.append(line)
            room -= line.chars
    return tuple(reversed(lines))


def _rules_of(text: str, occurrence: int) -> Sequence[_Rule]:
    found = []
    for sentence in _SENTENCE.findall(text) if _LASTS.search(text) else ():
        rule = _MARKUP.sub("", sentence).strip()
        if LEAST_CHARS <= len(rule) <= RULE_CHARS and not rule.endswith("?") and _LASTS.search(rule) and _asks(rule):
            found.append(_Rule(rule, occurrence, frozenset(query_terms(rule)) - _IDLE))
    return found


def _asks(rule: str) -> bool:
    """Whether a sentence asks for something, and does not tell what always happens."""
    return is_lasting_wish(rule) or bool(
        re.match(r"(?i)(?:please )?(?:always|never|from now on|whenever|do not|don't)\b", rule)
    )


def _is_about(new: _Rule, old: _Rule) -> bool:
    """Whether two rules are about the same thing."""
    shared = len(new.about & old.about)
    return shared > 0 and shared >= SHARED * min(len(new.about), len(old.about))
