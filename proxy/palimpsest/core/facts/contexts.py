"""The words around a statement: where in a sentence one may begin, and which words after it retract it."""

from __future__ import annotations

import re
from enum import Enum

from palimpsest.domain import FactCategory

# Before a statement: nothing, a greeting, the end of another clause.
_MAY_LEAD = re.compile(
    r"(?:^[\s*\u2022(-]*(?:\d+[.)]\s*)?|[,;:\u2014\u2013(]\s*|\s-+\s*)"
    r"(?:(?:and|but|so|also|plus|well|ok|okay|yes|yeah|no|nope|actually|because|since|as|though|although|while|btw|fyi"
    r"|by the way|for the record|just so you know|hi|hello|hey|hi there|hello there|hey there|oh|anyway|now|currently"
    r"|right now|thanks|especially|considering|given|given that|now that|remember that|note that|today"
    r"|(?:it )?turn(?:s|ed) out(?: that)?|as it turns out|on second thoughts?|(?:quick )?update|good news"
    r"|forgot to (?:say|mention)|since \w+(?: \d{4})?|change of plans?|correction"
    r"|as of [\w ,]{4,20})[,!:]?\s+){0,3}$|\b(?:and|but|so|because|since|considering|given that|now that|the fact that"
    r"|although|that's why|remember that)\s+(?:now\s+)?$",
    re.IGNORECASE,
)
_PRESUPPOSING = re.compile(r"\b(?:because|since|considering|given(?: that)?|now that|although|the fact that)\s+$", re.I)
# A decision may stand behind it without a comma.
_OPENED = re.compile(r"^\s*(?:after|in|for|at|on|last|this|yesterday|today)\b[\w' -]{0,60}\s$", re.IGNORECASE)
_ABOUT = re.compile(r"\s*(?P<about>(?:for|in|on) (?!second thought)[\w' -]{2,60}),?\s$", re.IGNORECASE)
# A task: what shall always hold there, holds for what is made.
_MAKING = re.compile(
    r"\s*[-*\u2022]?\s*(?:please |now |then |also |can you |could you |let's |I want you to |I need you to )*"
    r"(?:create|add|write|implement|build|make|generate|design|draft|develop|update|refactor|fix|change|modify)\b",
    re.IGNORECASE,
)
# Goes on about what something always does, and is no order.
_ADDED = re.compile(r"\b(?:and|but|because|since|as|that)\s+$", re.IGNORECASE)
# Parts a statement from the clause before it.
_PARTED = re.compile(r"[;:]|\b(?:but|so|because|since|though|although|while|plus|also|by the way|btw)\b", re.IGNORECASE)
_SUPPOSED = re.compile(  # holds for the whole sentence
    r"\b(?:if|suppose|supposing|imagine|pretend|assume|assuming|unless|whether|hypothetically|let's say|say that"
    r"|in case|said|says|told|claims?|claimed|wrote|asked|thinks|(?<!second )thought|believes|e\.g|for example"
    r"|for instance"
    r"|such as|like when|as if|as though|once said|dream(?:ed|t)?|quote)\b",
    re.IGNORECASE,
)
_UNSURE = re.compile(  # holds for its clause
    r"\b(?:wish|would|could|might|may|maybe|perhaps|probably|possibly|wondering|wonder|used to|not sure|unsure|doubt"
    r"|not|never|don't|doesn't|isn't|wasn't|can't|won't|nobody|no one|when|where|how|what|which|who|why|hope"
    r"|hoping)\b",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[,;:(]|\s-+\s|[\u2013\u2014]|\b(?:but|and|so)\s")
_ASKING = re.compile(
    r"\s*(?:so |and |but |hmm,? )?(?:do|does|did|is|are|am|was|were|can|could|will|would|should|shall|what|what's"
    r"|which|who|how|how's|why|when|where|have|has)\b",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r",? (?:if|unless|or|when|whenever|until|except|isn't|aren't|don't I)\b|,? (?:right|correct)\?", re.I
)


class ClauseStart(Enum):
    """Kinds of statements that may begin at a place, by the words before it in its sentence."""

    NOTHING = "a part of a clause"
    DECISION = "a statement behind 'after the outage'"
    ORDER = "a clause beside one that is not certain"
    STATEMENT = "a clause that goes on from another one"
    ANYTHING = "a sentence"

    def allows(self, category: FactCategory) -> bool:
        """Whether a statement of this category may begin there."""
        if category is FactCategory.INSTRUCTION:
            return self in (ClauseStart.ANYTHING, ClauseStart.ORDER)
        if category is FactCategory.DECISION and self is ClauseStart.DECISION:
            return True
        return self in (ClauseStart.ANYTHING, ClauseStart.STATEMENT)


def clause_start(leading: str) -> ClauseStart:
    """Kinds of statements that may begin after these words of a sentence."""
    lead = _MAY_LEAD.search(leading)
    if lead is None:
        return ClauseStart.DECISION if _OPENED.search(leading) else ClauseStart.NOTHING
    if _PRESUPPOSING.search(leading):
        return ClauseStart.STATEMENT
    if _ASKING.match(leading):
        return ClauseStart.NOTHING
    goes_on = _ADDED.search(leading) is not None or _MAKING.match(leading) is not None
    if not _PARTED.search(lead[0]) and _UNSURE.search(_CLAUSE.split(leading[: lead.start()])[-1]):
        return ClauseStart.NOTHING if goes_on else ClauseStart.ORDER
    return ClauseStart.STATEMENT if goes_on else ClauseStart.ANYTHING


def opening(leading: str) -> int | None:
    """Where the words begin that say what a decision is about ("for the wedding menu we settled on sea bass")."""
    found = _ABOUT.match(leading)
    return found.start("about") if found is not None else None


def is_supposed(leading: str) -> bool:
    """Whether these words make the rest of their sentence a supposition, an example or somebody else's words."""
    return _SUPPOSED.search(leading) is not None


def is_presupposed(leading: str) -> bool:
    """Whether these words presuppose what follows them, so that it holds even in a question."""
    return _PRESUPPOSING.search(leading) is not None


def is_taken_back(trailing: str) -> bool:
    """Whether what follows a statement makes it hold only sometimes, or begins a list."""
    return _CONDITION.match(trailing) is not None or trailing.lstrip().startswith((":", "..", "\u2026"))
