"""
Standing facts: those that hold for whoever sends a request, looked up to be told in it.
"""

from __future__ import annotations

from palimpsest.domain.facts import Fact, FactScope
from palimpsest.domain.frozen import frozen


@frozen
class FactQuery:
    """
    The look-up of facts for one request.

    `since` is an occurrence: only what changed after it was journalled is asked for; 0: all that stand. `told` are ids
    of facts that the model still sees in blocks of before.
    """

    whose: FactScope
    since: int = 0
    shown: tuple[str, ...] = ()


@frozen
class Stated:
    """One message that states a value, or what a tool was told (occurrence and fingerprint 0)."""

    fact: str  # id
    value: str
    occurrence: int = 0
    full: int = 0


@frozen
class CurrentFact:
    """A fact, all that state it, and what states other values of its slot, the newest first."""

    fact: Fact
    stated: tuple[Stated, ...] = ()
    earlier: tuple[Stated, ...] = ()


@frozen
class CurrentFacts:
    """
    The facts that hold, pinned ones first and then the newest; and those of `FactQuery.shown` that are over.

    `since` is the time of `FactQuery.since`, Unix seconds.
    """

    facts: tuple[CurrentFact, ...] = ()
    ended: tuple[Fact, ...] = ()
    since: float = 0.0
