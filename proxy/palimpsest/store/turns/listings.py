"""
What is stored, page by page: tenants, conversations, turns and passages, for operators and programs.

Every page begins behind an id and none is given twice, so pages neither repeat nor leave out what was there when the
first one was read, whatever is written meanwhile. A tenant of "" means all of them.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

import orjson

from palimpsest.core.archive.chunking import TELLS
from palimpsest.domain import HeadFlag, Json, frozen
from palimpsest.domain.overflow import numbers_in
from palimpsest.store.engine import Ask, Row, ids
from palimpsest.store.turns.diffs import message_list
from palimpsest.wire.message import OWN_PREFIX

FIRST_WORDS_CHARS = 80  # a line of a terminal
OPENINGS_READ = 4  # messages of a user, before one is found that holds more than what a client adds
NO_WORDS = HeadFlag.SUMMARY | HeadFlag.TOOL | HeadFlag.ERASED  # of the user's in a message of that role
OPENING_CHARS = 4_000  # of each; what clients add in front is shorter as a rule

_OWN_REFERENCE = re.compile(re.escape(OWN_PREFIX) + r"[\w-]+")
_ASIDE = re.compile(r"\s*<([\w-]{1,64})(?: [^<>]{0,400})?>.*?</\1>", re.S)  # as clients put it in front of a prompt

# A turn's times and decision stand behind one another in its row, so they are read for the rows of a page only.
LAST_AT = "(SELECT created_at FROM turn WHERE turn.conversation = conversation.id ORDER BY id DESC LIMIT 1)"
CONVERSATIONS = f"""
SELECT conversation.id, conversation.public, tenant.name, conversation.role, conversation.parent, conversation.user_id,
    conversation.scope, conversation.created_at,
    {LAST_AT}
FROM conversation JOIN tenant ON tenant.id = conversation.tenant
"""
TURNS_OF = """
SELECT turn.conversation, turn.event, turn.model, count(*)
FROM numbers(?) AS asked INNER JOIN turn ON turn.conversation = asked.value
GROUP BY turn.conversation, turn.event, turn.model ORDER BY min(turn.id)
"""
MEMORIES_OF = """
SELECT asked.value, (SELECT count(*) FROM memory WHERE memory.conversation = asked.value) FROM numbers(?) AS asked
"""
OPENINGS = f"""
SELECT asked.value, substr(content.text, 1, {OPENING_CHARS})
FROM numbers(?) AS asked INNER JOIN occurrence ON occurrence.id IN (
    SELECT id FROM occurrence AS first WHERE first.conversation = asked.value
        AND first.role = 'user' AND first.flags & {NO_WORDS} = 0
    ORDER BY first.id LIMIT {OPENINGS_READ})
JOIN content ON content.id = occurrence.content
ORDER BY occurrence.id
"""
TURNS = """
SELECT turn.id, turn.key, conversation.public, tenant.name, turn.role, turn.event, turn.ending, turn.model,
    turn.messages, turn.prompt_tokens, turn.created_at, turn.explain,
    (SELECT count(*) FROM turn AS other WHERE other.conversation = turn.conversation AND other.id <= turn.id)
FROM turn JOIN conversation ON conversation.id = turn.conversation JOIN tenant ON tenant.id = conversation.tenant
"""
PROMPTS = f"""
SELECT occurrence.turn, substr(content.text, 1, {OPENING_CHARS})
FROM numbers(?) AS asked INNER JOIN turn ON turn.id = asked.value
INNER JOIN occurrence ON occurrence.turn = turn.id AND occurrence.position < turn.messages
    AND occurrence.role = 'user' AND occurrence.flags & {NO_WORDS} = 0
JOIN content ON content.id = occurrence.content
ORDER BY occurrence.position DESC
"""
COST_FIELDS = ("own_tokens", "cache_read_tokens", "cache_write_tokens", "rebuild", "rebuilt_tokens")
NO_COST = (None,) * len(COST_FIELDS)
COSTS = f"""
SELECT turn, {", ".join(COST_FIELDS)} FROM cost WHERE turn IN (SELECT value FROM numbers(?))
"""
ANSWERED = """
SELECT occurrence.turn, min(occurrence.created_at) FROM numbers(?) AS asked INNER JOIN turn ON turn.id = asked.value
INNER JOIN occurrence ON occurrence.turn = turn.id AND occurrence.position >= turn.messages GROUP BY occurrence.turn
"""
MESSAGES = f"""
SELECT occurrence.id, occurrence.position, occurrence.role, content.text, occurrence.position >= turn.messages,
    occurrence.created_at,
    CASE WHEN occurrence.flags & {HeadFlag.ERASED} <> 0 THEN 'erased'
        WHEN EXISTS (SELECT 1 FROM retired WHERE retired.occurrence = occurrence.id) THEN 'retired'
        ELSE 'stored' END
FROM turn JOIN occurrence ON occurrence.turn = turn.id JOIN content ON content.id = occurrence.content
WHERE turn.key = ?1 AND content.tenant = (SELECT id FROM tenant WHERE name = ?2) ORDER BY occurrence.position
"""
BLOCKS = """
SELECT block.kind, block.text, block.tokens, block.occurrences, block.shed = 0 AND block.retired = 0, block.occurrence
FROM turn JOIN conversation ON conversation.id = turn.conversation JOIN block ON block.turn = turn.id
WHERE turn.key = ?1 AND conversation.tenant = (SELECT id FROM tenant WHERE name = ?2) ORDER BY block.occurrence
"""
MEMORIES = """
SELECT memory.id, tenant.name, conversation.public, turn.key, memory.occurrence, occurrence.position, occurrence.role,
    memory.kind, memory.tags, memory.start, memory.stop,
    substr(content.text, memory.start + 1, memory.stop - memory.start), occurrence.created_at,
    EXISTS (SELECT 1 FROM vector WHERE vector.memory = memory.id)
FROM memory JOIN conversation ON conversation.id = memory.conversation JOIN tenant ON tenant.id = memory.tenant
JOIN occurrence ON occurrence.id = memory.occurrence JOIN turn ON turn.id = occurrence.turn
JOIN content ON content.id = occurrence.content
"""
TENANTS = """
SELECT tenant.id, tenant.name, (SELECT count(*) FROM conversation WHERE conversation.tenant = tenant.id)
FROM tenant
"""
PLACE = """
SELECT turn.id, turn.parent, tenant.name, conversation.public
FROM turn JOIN conversation ON conversation.id = turn.conversation JOIN tenant ON tenant.id = conversation.tenant
WHERE turn.key = ?1 AND tenant.name = ?2
"""
TURN_OF = """
SELECT occurrence.id, turn.key FROM numbers(?) AS asked
INNER JOIN occurrence ON occurrence.id = asked.value JOIN turn ON turn.id = occurrence.turn
"""

STAND_INS = f"""
SELECT CASE WHEN occurrence.flags & {HeadFlag.SUMMARY} <> 0 THEN content.text ELSE '' END, content.rest
FROM numbers(?) AS asked INNER JOIN occurrence ON occurrence.id = asked.value
JOIN content ON content.id = occurrence.content
WHERE occurrence.flags & {HeadFlag.SUMMARY} <> 0 OR content.rest LIKE '%{OWN_PREFIX}%' ORDER BY occurrence.id
"""
DECISIONS = """
SELECT turn.id, turn.key, turn.explain FROM turn
WHERE turn.conversation = (SELECT conversation FROM turn WHERE id = ?1) AND turn.id <= ?1
"""
DECISION = f"{DECISIONS} AND turn.id = ?1"
CUTS = f"{DECISIONS} AND field(turn.explain, 'overflow.left_out') IS NOT NULL ORDER BY turn.id DESC LIMIT 2"

# Conditions of the filters that are given: of one that is not, none may stand in a question, or no index is used.
OF_TENANT = "conversation.tenant = (SELECT id FROM tenant WHERE name = ?)"
OF_CONVERSATION = {
    "tenant": OF_TENANT,
    "conversation": "conversation.public = ?",
    "user": "conversation.user_id = ?",
    "scope": "conversation.scope = ?",
}
CONVERSATION_FILTERS = OF_CONVERSATION | {
    "role": "conversation.role = ?",
    "since": f"{LAST_AT} >= ?",
    "until": "conversation.created_at < ?",
}
# A tenant alone leads to all that it has. So the newest are read in order, of all tenants, until there are enough.
ALONE = {
    CONVERSATIONS: f"/*+ NO_INDEX */ {OF_TENANT}",
    TURNS: f"/*+ NO_INDEX */ {OF_TENANT}",
    MEMORIES: "memory.tenant = (SELECT id FROM tenant WHERE name = ?)",
}
TURN_FILTERS = OF_CONVERSATION | {
    "turn": "turn.key = ?",
    "role": "turn.role = ?",
    "event": "turn.event = ?",
    "added": "turn.id IN (SELECT turn FROM block WHERE ? <> 0)",
    "since": "turn.created_at >= ?",
    "until": "turn.created_at < ?",
}
MEMORY_FILTERS = OF_CONVERSATION | {
    "role": "occurrence.role = ?",
    "since": "occurrence.created_at >= ?",
    "until": "occurrence.created_at < ?",
}

Listed = Mapping[str, Any]
"""One thing that is stored, by the names of its fields."""


@frozen
class Filter:
    """What is listed; "" and None restrict nothing. Times are Unix seconds: from `since` on, and before `until`."""

    tenant: str = ""
    conversation: str = ""
    turn: str = ""
    user: str = ""
    scope: str = ""
    role: str = ""
    event: str = ""  # of turns
    added: bool = False  # turns to which a new block was added
    since: float | None = None
    until: float | None = None


@frozen
class TurnPlace:
    """The place of a turn: its id, its parent's (None: it has none), and the names of its tenant and conversation."""

    turn: int
    parent: int | None
    tenant: str
    conversation: str


@frozen
class LeftBehind:
    """
    What stayed behind of a turn: which turn cut it off ("": none), whether that is the turn itself, how many tokens,
    and of each message by occurrence how: `removed`, `stub` or `shortened`; `before`: the same at the cut before that.
    """

    cut: str = ""
    is_new: bool = False
    tokens: int = 0
    messages: Mapping[int, str] = field(default_factory=dict)
    before: Mapping[int, str] = field(default_factory=dict)


@frozen
class Page:
    """So many things, and the id behind which the next page begins; 0: there is none."""

    listed: Sequence[Listed]
    next: int


def conversations(ask: Ask, which: Filter, after: int, limit: int) -> Page:
    """Conversations, the newest first; in a period those that began before its end, and had a turn since it began."""
    given = conditions_of(which, CONVERSATION_FILTERS, ALONE[CONVERSATIONS])
    rows, following = page_of(ask, CONVERSATIONS, "conversation.id", given, after, limit)
    listed = ids(row[0] for row in rows)
    events: dict[int, Counter[str]] = defaultdict(Counter)
    models: dict[int, list[str]] = defaultdict(list)
    for id, event, model, count in ask(TURNS_OF, (listed,)):
        events[id][event] += count
        if model and model not in models[id]:
            models[id].append(model)
    findable: dict[int, int] = dict(ask(MEMORIES_OF, (listed,)))
    openings: dict[int, list[str]] = defaultdict(list)
    for id, text in ask(OPENINGS, (listed,)):
        openings[id].append(text)
    fields = ("conversation", "tenant", "role", "parent", "user", "scope", "created_at", "last_at")
    return Page(
        [
            dict(zip(fields, row, strict=True))
            | {
                "title": first_words(openings[id]),
                "turns": events[id].total(),
                "memories": findable[id],
                "events": dict(events[id]),
                "models": models[id],
            }
            for id, *row in rows
        ],
        following,
    )


def turns(ask: Ask, which: Filter, after: int, limit: int, *, newest_first: bool) -> Page:
    """Turns, with what was decided on each and what it cost; `title` is of the user's newest message in it."""
    rows, following = page_of(
        ask, TURNS, "turn.id", conditions_of(which, TURN_FILTERS, ALONE[TURNS]), after, limit, newest_first=newest_first
    )
    prompts: dict[int, list[str]] = defaultdict(list)
    for id, text in ask(PROMPTS, (ids(row[0] for row in rows),)):
        prompts[id].append(text)
    costs = {id: costs for id, *costs in ask(COSTS, (ids(row[0] for row in rows),))}
    answered: dict[int, float] = dict(ask(ANSWERED, (ids(row[0] for row in rows),)))
    fields = (
        *("turn", "conversation", "tenant", "role", "event", "ending", "model", "messages"),
        *("prompt_tokens", "created_at", "explain", "number"),
    )
    listed = []
    for id, *row in rows:
        found = dict(zip(fields, row, strict=True))
        decided = orjson.loads(found.pop("explain"))
        added = (decided.get("added") or {}).get("tokens", 0)
        note = decided.get("note") or ""
        is_silent = note and not decided.get("block")  # then it is the kind of what was looked for
        kind = "" if is_silent else decided.get("kind") or ""
        overflow = decided.get("overflow") or {}
        told = {
            "note": note,
            "kind": kind,
            "added_tokens": added,
            "title": first_words(prompts[id]),
            "trimmed_tokens": overflow.get("trimmed_tokens", 0),
            "is_cut": overflow.get("is_new", False),
            "elapsed_ms": decided.get("elapsed_ms") or {},
            "answered_ms": 1000 * (answered[id] - found["created_at"]) if id in answered else None,
        }
        listed.append(found | told | dict(zip(COST_FIELDS, costs.get(id, NO_COST), strict=True)))
    return Page(listed, following)


def messages_of_turn(ask: Ask, tenant: str, key: str) -> list[Listed]:
    """The messages that came with a turn, its answer last; `state` is `stored`, `retired` or `erased`."""
    fields = ("occurrence", "position", "role", "text", "is_answer", "created_at", "state")
    rows = [dict(zip(fields, row, strict=True)) for row in ask(MESSAGES, (key, tenant))]
    return [row | {"is_answer": bool(row["is_answer"])} for row in rows]


def blocks_of_turn(ask: Ask, tenant: str, key: str) -> list[Listed]:
    """What was newly added to a turn; `carried_by` is the message in front of whose text it stands."""
    return [
        {
            "kind": kind,
            "text": text,
            "tokens": tokens,
            "occurrences": orjson.loads(packed),
            "is_replayed": bool(replayed),
            "carried_by": carrier,
        }
        for kind, text, tokens, packed, replayed, carrier in ask(BLOCKS, (key, tenant))
    ]


def stand_ins(ask: Ask, occurrences: Iterable[int]) -> tuple[list[str], list[str]]:
    """What stands for a history among these messages: texts of summaries, and references of compactions of ours."""
    rows = ask(STAND_INS, (ids(occurrences),))
    return [text for text, _ in rows if text], [one for _, rest in rows for one in _OWN_REFERENCE.findall(rest)]


def left_behind(ask: Ask, turn: int) -> LeftBehind:
    """What did not go upstream of a turn, because it is longer than its model's window."""
    decided: Json = next((orjson.loads(row[2]) for row in ask(DECISION, (turn,))), {})
    tokens = (decided.get("overflow") or {}).get("trimmed_tokens", 0)
    cuts = ask(CUTS, (turn,)) if tokens else []
    if not cuts:
        return LeftBehind(tokens=tokens)
    (id, key, explain), *earlier = cuts
    before = _left_out(ask, earlier[0][0], orjson.loads(earlier[0][2])) if earlier else {}
    return LeftBehind(key, id == turn, tokens, _left_out(ask, id, orjson.loads(explain)), before)


def _left_out(ask: Ask, turn: int, explain: Json) -> dict[int, str]:
    """How each message stayed behind at a cut, by occurrence: `removed`, `stub` or `shortened`."""
    left = explain["overflow"]["left_out"]
    how = dict.fromkeys(left["shortened"], "shortened")
    how |= dict.fromkeys(numbers_in(left["stubs"]), "stub") | dict.fromkeys(numbers_in(left["removed"]), "removed")
    listed = message_list(ask, turn).messages
    return {occurrence: how[position] for position, occurrence in listed if position in how}


def memories(ask: Ask, which: Filter, after: int, limit: int) -> Page:
    """Findable passages, the newest first; `start` and `stop` are characters of the message."""
    rows, following = page_of(
        ask, MEMORIES, "memory.id", conditions_of(which, MEMORY_FILTERS, ALONE[MEMORIES]), after, limit
    )
    return Page([_memory(row) for row in rows], following)


def memory(ask: Ask, tenant: str, id: int) -> Listed | None:
    """One of them; None: it is not stored."""
    given = conditions_of(Filter(tenant), MEMORY_FILTERS, ALONE[MEMORIES])
    rows, _ = page_of(ask, MEMORIES, "memory.id", [*given, ("memory.id = ?", id)], 0, 1)
    return next(map(_memory, rows), None)


def tenants(ask: Ask, tenant: str, after: int, limit: int) -> Page:
    """Tenants, the newest first: `tenant` and its `conversations`."""
    given = [("tenant.name = ?", tenant)] if tenant else []
    rows, following = page_of(ask, TENANTS, "tenant.id", given, after, limit)
    return Page([{"tenant": name, "conversations": count} for _, name, count in rows], following)


def place_of_turn(ask: Ask, tenant: str, key: str) -> TurnPlace | None:
    """The place of a turn, by `x-palimpsest-turn`; None: it is not stored."""
    return next((TurnPlace(*row) for row in ask(PLACE, (key, tenant))), None)


def turns_of_messages(ask: Ask, occurrences: Sequence[int]) -> dict[int, str]:
    """The ids of the turns that brought these messages, by occurrence."""
    return dict(ask(TURN_OF, (ids(occurrences),)))


def first_words(texts: Sequence[str]) -> str:
    """The beginning of the first text that holds more than what clients add between tags; "" where none does."""
    for text in texts:
        while aside := _ASIDE.match(text):
            text = text[aside.end() :]
        if words := " ".join(text.split()):
            return words if len(words) <= FIRST_WORDS_CHARS else words[: FIRST_WORDS_CHARS - 1].rstrip() + "…"
    return ""


def conditions_of(which: Filter, filters: Mapping[str, str], of_tenant: str) -> list[tuple[str, Any]]:
    """
    The conditions of those filters that are given, each with its argument.

    Args:
        of_tenant: that of the tenant where nothing else leads to few rows.
    """
    if not (which.conversation or which.user or which.scope or which.turn):
        filters = {**filters, "tenant": of_tenant}
    given = ((sql, getattr(which, name)) for name, sql in filters.items())
    return [(sql, value) for sql, value in given if value not in ("", None, False)]


def page_of(
    ask: Ask, sql: str, id: str, given: Sequence[tuple[str, Any]], after: int, limit: int, *, newest_first: bool = True
) -> tuple[list[Row], int]:
    """The rows of a page in the order of their first column, `id`; and behind which of them the next page begins."""
    if after:
        given = [*given, (f"{id} {'<' if newest_first else '>'} ?", after)]
    where = f"WHERE {' AND '.join(condition for condition, _ in given)} " if given else ""
    order = f"ORDER BY {id} {'DESC' if newest_first else ''} LIMIT ?"
    rows = ask(f"{sql}{where}{order}", (*(value for _, value in given), limit + 1))
    return rows[:limit], rows[limit - 1][0] if len(rows) > limit else 0


def _memory(row: Row) -> Listed:
    fields = (
        *("memory", "tenant", "conversation", "turn", "occurrence", "position", "role", "kind", "tags"),
        *("start", "stop", "text", "created_at", "is_indexed"),
    )
    found = dict(zip(fields, row, strict=True))
    names = [tag for tag in found["tags"].split() if not tag.startswith(TELLS)]
    return found | {"tags": names, "is_indexed": bool(found["is_indexed"])}
