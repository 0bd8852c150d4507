"""The meaning of a request to forget: conversations as a whole, and single messages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from typing import Literal

import orjson

from palimpsest.core.redaction.redaction import redact
from palimpsest.domain import HeadFlag, frozen
from palimpsest.store.engine import Ask, ids
from palimpsest.store.families.blocks import quoting
from palimpsest.store.knowledge.added_facts import added_by
from palimpsest.wire.storage_codec import cleaned, from_stored
from palimpsest.wire.values import dumps

_REDACTED = re.compile(r"\[redacted:([\w-]+)\]")
CONTENTS_AT_A_TIME = 5_000  # read and searched between two looks at whether somebody else wants the reader

# A sub-agent's conversation goes with the one that it serves.
CONVERSATIONS = """
WITH RECURSIVE meant(id, public) AS (
    SELECT id, public FROM conversation WHERE tenant = ?1
        AND (?2 = '' OR public = ?2) AND (?3 = '' OR user_id = ?3) AND (?4 = '' OR scope = ?4)
    UNION
    SELECT conversation.id, conversation.public FROM meant
    JOIN conversation ON conversation.tenant = ?1 AND conversation.parent = meant.public
)
SELECT id, public FROM meant ORDER BY id
"""


@frozen
class Target:
    """
    What somebody wants forgotten; what is given restricts together. `tenant` "": whichever.

    `turn` is the id of one (`x-palimpsest-turn`), `number` counts those of a conversation from 1, `before`
    is in Unix seconds, `matching` are words, in any case. `credentials`: messages that hold one.
    """

    tenant: str = ""
    conversation: str = ""
    turn: str = ""
    number: int = 0
    user: str = ""
    scope: str = ""
    before: float = 0.0
    matching: str = ""
    credentials: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether conversations are meant, and no single messages of them."""
        return not (self.before or self.is_by_message)

    @property
    def is_by_message(self) -> bool:
        return self.is_turn or bool(self.matching) or self.credentials

    @property
    def is_turn(self) -> bool:
        return bool(self.turn or self.number)


@frozen
class Plan:
    """What would go of one tenant. Messages by occurrence, those of whole conversations among them."""

    tenant: int
    name: str
    conversations: tuple[tuple[int, str], ...]  # that go as a whole: row, public id
    messages: dict[int, tuple[int, ...]]  # by conversation
    publics: dict[int, str]  # public ids of those conversations
    facts: tuple[int, ...] = ()  # rows of facts that go, beside those of the messages: told by tools
    credentials: Mapping[str, int] = field(default_factory=dict)  # by kind, where these are meant

    @property
    def occurrences(self) -> list[int]:
        return [occurrence for listed in self.messages.values() for occurrence in listed]


def plans(ask: Ask, target: Target, until: float, without: int = HeadFlag.ERASED) -> list[Plan]:
    """
    What a target means, tenant by tenant; tenants of whom nothing is meant are left out.

    Args:
        until: what came later, Unix seconds, is not meant.
        without: flags; messages that have one are not meant.
    """
    tenants = ask("SELECT id, name FROM tenant WHERE ?1 = '' OR name = ?1 ORDER BY id", (target.tenant,))
    found = (_plan(ask, id, name, target, until, without) for id, name in tenants)
    return [plan for plan in found if plan.conversations or plan.messages or plan.facts]


def last_occurrence(ask: Ask) -> int:
    """The id of the newest message of all."""
    return int(ask("SELECT coalesce(max(id), 0) FROM occurrence")[0][0])


def is_stored_name(ask: Ask, column: Literal["user_id", "scope"], name: str) -> bool:
    """Whether a conversation has this user or project."""
    return bool(ask(f"SELECT 1 FROM conversation WHERE {column} = ? LIMIT 1", (name,)))


def resent(
    ask: Ask, names: Collection[str], after: int, at: float, until: float, without: int = HeadFlag.ERASED
) -> list[Plan]:
    """
    Messages that were erased or retired at `at` and came again before their tombstones were there.

    Args:
        names: of tenants.
        after: `last_occurrence` when it was decided what to erase.
        until: when the tombstones were there, Unix seconds.
        without: flags; messages that have one are left out.
    """
    rows = ask(
        "SELECT tenant.id, tenant.name, conversation.id, conversation.public, occurrence.id FROM occurrence"
        " JOIN conversation ON conversation.id = occurrence.conversation JOIN tenant ON tenant.id = conversation.tenant"
        f" WHERE occurrence.id > ? AND occurrence.created_at <= ? AND occurrence.flags & {without} = 0"
        " AND occurrence.fingerprint IN (SELECT fingerprint FROM erased WHERE at = ?)",
        (after, until, at),
    )
    found: dict[str, Plan] = {}
    messages: dict[int, list[int]] = {}
    for tenant, name, conversation, public, occurrence in rows:
        if name in names:
            plan = found.setdefault(name, Plan(tenant, name, (), {}, {}))
            plan.publics[conversation] = public
            messages.setdefault(conversation, []).append(occurrence)
            plan.messages[conversation] = tuple(messages[conversation])
    return list(found.values())


def counts(ask: Ask, plan: Plan) -> dict[str, int]:
    """How many rows would be erased, and how many texts would stay because they also stand elsewhere."""
    which = ids(plan.occurrences)
    said = "SELECT value FROM numbers(?1)"
    ((passages, vectors),) = ask(
        "SELECT count(*), count(vector.memory) FROM memory LEFT JOIN vector ON vector.memory = memory.id"
        f" WHERE memory.occurrence IN ({said})",
        (which,),
    )
    ((texts, elsewhere),) = ask(
        "SELECT count(*), count(CASE WHEN EXISTS (SELECT 1 FROM occurrence WHERE content = content.id"
        f" AND id NOT IN ({said})) THEN 1 END) FROM content"
        f" WHERE id IN (SELECT content FROM occurrence WHERE id IN ({said}))",
        (which,),
    )
    carried = ask(f"SELECT occurrence FROM block WHERE occurrence IN ({said})", (which,))
    blocks = {*quoting(ask, plan.tenant, plan.occurrences), *(carrier for (carrier,) in carried)}
    ((turns,),) = ask(
        "SELECT count(*) FROM turn WHERE conversation IN (SELECT value FROM numbers(?))",
        (ids(id for id, _ in plan.conversations),),
    )
    ((stated,),) = ask(f"SELECT count(*) FROM fact WHERE occurrence IN ({said})", (which,))
    facts = {"facts": stated + len(plan.facts)} if stated or plan.facts else {}
    return facts | {
        "conversations": len(plan.conversations),
        "turns": turns,
        "messages": len(set(plan.occurrences)),
        "passages": passages,
        "vectors": vectors,
        "blocks": len(blocks),
        "texts": texts - elsewhere,
        "texts_that_stand_elsewhere": elsewhere,
    }


def _plan(ask: Ask, tenant: int, name: str, target: Target, until: float, without: int) -> Plan:
    meant = ask(CONVERSATIONS, (tenant, target.conversation, target.user, target.scope))
    publics: dict[int, str] = dict(row[:2] for row in meant)
    whole: Sequence[tuple[int, str]] = ()
    if target.is_whole:
        whole = [(id, public) for id, public in meant if not _is_later(ask, id, until)]
    elif target.before and not target.is_by_message:
        whole = [(id, public) for id, public in meant if not _is_later(ask, id, target.before)]
    before = min(target.before or until, until)
    if target.is_turn:
        turn = _turn_row(ask, target.turn) if target.turn else _numbered_turn_row(ask, [*publics][:1], target.number)
        rows = _of_turn(ask, tenant, turn, publics, without)
    else:
        rows = ask(
            "SELECT occurrence.conversation, occurrence.id FROM numbers(?1) AS meant"
            " INNER JOIN occurrence ON occurrence.conversation = meant.value"
            " JOIN turn ON turn.id = occurrence.turn"  # an answer goes with its request, and may have come later
            " WHERE (occurrence.created_at <= ?2 OR turn.created_at <= ?2)"
            f" AND occurrence.flags & {without} = 0",
            (ids(publics), before),
        )
    if target.matching:
        holding = _holding(ask, tenant, _finder(target.matching))
        rows = [(c, o) for c, o in rows if o in holding]
    credentials: Counter[str] = Counter()
    if target.credentials:
        holding = _holding(ask, tenant, _credentials)
        rows = [(c, o) for c, o in rows if o in holding]
        credentials.update(kind for _, occurrence in rows for kind in holding[occurrence])
    messages: dict[int, list[int]] = {}
    for conversation, occurrence in rows:
        messages.setdefault(conversation, []).append(occurrence)
    facts: list[int] = []
    if not (target.conversation or target.is_turn or target.credentials):
        is_all = not without & HeadFlag.RETIRED
        facts = added_by(ask, tenant, target.user, target.scope, before, target.matching, with_retired=is_all)
    listed = {id: tuple(occurrences) for id, occurrences in messages.items()}
    return Plan(tenant, name, tuple(whole), listed, publics, tuple(facts), credentials)


def _turn_row(ask: Ask, key: str) -> int:
    """The row of the turn with this id, 0 where there is none."""
    return next((row[0] for row in ask("SELECT id FROM turn WHERE key = ?", (key,))), 0)


def _numbered_turn_row(ask: Ask, conversations: Sequence[int], number: int) -> int:
    """The row of the n-th turn of a conversation, 0 where there is none."""
    sql = "SELECT id FROM turn WHERE conversation = ? ORDER BY id LIMIT 1 OFFSET ?"
    return next((row[0] for id in conversations for row in ask(sql, (id, number - 1))), 0)


def _is_later(ask: Ask, conversation: int, at: float) -> bool:
    return bool(
        ask("SELECT EXISTS (SELECT 1 FROM turn WHERE conversation = ? AND created_at > ?)", (conversation, at))[0][0]
    )


def _of_turn(ask: Ask, tenant: int, turn: int, publics: dict[int, str], without: int) -> list[tuple[int, int]]:
    """
    What a turn brought, and the same messages wherever they stand in its conversation.

    Instructions that other turns bring too are theirs.
    """
    rows = ask(
        "SELECT same.conversation, same.id FROM occurrence AS mine"
        " JOIN turn ON turn.id = mine.turn JOIN conversation ON conversation.id = turn.conversation"
        " JOIN occurrence AS same ON same.conversation = mine.conversation AND same.fingerprint = mine.fingerprint"
        f" WHERE mine.turn = ? AND conversation.tenant = ? AND same.flags & {without} = 0"
        " AND NOT (mine.role IN ('system', 'developer') AND EXISTS (SELECT 1 FROM occurrence AS other"
        "  WHERE other.conversation = mine.conversation AND other.fingerprint = mine.fingerprint"
        "  AND other.turn <> mine.turn))",
        (turn, tenant),
    )
    return [(conversation, occurrence) for conversation, occurrence in dict.fromkeys(rows) if conversation in publics]


def _holding(ask: Ask, tenant: int, look: Callable[[str, str], Collection[str]]) -> dict[int, Collection[str]]:
    """Occurrences in whose text or JSON (`to_stored`) something is found, with what that is."""
    found: dict[int, Collection[str]] = {}
    last = 0
    while rows := ask(
        "SELECT id, text, rest FROM content WHERE tenant = ? AND id > ? ORDER BY id LIMIT ?",
        (tenant, last, CONTENTS_AT_A_TIME),
    ):
        last = rows[-1][0]
        held = {id: there for id, text, rest in rows if (there := look(text, rest))}
        which = "SELECT id, content FROM occurrence WHERE content IN (SELECT value FROM numbers(?))"
        found |= {occurrence: held[content] for occurrence, content in ask(which, (ids([*held]),))}
    return found


def _credentials(text: str, rest: str) -> Collection[str]:
    """The kinds of the credentials in a message that would not be stored now."""
    message = from_stored(text, rest)
    clean = cleaned(message, redact)
    found = Counter(_REDACTED.findall(dumps(clean))) - Counter(_REDACTED.findall(dumps(message)))
    return [*found.elements()] or ["unreadable"] if clean != message else ()


def _finder(words: str) -> Callable[[str, str], Collection[str]]:
    """What finds these words in a text, in any case and whatever white space is between them."""
    plain = " ".join(words.casefold().split())
    escaped = orjson.dumps(plain).decode()[1:-1]  # as it stands in JSON

    longest = max(plain.replace('"', " ").replace("\\", " ").split(), key=len, default="")

    def is_in(text: str) -> bool:
        folded = text.casefold()
        if longest not in folded:  # squeezing every text takes ten times as long
            return False
        said = " ".join(folded.replace("\\n", " ").split())
        return plain in said or escaped in said

    return lambda text, rest: (words,) if is_in(text) or is_in(rest) else ()
