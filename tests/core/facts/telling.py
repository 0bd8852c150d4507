"""Facts as plain values, for tests that need no database."""

from __future__ import annotations

from palimpsest.domain import USER_SUBJECT, CurrentFact, Fact, FactCategory, FactOrigin, FactSource, Stated

SAID_AT = 1_777_680_000.0  # 2026-05-02


def fact(
    slot: str,
    value: str,
    subject: str = USER_SUBJECT,
    category: FactCategory = FactCategory.IDENTITY,
    *,
    id: str = "",
    occurrence: int = 0,
    said_at: float = SAID_AT,
    is_single: bool = True,
    is_pinned: bool = False,
) -> Fact:
    """A fact that a message states, where one is named; else one that a tool was told."""
    origin = FactOrigin.MESSAGE if occurrence else FactOrigin.TOOL
    return Fact(
        id=id or f"f-{slot}-{value}",
        tenant="one",
        user="ada",
        scope="",
        subject=subject,
        slot=slot,
        value=value,
        category=category,
        source=FactSource(origin, occurrence=occurrence),
        confidence=0.95,
        said_at=said_at,
        is_single=is_single,
        is_pinned=is_pinned,
    )


def standing(fact: Fact, *fulls: int, earlier: tuple[Stated, ...] = ()) -> CurrentFact:
    """
    A fact that stands.

    Args:
        fulls: fingerprints of the messages that state it.
    """
    stated = tuple(Stated(fact.id, fact.value, fact.source.occurrence, full) for full in fulls or (0,))
    return CurrentFact(fact, stated, earlier)
