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

SLOT = "tenant, user, scope, owner, subject, slot"
JUDGED = f"""
WITH visible AS (
    SELECT *, {{owner}} AS owner, ifnull(valid_from <= :now, 1) AND ifnull(valid_until > :now, 1) AS valid
    FROM ({{facts}})
), judged AS (
    SELECT *,
        row_number() OVER repeated AS nth,
        count(*) OVER (PARTITION BY {SLOT}, single, valid, lower(value)) AS repeats,
        max(pinned) OVER (PARTITION BY {SLOT}, single, valid, iif(single, '', lower(value))) AS is_pinned,
        row_number() OVER slots AS place,
        first_value(public) OVER slots AS newest
    FROM visible
    WINDOW repeated AS (PARTITION BY {SLOT}, single, valid, lower(value) ORDER BY said_at DESC, id DESC),
        slots AS (PARTITION BY {SLOT}, single ORDER BY valid DESC, said_at DESC, id DESC)
), told AS (
    SELECT *, valid AND (NOT single OR place = 1) AS is_current,
        CAST(round(said_at * 1e6) AS INTEGER) AS said_us
    FROM judged WHERE nth = 1
)
"""
CHOSEN = """
SELECT told.id, told.public, tenant.name, told.user, told.scope, told.subject, told.slot, told.value, told.category,
    told.confidence, told.said_at, told.valid_from, told.valid_until, told.single, told.is_pinned, told.repeats,
    iif(told.single AND told.valid AND told.place > 1 AND told.newest <> told.public, told.newest, ''),
    told.is_current, told.conversation, turn.key, told.occurrence, told.start, told.stop, occurrence.role, told.tool,
    told.who
FROM told JOIN tenant ON tenant.id = told.tenant LEFT JOIN occurrence ON occurrence.id = told.occurrence
LEFT JOIN turn ON turn.id = occurrence.turn
"""


@dataclass(frozen=True, slots=True)
class FactFilter:
    """
    Which facts are meant; what is given restricts together. `tenant` "": of all; None: whichever user or project.

    `pattern` is one of SQLite's GLOB, in lower case, and meant for subject, slot and value in a row; `has_history` adds
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
    where = " AND ".join(("told.is_current", *conditions))
    return _facts(ask, (sql, reach, own | args), now, where, "told.is_pinned DESC, ", limit)


def listed(ask: Ask, wanted: FactFilter, now: float, limit: int, after: tuple[int, int] = (0, 0)) -> list[Fact]:
    """
    Facts, the newest first.

    Args:
        now: Unix seconds.
        after: where the page before ended: `place_of` its last fact.
    """
    conditions, args = _conditions(wanted.category, wanted.pattern)
    conditions.append("1" if wanted.has_history else "told.is_current")
    if wanted.ids:
        conditions.append("told.public IN (SELECT value FROM json_each(:ids))")
        args["ids"] = orjson.dumps(wanted.ids).decode()
    if wanted.subject:
        conditions.append("lower(told.subject) GLOB lower(:subject)")
        args["subject"] = wanted.subject
    if any(after):
        conditions.append("(told.said_us, told.id) < (:after_us, :after_id)")
        args |= {"after_us": after[0], "after_id": after[1]}
    sql, own = _meant_by(wanted)
    return _facts(ask, (sql, wanted.reach, own | args), now, " AND ".join(conditions), "", limit)


def place_of(fact: Fact) -> tuple[int, int]:
    """Where a fact stands in a list: what `listed` goes on behind."""
    return round(fact.said_at * 10**6), fact.number


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


def _facts(
    ask: Ask,
    found: tuple[str, Reach, dict[str, object]],
    now: float,
    where: str,
    first: str,
    limit: int,
) -> list[Fact]:
    facts, reach, args = found
    judged = JUDGED.format(owner=OWNER[reach], facts=facts)
    sql = f"{judged}{CHOSEN}WHERE {where} ORDER BY {first}told.said_at DESC, told.id DESC LIMIT :limit"
    return [_fact(row) for row in ask(sql, args | {"now": now, "limit": limit})]


def _fact(row: Row) -> Fact:
    number, public, tenant, user, scope, subject, slot, value, category, confidence, said_at, since, until = row[:13]
    single, pinned, repeats, newer, is_current, conversation, turn, occurrence, start, stop, role, tool, who = row[13:]
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
        source=FactSource(origin, conversation, turn or "", occurrence or 0, start, stop, role or "", tool, who),
        confidence=confidence,
        said_at=said_at,
        valid_from=since,
        valid_until=until,
        is_single=bool(single),
        is_pinned=bool(pinned),
        repeats=repeats,
        superseded_by=newer,
        is_current=bool(is_current),
        number=number,
    )
