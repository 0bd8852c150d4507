"""
Questions about "the user" as the user would ask them: agents say "the user's manager" where a person says "my boss".

What was archived is in the first person ("I live in Leipzig"), and so is what relevance was fitted on.
"""

from __future__ import annotations

import re

_VERBS = {"is": "am", "was": "was", "has": "have", "does": "do"}
_USER = r"(?:the|this) user"
_VERB = "|".join(_VERBS)
_OBJECT = re.compile(
    r"\b(about|after|at|by|for|from|of|on|to|with|ask|asked|call|called|give|gave|remind|tell|told)"
    rf" {_USER}\b(?!['\u2019])"
    rf"|\b{_USER}(?=\s*(?:[?.!,;]|\Z))",
    re.IGNORECASE,
)
_OWN = re.compile(rf"\b{_USER}['\u2019]s?(?!\w)", re.IGNORECASE)
_ASKS = re.compile(rf"\b({_VERB}) {_USER}\b", re.IGNORECASE)
_SAYS = re.compile(rf"\b{_USER} ({_VERB})\b", re.IGNORECASE)
_SUBJECT = re.compile(rf"\b{_USER}\b", re.IGNORECASE)


def as_user(question: str) -> str:
    """
    A question with "the user" in the first person; one that does not speak of the user as it is. English alone.

    "Where does the user live?" becomes "Where do I live?", "the user's manager" "my manager". Where a program's users
    are meant, nobody can tell: ask both ways.
    """
    if not _SUBJECT.search(question):
        return question
    text = _OWN.sub("my", question)
    text = _ASKS.sub(lambda found: f"{_first_person_verb(found[1])} I", text)
    text = _SAYS.sub(lambda found: f"I {_first_person_verb(found[1])}", text)
    text = _OBJECT.sub(lambda found: f"{found[1]} me" if found[1] else "me", text)
    return _SUBJECT.sub("I", text)


def _first_person_verb(verb: str) -> str:
    first = _VERBS[verb.lower()]
    return first.capitalize() if verb[0].isupper() else first
