"""
Facts as they are read: what is current in a scope, and what was said before.

A slot of one value holds what was said last: that is computed with each look, so that an older value stands again when
the newer one is erased, retired or no longer valid. What was said several times is one fact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from proxy.domain import Fact, FactCategory, FactOrigin, FactScope, FactSource, HeadFlag, Reach
from proxy.store.connection import Ask, Row

SAID_AT = 12  # column of `STATED`
MOST = 200  # facts of one answer, unless more are asked for

OF_MESSAGES = f"""
SELECT fact.id, fact.tenant, fact.public, conversation.user, conversation.scope, conversation.public AS conversation,
    fact.occurrence, fact.start, fact.stop, '' AS tool, '' AS who, subject, slot, value, category, single, confidence,
    said_at, valid_from, valid_until, pinned
FROM conversation CROSS JOIN fact ON fact.conversation = conversation.id
CROSS JOIN occurrence ON occurrence.id = fact.occurrence
WHERE occurrence.flags & {HeadFlag.ERASED | HeadFlag.RETIRED} = 0
"""
OF_TOOLS = """
SELECT id, tenant, public, user, scope, '' AS conversation, 0 AS occurrence, start, stop, tool, who, subject, slot,
    value, category, single, confidence, said_at, valid_from, valid_until, pinned
FROM fact WHERE occurrence IS NULL AND retirement = 0
"""

# Those who are not named are told apart by their conversation, unless they share one memory.
OWNER = {Reach.TENANT: "''", Reach.USER: "iif(user = '', conversation, '')", Reach.CONVERSATION: "conversation"}

STATED = """
SELECT id, tenant, public, user, scope, {owner}, subject, slot, lower(value), single,
    ifnull(valid_from <= :now, 1) AND ifnull(valid_until > :now, 1), pinned, said_at, {wanted},
    value, category, confidence, valid_from, valid_until, conversation, occurrence, start, stop, tool, who
FROM ({facts}) AS told ORDER BY said_at DESC, id DESC
"""
DETAILS = """
SELECT fact.id, tenant.name, ifnull(turn.key, ''), ifnull(occurrence.role, '')
FROM json_each(?) AS asked JOIN fact ON fact.id = asked.value JOIN tenant ON tenant.id = fact.tenant
LEFT JOIN occurrence ON occurrence.id = fact.occurrence LEFT JOIN turn ON turn.id = occurrence.turn
"""


@dataclass(frozen=True, slots=True)
class FactFilter:
    """
    Which facts are meant; what is given restricts together. `tenant` "": of all; None: whichever user or project.

    `pattern` is one of SQLite's GLOB, in any case, and meant for subject, slot and value in a row; `has_history` adds
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
    ask: Ask,
    whose: FactScope,
    now: float,
    limit: int = MOST,
    pattern: str = "",
    category: FactCategory | None = None,
) -> list[Fact]:
    """
    The facts that hold now in a scope, pinned ones first, then the newest.

    Args:
        now: Unix seconds.
        pattern, category: that they must have; as of `FactFilter`.
    """
    found = visible_to(whose)
    if found is None:
        return []
    conditions, args = _conditions(category, pattern)
    sql, reach, own = found
    where = " AND ".join(("1", *conditions))
    judged = _judged(ask, (sql, reach, own | args), now, where)
    chosen = [one for one in judged if one.is_current and one.is_wanted]
    chosen.sort(key=lambda one: not one.is_pinned)
    return _facts(ask, chosen[:limit])


def listed(ask: Ask, wanted: FactFilter, now: float, limit: int, after: tuple[int, int] = (0, 0)) -> list[Fact]:
    """
    Facts, the newest first.

    Args:
        now: Unix seconds.
        after: where the page before ended: `place_of` its last fact.
    """
    conditions, args = _conditions(wanted.category, wanted.pattern)
    if wanted.ids:
        conditions.append("told.public IN (SELECT value FROM json_each(:ids))")
        args["ids"] = orjson.dumps(wanted.ids).decode()
    if wanted.subject:
        conditions.append("lower(told.subject) GLOB lower(:subject)")
        args["subject"] = wanted.subject
    sql, own = _meant_by(wanted)
    judged = _judged(ask, (sql, wanted.reach, own | args), now, " AND ".join(("1", *conditions)))
    chosen = [one for one in judged if one.is_wanted and (one.is_current or wanted.has_history)]
    if any(after):
        chosen = [one for one in chosen if one.place < after]
    return _facts(ask, chosen[:limit])


def place_of(fact: Fact) -> tuple[int, int]:
    """Where a fact stands in a list: what `listed` goes on behind."""
    return _place(fact.said_at, fact.number)


def _place(said_at: float, number: int) -> tuple[int, int]:
    return round(said_at * 10**6), number


def count_by_category(ask: Ask) -> dict[str, int]:
    """Stored statements of facts, superseded and repeated ones too."""
    return dict(ask("SELECT category, count(*) FROM fact GROUP BY category ORDER BY category"))


def _conditions(category: FactCategory | None, pattern: str) -> tuple[list[str], dict[str, object]]:
    conditions, args = [], dict[str, object]()
    if category:
        conditions.append("told.category = :category")
        args["category"] = category.value
    if pattern:
        conditions.append("lower(told.subject || ' ' || told.slot || ' ' || told.value) GLOB lower(:pattern)")
        args["pattern"] = pattern
    return conditions, args


def visible_to(whose: FactScope) -> tuple[str, Reach, dict[str, object]] | None:
    """SQL for the facts that a scope may see, how those who are not named are told apart, and its arguments."""
    args: dict[str, object] = {"tenant": whose.tenant, "user": whose.user, "scope": whose.scope}
    of_tenant = "(SELECT id FROM tenant WHERE name = :tenant)"
    if whose.reach is Reach.CONVERSATION or (whose.reach is Reach.USER and not whose.user):
        if not whose.conversation:
            return None
        args["conversation"] = whose.conversation
        sql = f"{OF_MESSAGES} AND conversation.tenant = {of_tenant} AND conversation.public = :conversation"
        return sql, Reach.CONVERSATION, args
    of_scope = "" if whose.scope is None else " AND {}scope = :scope"
    messages = f"{OF_MESSAGES} AND conversation.tenant = {of_tenant} AND conversation.user = :user"
    messages += of_scope.format("conversation.")
    tools = f"{OF_TOOLS} AND tenant = {of_tenant} AND user = :user{of_scope.format('')}"
    return f"{messages} UNION ALL {tools}", whose.reach, args


def _meant_by(wanted: FactFilter) -> tuple[str, dict[str, object]]:
    """SQL for the facts that an operator means, and its arguments. What is current is decided among these."""
    messages, tools, args = OF_MESSAGES, OF_TOOLS, dict[str, object]()
    if wanted.tenant:
        of_tenant = "tenant = (SELECT id FROM tenant WHERE name = :tenant)"
        messages, tools = f"{messages} AND conversation.{of_tenant}", f"{tools} AND {of_tenant}"
        args["tenant"] = wanted.tenant
    for name in ("user", "scope"):
        value = getattr(wanted, name)
        if value is not None:
            messages, tools = f"{messages} AND conversation.{name} = :{name}", f"{tools} AND {name} = :{name}"
            args[name] = value
    if wanted.conversation:
        messages, tools = f"{messages} AND conversation.public = :conversation", f"{tools} AND 0"
        args["conversation"] = wanted.conversation
    return f"{messages} UNION ALL {tools}", args


@dataclass(slots=True)
class _Judged:
    """What was stated once or several times, and what of it holds; `row` is that of the newest statement."""

    row: Row
    is_wanted: bool
    is_current: bool
    superseded_by: str
    repeats: int = 1
    is_pinned: bool = False

    @property
    def place(self) -> tuple[int, int]:
        return _place(self.row[SAID_AT], self.row[0])


def _judged(ask: Ask, found: tuple[str, Reach, dict[str, object]], now: float, wanted: str) -> list[_Judged]:
    """
    All that is visible, each once, the newest first. One pass over the rows: windows of SQLite take five times as long.

    Args:
        wanted: a condition in SQL.
    """
    facts, reach, args = found
    once: dict[tuple[object, ...], _Judged] = {}
    newest: dict[tuple[object, ...], str] = {}
    pinned: set[tuple[object, ...]] = set()
    for row in ask(STATED.format(owner=OWNER[reach], wanted=wanted, facts=facts), args | {"now": now}):
        _, tenant, public, user, scope, owner, subject, slot, value, single, valid, is_pinned, _, is_wanted, *_ = row
        place = (tenant, user, scope, owner, subject, slot, single, valid)
        if is_pinned:
            pinned.add(place if single else (*place, value))
        if (known := once.get((*place, value))) is not None:
            known.repeats += 1
            continue
        newer = newest.setdefault(place, public) if single and valid else public
        is_current = bool(valid) and newer == public
        once[*place, value] = _Judged(row, bool(is_wanted), is_current, "" if newer == public else newer)
    for key, one in once.items():
        one.is_pinned = key in pinned or key[:-1] in pinned
    return list(once.values())


def _facts(ask: Ask, chosen: Sequence[_Judged]) -> list[Fact]:
    rows = ask(DETAILS, (orjson.dumps([one.row[0] for one in chosen]).decode(),))
    details = {number: more for number, *more in rows}
    return [_fact(one, *details[one.row[0]]) for one in chosen if one.row[0] in details]


def _fact(one: _Judged, tenant: str, turn: str, role: str) -> Fact:
    number, _, public, user, scope, _, subject, slot, _, single, _, _, said_at, _, *more = one.row
    value, category, confidence, since, until, conversation, occurrence, start, stop, tool, who = more
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
        source=FactSource(origin, conversation, turn, occurrence, start, stop, role, tool, who),
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
    )
