"""
Standing facts as they are looked up for one request: what holds, who states it, and what changed.
"""

from __future__ import annotations

from collections import defaultdict

import orjson

from proxy.core.facts.standing import LAG_SECONDS
from proxy.domain import Fact, FactCategory, FactOrigin, FactQuery, FactSource, StandingFact, StandingFacts, Stated
from proxy.store.connection import Ask, Row
from proxy.store.facts import current, visible_to

MOST = 200  # facts; some fifteen fit into a request

STATED = """
SELECT stated.public, stated.subject, stated.slot, stated.value, stated.single, stated.category, stated.occurrence,
    ifnull(occurrence.full, 0), stated.said_at, stated.valid_from, stated.valid_until
FROM ({facts}) AS stated LEFT JOIN occurrence ON occurrence.id = stated.occurrence
ORDER BY stated.said_at DESC, stated.id DESC
"""
NEWS = """
SELECT 1 FROM ({facts}) WHERE said_at >= :news OR valid_from BETWEEN :since AND :now
    OR (valid_until <= :now AND public IN (SELECT value FROM json_each(:told))) LIMIT 1
"""  # that came, began to hold, or was told and is over
SINCE = "SELECT created_at FROM occurrence WHERE id = ?"


def standing_facts(ask: Ask, query: FactQuery, now: float) -> StandingFacts:
    """
    The facts that a request may be told; nothing where nothing changed since the time that it asks for.

    Args:
        now: Unix seconds.
    """
    visible = visible_to(query.whose)
    if visible is None:
        return StandingFacts()
    facts, _, args = visible
    since = max((at for (at,) in ask(SINCE, (query.since,))), default=0.0) if query.since else 0.0
    asked = {"news": since - LAG_SECONDS, "since": since, "now": now, "told": orjson.dumps(query.told).decode()}
    if query.since and not ask(NEWS.format(facts=facts), args | asked):
        return StandingFacts(since=since)
    rows = ask(STATED.format(facts=facts), args)
    by_slot: dict[tuple[str, str], list[tuple[Stated, bool]]] = defaultdict(list)
    for id, subject, slot, value, single, _, occurrence, full, *_ in rows:
        by_slot[subject, slot].append((Stated(id, value, occurrence, full), bool(single)))
    found = []
    for fact in current(ask, query.whose, now, MOST):
        stated = by_slot[fact.subject, fact.slot]
        same = tuple(one for one, _ in stated if one.value.lower() == fact.value.lower())
        others = (one for one, single in stated if single and one.value.lower() != fact.value.lower())
        found.append(StandingFact(fact, same, tuple(others) if fact.is_single else ()))
    over = frozenset(query.told)
    ended = tuple(_ended(row) for row in rows if row[0] in over and row[-1] is not None and row[-1] <= now)
    return StandingFacts(tuple(found), ended, since)


def _ended(row: Row) -> Fact:
    id, subject, slot, value, single, category, occurrence, _, said_at, begins, ends = row
    return Fact(
        id=id,
        tenant="",
        user="",
        scope="",
        subject=subject,
        slot=slot,
        value=value,
        category=FactCategory(category),
        source=FactSource(FactOrigin.MESSAGE if occurrence else FactOrigin.TOOL, occurrence=occurrence),
        confidence=1.0,
        said_at=said_at,
        valid_from=begins,
        valid_until=ends,
        is_single=bool(single),
        is_current=False,
    )
