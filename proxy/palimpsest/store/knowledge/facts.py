"""
Facts as they are read: what is current in a scope, and what was said before.

A slot of one value holds what was said last, and denials end what they deny (`core/facts/endings.py`): both are
computed from what is stored, so that an older value stands again when the newer statement is erased, retired or no
longer valid. What was said several times is one fact. What is current is
read without what it superseded: time grows with the facts that are asked for, not with how often they were said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

import orjson

from palimpsest.core.facts.endings import Claim, Endings
from palimpsest.domain import Fact, FactCategory, FactOrigin, FactScope, FactSource, Reach, frozen
from palimpsest.store.engine import Ask, Row, ids

SCOPE, SAID_AT, VALUE = 4, 12, 14  # columns of `STATED`
MOST = 200  # facts of one answer, unless more are asked for
PAGE = 250  # rows of `current` that are read at a time: nearly all of them are current

FACTS = """
SELECT fact.id, fact.tenant, fact.public, fact.user_id, fact.scope, coalesce(conversation.public, '') AS conversation,
    coalesce(fact.occurrence, 0) AS occurrence, start, stop, tool, who, subject, slot, value, category, single,
    confidence, said_at, valid_from, valid_until, pinned, place
FROM fact LEFT JOIN conversation ON conversation.id = fact.conversation WHERE fact.retirement = 0
"""

# Those who are not named are told apart by their conversation, unless they share one memory.
OWNER = {
    Reach.TENANT: "''",
    Reach.USER: "CASE WHEN user_id = '' THEN conversation ELSE '' END",
    Reach.CONVERSATION: "conversation",
}

STATED = """
SELECT id, tenant, public, user_id, scope, {owner}, subject, slot, lower(value), single,
    (valid_from IS NULL OR valid_from <= :now) AND (valid_until IS NULL OR valid_until > :now),
    pinned, said_at, {wanted}, value,
    category, confidence, valid_from, valid_until, conversation, occurrence, start, stop, tool, who, place
FROM ({facts}) AS told ORDER BY said_at DESC, id DESC
"""
DETAILS = """
SELECT fact.id, tenant.name, coalesce(turn.key, ''), coalesce(occurrence.role, ''), {quote}
FROM numbers(?) AS asked JOIN fact ON fact.id = asked.value JOIN tenant ON tenant.id = fact.tenant
LEFT JOIN occurrence ON occurrence.id = fact.occurrence LEFT JOIN turn ON turn.id = occurrence.turn
LEFT JOIN content ON content.id = occurrence.content
"""
QUOTE = "coalesce(substr(content.text, fact.start + 1, fact.stop - fact.start), '')"

IN_PLACES = "place IN (SELECT value FROM numbers(:places))"
BEHIND = f" AND said_at <= :at AND (said_at, fact.id) < (:at, :id) ORDER BY said_at DESC, fact.id DESC LIMIT {PAGE}"

OF_TENANT = "fact.tenant = (SELECT id FROM tenant WHERE name = :tenant)"
OF_CONVERSATION = """fact.conversation = (SELECT id FROM conversation
    WHERE tenant = (SELECT id FROM tenant WHERE name = :tenant) AND public = :conversation)"""

PINNED = f"""
SELECT DISTINCT scope, place FROM fact /*+ INDEX(fact_pinned) */
WHERE pinned <> 0 AND {OF_TENANT} AND {{own}} AND retirement = 0
"""

# The newest statement of each place.
STANDING_IN_CONVERSATION = f"""
fact.id IN (
    WITH RECURSIVE held(place) AS (
        SELECT min(place) FROM fact WHERE {OF_CONVERSATION}
        UNION ALL
        SELECT (SELECT min(place) FROM fact WHERE {OF_CONVERSATION} AND place > held.place) FROM held
        WHERE place IS NOT NULL)
    SELECT (SELECT id FROM fact WHERE {OF_CONVERSATION} AND place = held.place AND retirement = 0
        ORDER BY said_at DESC, id DESC LIMIT 1) FROM held)
"""


@frozen
class FactFilter:
    """
    A filter on facts; all given conditions must hold. `tenant` "" means all tenants, None any user or project.

    `pattern` is one with * ? and [...], in any case, and meant for subject, slot and value in a row; `has_history` adds
    what is not current.
    """

    tenant: str = ""
    user: str | None = None
    scope: str | None = None
    conversation: str = ""
    category: FactCategory | None = None
    subject: str = ""
    pattern: str = ""
    ids: Sequence[str] = ()
    has_history: bool = False
    reach: Reach = Reach.USER


def current(
    ask: Ask, whose: FactScope, now: float, limit: int = MOST, pattern: str = "", category: FactCategory | None = None
) -> list[Fact]:
    """
    The facts that hold now in a scope, pinned ones first, then the newest. A pin holds whatever is said later.

    Args:
        now: Unix seconds.
        pattern, category: that they must have; as of `FactFilter`.
    """
    return current_and_ended(ask, whose, now, limit, pattern, category)[0]


def current_and_ended(
    ask: Ask, whose: FactScope, now: float, limit: int, pattern: str = "", category: FactCategory | None = None
) -> tuple[list[Fact], frozenset[int]]:
    """The current facts, and the places of those that a later statement in other words ended."""
    view = visible_to(whose)
    if view is None:
        return [], frozenset()
    conditions, args = _conditions(category, pattern)
    args |= {**view.args, "now": now}
    stated = STATED.format(owner=OWNER[view.reach], wanted=" AND ".join(conditions), facts=f"{FACTS} AND {{}}")
    pinned = {(scope, place) for scope, place in ask(PINNED.format(own=view.own), args)}
    args["places"] = ids(place for _, place in pinned)
    first = ask(stated.format(view.in_places), args) if pinned else []
    found: list[_Judged] = []
    ended: set[int] = set()
    for is_pinned, rows in ((True, first), (False, _read_in_pages(ask, stated.format(view.standing + BEHIND), args))):
        judging = _Judging()
        for row in rows:
            if len(found) == limit:
                break
            one = judging.take(row)
            if one is not None and one.is_current and one.is_wanted and is_pinned == ((row[SCOPE], row[-1]) in pinned):
                one.is_pinned = is_pinned
                found.append(one)
        ended.update(one.row[-1] for one in judging.ended if (one.row[SCOPE], one.row[-1]) not in pinned)
    return _facts(ask, found), frozenset(ended)


def list_facts(ask: Ask, wanted: FactFilter, now: float, limit: int, after: tuple[int, int] = (0, 0)) -> list[Fact]:
    """
    The facts that match a filter, newest first.

    Args:
        now: Unix seconds.
        after: where the page before ended: `place_of` its last fact.
    """
    conditions, args = _conditions(wanted.category, wanted.pattern)
    if wanted.ids:
        conditions.append("told.public IN (SELECT value FROM texts(:ids))")
        args["ids"] = orjson.dumps(wanted.ids).decode()
    if wanted.subject:
        conditions.append("glob(lower(:subject), lower(told.subject))")
        args["subject"] = wanted.subject
    sql, own = _meant_by(wanted)
    stated = STATED.format(owner=OWNER[wanted.reach], wanted=" AND ".join(conditions), facts=sql)
    judging = _Judging()
    for row in ask(stated, own | args | {"now": now}):
        judging.take(row)
    chosen = [one for one in judging.facts() if one.is_wanted and (one.is_current or wanted.has_history)]
    if any(after):
        chosen = [one for one in chosen if one.place < after]
    return _facts(ask, chosen[:limit], QUOTE)


def place_of(fact: Fact) -> tuple[int, int]:
    """The sort key of a fact, behind which `list_facts` goes on."""
    return _sort_key(fact.said_at, fact.number)


def _sort_key(said_at: float, number: int) -> tuple[int, int]:
    return round(said_at * 10**6), number


def count_by_category(ask: Ask) -> dict[str, int]:
    """Stored statements of facts, superseded and repeated ones too."""
    return dict(ask("SELECT category, count(*) FROM fact GROUP BY category ORDER BY category"))


def _conditions(category: FactCategory | None, pattern: str) -> tuple[list[str], dict[str, object]]:
    conditions, args = ["true"], dict[str, object]()
    if category:
        conditions.append("told.category = :category")
        args["category"] = category.value
    if pattern:
        conditions.append("glob(lower(:pattern), lower(told.subject || ' ' || told.slot || ' ' || told.value))")
        args["pattern"] = pattern
    return conditions, args


@frozen
class View:
    """
    What a scope may see, as conditions on `fact` and their arguments.

    `standing` is `own` without what is certainly superseded, `in_places` the same in some places (`:places`); those who
    are not named are told apart as `reach` says.
    """

    own: str
    standing: str
    in_places: str
    reach: Reach
    args: Mapping[str, object]


def visible_to(whose: FactScope) -> View | None:
    """The view of facts that a scope may see; None: none."""
    args: dict[str, object] = {"tenant": whose.tenant}
    if whose.reach is Reach.CONVERSATION or (whose.reach is Reach.USER and not whose.user):
        if not whose.conversation:
            return None
        args["conversation"] = whose.conversation
        return View(
            OF_CONVERSATION, STANDING_IN_CONVERSATION, f"{OF_CONVERSATION} AND {IN_PLACES}", Reach.CONVERSATION, args
        )
    own = f"{OF_TENANT} AND fact.user_id = :user" + ("" if whose.scope is None else " AND fact.scope = :scope")
    in_places = (
        f"{own} AND superseded <> 1 AND {IN_PLACES}"  # in other words, or SQLite takes the index of all that stand
    )
    args |= {"user": whose.user, "scope": whose.scope}
    return View(own, f"{own} AND superseded = 0", in_places, whose.reach, args)


def _meant_by(wanted: FactFilter) -> tuple[str, dict[str, object]]:
    """SQL and arguments for the facts of a filter, among which the current ones are found."""
    asked: dict[str, tuple[str, object]] = {}
    if wanted.tenant:
        asked["tenant"] = (OF_TENANT, wanted.tenant)
    for name, column in (("user", "user_id"), ("scope", "scope")):
        if (value := getattr(wanted, name)) is not None:
            asked[name] = (f"fact.{column} = :{name}", value)
    if wanted.conversation:
        asked["conversation"] = ("conversation.public = :conversation", wanted.conversation)
    conditions = (condition for condition, _ in asked.values())
    return " AND ".join((FACTS, *conditions)), {name: value for name, (_, value) in asked.items()}


@dataclass(slots=True)
class _Judged:
    """What was stated once or several times, and what of it holds; `row` is that of the newest statement."""

    row: Row
    is_wanted: bool
    is_current: bool
    superseded_by: str | None
    repeats: int = 1
    is_pinned: bool = False

    @property
    def place(self) -> tuple[int, int]:
        return _sort_key(self.row[SAID_AT], self.row[0])


_Place = tuple[object, ...]
"""Whose slot of one value, or whose value of another."""


@dataclass(slots=True)
class _Judging:
    """Finds current facts in rows, newest first, in one pass: SQLite's window functions take five times as long."""

    _once: dict[tuple[_Place, str, int], _Judged] = field(default_factory=dict)
    _newest: dict[_Place, str] = field(default_factory=dict)
    _pinned: set[_Place] = field(default_factory=set)
    _endings: dict[_Place, Endings] = field(default_factory=dict)
    ended: list[_Judged] = field(default_factory=list)  # by what was said later, in other words

    def take(self, row: Row) -> _Judged | None:
        """Judge the next row: the fact that it states, if this is its newest statement."""
        _, tenant, public, user, scope, owner, subject, slot, value, single, valid, is_pinned, _, is_wanted, *_ = row
        place = (tenant, user, scope, owner, subject, slot, single, None if single else value)
        if is_pinned:
            self._pinned.add(place)
        if (known := self._once.get((place, value, valid))) is not None:
            known.repeats += 1
            return None
        newer = self._newest.setdefault(place, public) if single and valid else public
        claim = Claim(subject, slot, row[VALUE], bool(single))
        if valid and newer == public:
            newer = self._endings.setdefault(place[:4], Endings()).take(claim, public) or public
        is_current = bool(valid) and newer == public and not claim.is_denial
        judged = _Judged(row, bool(is_wanted), is_current, None if newer == public else newer)
        self._once[place, value, valid] = judged
        if newer != public:
            self.ended.append(judged)
        return judged

    def facts(self) -> list[_Judged]:
        """All facts, each once, the newest first, with its pin."""
        for (place, *_), one in self._once.items():
            one.is_pinned = place in self._pinned
        return list(self._once.values())


def _read_in_pages(ask: Ask, sql: str, args: Mapping[str, object]) -> Iterator[Row]:
    """All rows of a query that ends in `BEHIND`, read a page at a time."""
    at, id = inf, 0
    while rows := ask(sql, {**args, "at": at, "id": id}):
        yield from rows
        at, id = rows[-1][SAID_AT], rows[-1][0]


def _facts(ask: Ask, chosen: Sequence[_Judged], quote: str = "''") -> list[Fact]:
    """Load facts with their sources; quotes only where wanted, as they read long messages."""
    rows = ask(DETAILS.format(quote=quote), (orjson.dumps([one.row[0] for one in chosen]).decode(),))
    details = {number: more for number, *more in rows}
    return [_fact(one, *details[one.row[0]]) for one in chosen if one.row[0] in details]


def _fact(one: _Judged, tenant: str, turn: str, role: str, quote: str) -> Fact:
    number, _, public, user, scope, _, subject, slot, _, single, _, _, said_at, _, *more = one.row
    value, category, confidence, since, until, conversation, occurrence, start, stop, tool, who, place = more
    origin = FactOrigin.TOOL if tool else FactOrigin.MESSAGE
    return Fact(
        id=public,
        tenant=tenant,
        user=user,
        scope=scope,
        subject=subject,
        slot=slot,
        value=value,
        category=FactCategory(category),
        source=FactSource(origin, conversation, turn, occurrence, start, stop, role, quote, tool, who),
        confidence=confidence,
        said_at=said_at,
        valid_from=since,
        valid_until=until,
        is_single=bool(single),
        is_pinned=one.is_pinned,
        repeats=one.repeats,
        superseded_by=one.superseded_by,
        is_current=one.is_current,
        number=number,
        place=place,
    )
