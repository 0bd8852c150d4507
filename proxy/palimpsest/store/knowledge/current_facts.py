"""Standing facts as they are looked up for one request: what holds, who states it, and what changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import orjson

from palimpsest.core.facts.choice import LAG_SECONDS
from palimpsest.domain import CurrentFact, CurrentFacts, Fact, FactCategory, FactOrigin, FactQuery, FactSource, Stated
from palimpsest.store.engine import Ask, Row, ids
from palimpsest.store.knowledge.facts import OF_TENANT, View, current_and_ended, visible_to

MOST = 200  # facts; some fifteen fit into a request
MOST_STATED = 20  # statements of a place, the newest: a request that carries an older one alone may hear it again

STATED = f"""
SELECT fact.place, public, fact.value, coalesce(fact.occurrence, 0), coalesce(fingerprint, 0)
FROM numbers(:places) AS asked INNER JOIN fact ON fact.id IN (
    SELECT id FROM fact WHERE {{own}} AND place = asked.value AND retirement = 0
    ORDER BY said_at DESC, id DESC LIMIT {MOST_STATED})
LEFT JOIN occurrence ON occurrence.id = fact.occurrence ORDER BY said_at DESC, fact.id DESC
"""
OVER = f"""
SELECT public, subject, slot, value, single, category, coalesce(occurrence, 0), said_at, valid_from, valid_until
FROM fact /*+ INDEX(fact_by_public) */ WHERE {OF_TENANT} AND public IN (SELECT value FROM texts(:told)) AND {{own}}
    AND retirement = 0 AND (valid_until <= :now OR place IN (SELECT value FROM numbers(:ended)))
"""
NEWS = f"""
SELECT 1 WHERE EXISTS (SELECT 1 FROM fact WHERE {{standing}} AND retirement = 0 AND said_at >= :news)
OR EXISTS (SELECT 1 FROM fact /*+ INDEX(fact_beginning) */ WHERE {OF_TENANT} AND valid_from BETWEEN :since AND :now
    AND {{own}} AND retirement = 0)
OR EXISTS ({OVER})
"""  # that came, began to hold, or was told and is over
SINCE = "SELECT created_at FROM occurrence WHERE id = ?"


def current_facts(ask: Ask, query: FactQuery, now: float) -> CurrentFacts:
    """The facts that a request may be told; nothing where nothing changed since the time that it asks for."""
    view = visible_to(query.whose)
    if view is None:
        return CurrentFacts()
    since = max((at for (at,) in ask(SINCE, (query.since,))), default=0.0) if query.since else 0.0
    asked = {"news": since - LAG_SECONDS, "since": since, "now": now, "told": orjson.dumps(query.shown).decode()}
    args = {**view.args, **asked, "ended": "[]"}
    if query.since and not ask(NEWS.format(own=view.own, standing=view.standing), args):
        return CurrentFacts(since=since)
    facts, over = current_and_ended(ask, query.whose, now, MOST)
    args["ended"] = ids(over)
    by_place = _stated(ask, view, facts)
    found = []
    for fact in facts:
        stated = by_place[fact.place]
        same = tuple(one for one in stated if one.value.lower() == fact.value.lower())
        others = tuple(one for one in stated if one.value.lower() != fact.value.lower())
        found.append(CurrentFact(fact, same, others))
    ended = tuple(_to_fact(row) for row in ask(OVER.format(own=view.own), args)) if query.shown else ()
    return CurrentFacts(tuple(found), ended, since)


def _stated(ask: Ask, view: View, facts: Sequence[Fact]) -> dict[int | None, list[Stated]]:
    """The statements of each place, the newest first."""
    places = ids(fact.place for fact in facts if fact.place is not None)
    by_place: dict[int | None, list[Stated]] = defaultdict(list)
    for place, *stated in ask(STATED.format(own=view.own), {**view.args, "places": places}):
        by_place[place].append(Stated(*stated))
    return by_place


def _to_fact(row: Row) -> Fact:
    id, subject, slot, value, single, category, occurrence, said_at, begins, ends = row
    return Fact(
        id=id,
        subject=subject,
        slot=slot,
        value=value,
        category=FactCategory(category),
        source=FactSource(FactOrigin.MESSAGE if occurrence else FactOrigin.TOOL, occurrence=occurrence),
        said_at=said_at,
        valid_from=begins,
        valid_until=ends,
        is_single=bool(single),
        is_current=False,
    )
