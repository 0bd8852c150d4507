"""
The journal: the lossless record of what passed, and what lineage reads of it.

Reading is here; writing is in `requests.py` and `answers.py`, what follows from the journal in `derived.py`. The tenant
stands in every question. "Nothing found" is an empty value; "could not look" raises `MemoryFault`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

import orjson

from palimpsest.domain import (
    TURN_PREFIX,
    AnswerRecord,
    Block,
    BlockKind,
    Clues,
    Compacted,
    Continuation,
    Cost,
    CurrentFacts,
    FactQuery,
    Json,
    KnownHistory,
    Link,
    LinkKind,
    Message,
    Quarantined,
    Record,
    Role,
    StoredBlock,
)
from palimpsest.domain.errors import MemoryFault
from palimpsest.store.engine import Ask, Engine, Row, ask_ahead, ids, nobody
from palimpsest.store.turns.branch_heads import head_after, head_of
from palimpsest.store.turns.diffs import message_list
from palimpsest.store.turns.pending import count_pending, oldest_pending
from palimpsest.wire.message import read_message
from palimpsest.wire.storage_codec import from_stored

MAX_CONVERSATIONS = 8  # whose heads are read: more than ever share enough with one request to be in question
MAX_HEADS_READ = 8  # of each, the newest
MAX_LINKS_OF_PRINT = 32  # newest conversations first; what stands in more of them tells none of them apart

# A common message leads to thousands of conversations: only the newest of them count. INNER JOIN: in this order.
LINKS = """
WITH owner AS MATERIALIZED (SELECT id FROM tenant WHERE name = ?2),
asked AS MATERIALIZED (
    SELECT asked.value AS fingerprint, coalesce((
        SELECT conversation FROM link WHERE tenant = owner.id AND fingerprint = asked.value
        ORDER BY conversation DESC LIMIT 1 OFFSET ?3), 0) AS since
    FROM owner INNER JOIN numbers(?1) AS asked ON true)
SELECT link.kind, link.fingerprint, conversation.id, conversation.public, turn.role, max(link.turn)
FROM owner INNER JOIN asked ON true
INNER JOIN link ON link.tenant = owner.id AND link.fingerprint = asked.fingerprint AND link.conversation >= asked.since
INNER JOIN turn ON turn.id = link.turn
INNER JOIN conversation ON conversation.id = link.conversation
    AND (CAST(?4 AS TEXT) IS NULL OR conversation.user_id = ?4 OR ?5 = 0 AND conversation.user_id = '')
    AND (CAST(?6 AS TEXT) IS NULL OR conversation.scope = ?6
        OR ?7 = 0 AND (conversation.scope = '' OR link.kind = 'client_id'))
GROUP BY link.kind, link.fingerprint, conversation.id, conversation.public, turn.role
"""
HEADS = """
SELECT conversation.public, head.turn, head.state, head.lost, listing.rows, head.listing
FROM tenant INNER JOIN numbers(?1) AS asked ON tenant.name = ?3
INNER JOIN head ON head.tenant = tenant.id AND head.conversation = asked.value AND head.turn IN (
    SELECT turn FROM head AS newest WHERE newest.tenant = tenant.id AND newest.conversation = asked.value
    ORDER BY turn DESC LIMIT ?2)
JOIN conversation ON conversation.id = head.conversation
LEFT JOIN listing ON listing.turn = head.base
ORDER BY head.turn DESC
"""
# INNER JOIN: in this order, each row by its key.
STANDING = """
SELECT turn.id, EXISTS (SELECT 1 FROM block WHERE block.conversation = turn.conversation),
    conversation.public, head.turn, head.state, head.lost, listing.rows, head.listing
FROM turn INNER JOIN conversation ON conversation.id = turn.conversation
INNER JOIN head ON head.conversation = turn.conversation
LEFT JOIN listing ON listing.turn = head.base
WHERE turn.key = ?1 AND conversation.tenant = (SELECT id FROM tenant WHERE name = ?2)
ORDER BY head.turn DESC LIMIT ?3
"""
LINKS_OF = f"""
SELECT link.kind, link.fingerprint, conversation.id, conversation.public, turn.role, link.turn
FROM link JOIN turn ON turn.id = link.turn JOIN conversation ON conversation.id = link.conversation
WHERE link.tenant = (SELECT id FROM tenant WHERE name = ?1) AND link.fingerprint = ?2
    AND link.kind IN ('{LinkKind.ANSWER}', '{LinkKind.MESSAGE}')
LIMIT {MAX_LINKS_OF_PRINT}
"""
BLOCKS = """
SELECT conversation.public, block.occurrence, block.text, block.kind, block.occurrences, block.tokens, block.role,
    block.facts
FROM numbers(?1) AS asked INNER JOIN conversation ON conversation.id = asked.value
    AND conversation.tenant = (SELECT id FROM tenant WHERE name = ?2)
JOIN block ON block.conversation = conversation.id AND block.shed = 0 AND block.retired = 0
ORDER BY block.turn
"""
BLOCKS_BESIDE = BLOCKS.replace(
    "FROM numbers(?1) AS asked INNER JOIN conversation ON conversation.id = asked.value\n",
    "FROM turn INNER JOIN conversation ON conversation.id = turn.conversation AND turn.key = ?1\n",
)
COMPACTED = """
SELECT conversation.public, block.occurrence, block.text, block.kind, block.occurrences, block.tokens, block.role,
    block.facts, conversation.user_id, conversation.scope
FROM turn JOIN conversation ON conversation.id = turn.conversation
JOIN tenant ON tenant.id = conversation.tenant
JOIN block ON block.turn = turn.id AND block.retired = 0
WHERE turn.key = ?1 AND tenant.name = ?2
"""
# INNER JOIN: in this order, else every link of the tenant would be read.
ANSWERS = """
WITH owner AS MATERIALIZED (SELECT id FROM tenant WHERE name = ?2)
SELECT DISTINCT content.text, content.rest
FROM owner INNER JOIN numbers(?1) AS asked ON true
INNER JOIN link ON link.tenant = owner.id AND link.fingerprint = asked.value AND link.kind = ?3
INNER JOIN turn ON turn.id = link.turn
INNER JOIN occurrence ON occurrence.turn = turn.id AND occurrence.position >= turn.messages
INNER JOIN content ON content.id = occurrence.content
"""
SET_ASIDE = "INSERT INTO quarantine(turn, part, reason, chars, digest, created_at) VALUES (?, ?, ?, ?, ?, ?)"
TURN = """
SELECT conversation.public, tenant.name, turn.id, turn.role, turn.event, turn.ending, turn.model, turn.messages,
    turn.prompt_tokens, turn.created_at, turn.explain, conversation.user_id, conversation.scope, conversation.parent,
    turn.key,
    (SELECT count(*) FROM turn AS other WHERE other.conversation = turn.conversation),
    (SELECT count(*) FROM turn AS other WHERE other.conversation = turn.conversation AND other.id <= turn.id)
FROM conversation JOIN tenant ON tenant.id = conversation.tenant JOIN turn ON turn.conversation = conversation.id
WHERE """
IN_CONVERSATION = """conversation.id = (
    SELECT max(c.id) FROM conversation AS c JOIN tenant AS t ON t.id = c.tenant
    WHERE c.public = ?1 AND (CAST(?2 AS TEXT) IS NULL OR t.name = ?2))
ORDER BY turn.id
"""
BY_KEY = "turn.key = ?1 AND (CAST(?2 AS TEXT) IS NULL OR tenant.name = ?2)"
BY_REQUEST = """turn.id = (
    SELECT max(n.id) FROM (SELECT id, conversation, explain FROM turn ORDER BY id DESC LIMIT ?3) AS n
    JOIN conversation AS c ON c.id = n.conversation JOIN tenant AS t ON t.id = c.tenant
    WHERE field(n.explain, 'request') = ?1 AND (CAST(?2 AS TEXT) IS NULL OR t.name = ?2))
"""
LONGEST_NUMBER_DIGITS = 15  # fits into an integer of the database
REQUESTS_LOOKED_AT = 20_000  # the newest; reading so many explain records takes a fifth of a second
NEWEST = """turn.id = (
    SELECT max(n.id) FROM turn AS n JOIN conversation AS c ON c.id = n.conversation JOIN tenant AS t ON t.id = c.tenant
    WHERE CAST(?1 AS TEXT) IS NULL OR t.name = ?1)
"""


class Journal:
    """The journal of one database."""

    def __init__(self, database: Engine) -> None:
        self._database = database

    def __repr__(self) -> str:
        return f"<Journal {self._database!r}>"

    async def history_of(self, clues: Clues) -> KnownHistory:
        """Which stored conversations left these clues, and how the likeliest of them stood last."""
        wanted = {(kind, fingerprint) for kind, prints in clues.prints.items() for fingerprint in prints}
        asked = ids(dict.fromkeys(fingerprint for _, fingerprint in sorted(wanted)))

        def look(ask: Ask) -> tuple[list[Row], list[Row], list[Row]]:
            whose = clues.user, clues.is_of_users, clues.scope, clues.is_of_scopes
            rows = ask(LINKS, (asked, clues.tenant, MAX_LINKS_OF_PRINT - 1, *whose))
            rows = [row for row in rows if (row[0], row[1]) in wanted]
            likeliest = ids(_likeliest(rows))
            standing = HEADS, (likeliest, MAX_HEADS_READ, clues.tenant)
            blocks = BLOCKS, (likeliest, clues.tenant)
            ask_ahead(ask, lambda: [lambda ask: ask(*standing), lambda ask: ask(*blocks)])
            heads = ask(*standing)
            named = {turn for kind, *_, turn in rows if kind == LinkKind.REPLY} - {head[1] for head in heads}
            further = (head_after(ask, turn) for turn in sorted(named)[-MAX_CONVERSATIONS:])
            return rows, [*heads, *(head for head in further if head)], ask(*blocks)

        return _seen(*await self._database.ask(look, clues.tenant))

    async def head(self, asked: Continuation) -> KnownHistory:
        """
        How the conversation of a turn stands, the newest state first, and all links of its answer.

        Nothing where there is no such turn, or where it is not the newest state.
        """
        return _seen(*await self._database.ask(partial(_head_of, asked), asked.tenant))

    def head_at_once(self, asked: Continuation) -> KnownHistory | None:
        """What `head` finds, read on the event loop; None: ask `head`, which waits."""
        found = self._database.ask_at_once(partial(_head_of, asked))
        return None if found is None else _seen(*found)

    async def messages(self, tenant: str, occurrences: Sequence[int]) -> Mapping[int, Message]:
        """The stored messages of these occurrences, in their order; those that are not there are left out."""
        rows = await self._database.read(
            "SELECT occurrence.id, content.text, content.rest FROM numbers(?) AS asked"
            " JOIN occurrence ON occurrence.id = asked.value JOIN content ON content.id = occurrence.content"
            " WHERE content.tenant = (SELECT id FROM tenant WHERE name = ?) ORDER BY asked.key",
            (ids(occurrences), tenant),
            tenant,
        )
        return {id: read_message(from_stored(text, rest)) for id, text, rest in rows}

    async def current_facts(self, query: FactQuery, now: float) -> CurrentFacts:
        """The facts that a request may be told; see `current_facts.current_facts`."""
        from palimpsest.store.knowledge.current_facts import current_facts  # nobody else waits for what reads facts

        return await self._database.ask(lambda ask: current_facts(ask, query, now), query.whose.tenant)

    async def answers(self, tenant: str, prints: Sequence[int]) -> tuple[Message, ...]:
        """The answers that left these links of kind `REPLY`."""
        rows = await self._database.read(ANSWERS, (ids(prints), tenant, LinkKind.REPLY), tenant)
        return tuple(read_message(from_stored(text, rest)) for text, rest in rows)

    async def handed_out(self, tenant: str, prints: Collection[int], user: str, scope: str) -> frozenset[int]:
        """Those of these links of kind `REPLY` that an answer to this user, in this project, of this tenant left."""
        rows = await self._database.read(
            "SELECT DISTINCT link.fingerprint FROM numbers(?1) AS asked"
            " INNER JOIN link ON link.tenant = (SELECT id FROM tenant WHERE name = ?2)"
            " AND link.fingerprint = asked.value AND link.kind = ?3"
            " JOIN conversation ON conversation.id = link.conversation AND user_id = ?4 AND scope = ?5",
            (ids(list(prints)), tenant, LinkKind.REPLY, user, scope),
            tenant,
        )
        return frozenset(row[0] for row in rows)

    async def occurrences(self, tenant: str, conversation: str) -> frozenset[int]:
        """Every message that stands in this conversation, in any of its branches."""
        rows = await self._database.read(
            "SELECT occurrence.id FROM occurrence JOIN conversation ON conversation.id = occurrence.conversation"
            " JOIN tenant ON tenant.id = conversation.tenant WHERE tenant.name = ? AND conversation.public = ?",
            (tenant, conversation),
            tenant,
        )
        return frozenset(row[0] for row in rows)

    async def is_partly_erased(self, tenant: str, conversation: str) -> bool:
        """Whether something of this conversation was erased on request."""
        from palimpsest.store.turns.tombstones import holds_erased  # late: only what we compact ourselves asks

        def look(ask: Ask) -> bool:
            sql = (
                "SELECT tenant.id, conversation.id FROM conversation JOIN tenant ON tenant.id = conversation.tenant"
                " WHERE tenant.name = ? AND conversation.public = ?"
            )
            return any(holds_erased(ask, *row) for row in ask(sql, (tenant, conversation)))

        return await self._database.ask(look, tenant)

    async def compacted(self, tenant: str, turn: str) -> Compacted | None:
        """What a turn left in the place of a history; None: nothing, or it is no longer there."""
        rows = await self._database.read(COMPACTED, (turn, tenant), tenant)
        return next((Compacted(_block(row[1:8])[1], *row[8:]) for row in rows), None)

    async def tenants(self, conversation: str = "") -> list[str]:
        """Names of those who have a conversation of this id ("": any, or all where nobody has one), newest first."""
        rows = await self._database.read(
            "SELECT name FROM tenant WHERE EXISTS (SELECT 1 FROM conversation WHERE conversation.tenant = tenant.id"
            " AND ?1 IN ('', public)) OR (?1 = '' AND NOT EXISTS (SELECT 1 FROM conversation)) ORDER BY id DESC",
            (conversation,),
        )
        return [name for (name,) in rows]

    async def request(self, tenant: str, conversation: str, number: int | None = None) -> tuple[Json, ...]:
        """
        The whole message list of the n-th request (1-based; None: the newest), as it was sent.

        Lossless up to redaction, media and blocks of ours. Empty where there is no such turn.
        """
        found = await self.turn(tenant, conversation, number)
        if found is None:
            return ()
        turn = found["turn"]
        listed = (await self._database.ask(lambda ask: message_list(ask, turn), tenant)).messages
        stored = await self.messages(tenant, [occurrence for _, occurrence in listed])
        return tuple(stored[occurrence].raw for _, occurrence in listed if occurrence in stored)

    async def write(self, requests: Sequence[Record] = (), answers: Sequence[AnswerRecord] = ()) -> Mapping[str, Cost]:
        """
        Commit requests and what was heard of answers, in one transaction: journal, heads, links, blocks, memories and
        full-text rows. What is already written is not written again; a refused turn loses its content.

        Returns:
            What the requests cost whose answers were written now, by their turns' ids.

        Raises:
            DataFault: something of it can never be written.
            MemoryFault: nothing could be written now.
        """
        from palimpsest.store.turns.turns import tenants_of, write_turns  # late: a process that serves does not write

        return await self._database.transact(
            lambda transaction: write_turns(transaction, requests, answers),
            lambda ask: tenants_of(ask, requests, answers),
        )

    async def set_aside(self, what: Sequence[Quarantined]) -> None:
        """Remember what could not be stored. Raises `MemoryFault`: not even that can be written now."""
        rows = [(one.turn_id, one.part, one.reason, one.chars, one.digest, one.created_at) for one in what]
        await self._database.write([(SET_ASIDE, rows)])

    async def check(self) -> None:
        """
        Whether turns could be written now; opens a database that had failed. Raises `MemoryFault`: they could not.
        """
        await self._database.transact(lambda transaction: None, nobody)

    async def turn(self, tenant: str | None, conversation: str, number: int | None) -> Mapping[str, Any] | None:
        """The record behind `explain`: the n-th turn (1-based; None = newest) of a conversation."""
        if number == 0:
            return None
        if number is None:
            rows = await self._database.read(f"{TURN}{IN_CONVERSATION} DESC LIMIT 1", (conversation, tenant))
        else:
            rows = await self._database.read(
                f"{TURN}{IN_CONVERSATION} LIMIT 1 OFFSET ?3", (conversation, tenant, number - 1)
            )
        return _turn(rows)

    async def turn_named(self, tenant: str | None, key: str | None) -> Mapping[str, Any] | None:
        """
        The same, by `x-palimpsest-turn`, as CONVERSATION/N or, of the newest turns, by `x-palimpsest-request`.

        Args:
            key: None: the newest turn of all.
        """
        if key is None:
            return _turn(await self._database.read(TURN + NEWEST, (tenant,)))
        found = _turn(await self._database.read(TURN + BY_KEY, (key, tenant)))
        if found is not None or key.startswith(TURN_PREFIX):
            return found
        conversation, _, number = key.rpartition("/")
        if conversation and number.isdecimal() and len(number) <= LONGEST_NUMBER_DIGITS:
            return await self.turn(tenant, conversation, int(number))
        return _turn(await self._database.read(TURN + BY_REQUEST, (key, tenant, REQUESTS_LOOKED_AT)))

    async def pending(self) -> int:
        """
        How many passages are not indexed yet. Raises `MemoryFault`: also where only writing, and so the journal, fails.
        """
        if self._database.error:
            raise MemoryFault(self._database.error)
        return await self._database.ask(count_pending)

    async def oldest_pending(self) -> float:
        """When the oldest pending passage was said, Unix seconds; 0: none waits."""
        return await self._database.ask(oldest_pending)

    async def stats(self) -> Mapping[str, Any]:
        """Counts, sizes, lag and search times: see `stats.usage`."""
        from palimpsest.store.turns.stats import usage  # late: only who looks at the statistics asks

        return await self._database.ask(usage)


def _head_of(asked: Continuation, ask: Ask) -> tuple[list[Row], list[Row], list[Row]]:
    """Links, heads and blocks, for `_seen`; a few rows by their keys."""
    standing = STANDING, (asked.turn, asked.tenant, MAX_HEADS_READ)
    links, blocks = (LINKS_OF, (asked.tenant, asked.answer)), (BLOCKS_BESIDE, (asked.turn, asked.tenant))
    ask_ahead(ask, lambda: [lambda ask: ask(*standing), lambda ask: ask(*links), lambda ask: ask(*blocks)])
    rows = ask(*standing)
    if not rows or rows[0][3] != rows[0][0]:
        return [], [], []
    has_blocks, heads = rows[0][1], [row[2:] for row in rows]
    return ask(*links), heads, ask(*blocks) if has_blocks else []


def _turn(rows: Sequence[Row]) -> Mapping[str, Any] | None:
    names = (
        *("conversation", "tenant", "turn", "role", "event", "ending", "model", "messages", "prompt_tokens"),
        *("created_at", "explain", "user", "scope", "parent", "key", "turns", "number"),
    )
    if not rows:
        return None
    found = dict(zip(names, rows[0], strict=True))
    return found | {"explain": orjson.loads(found["explain"])}


def _seen(rows: Sequence[Row], heads: Sequence[Row], blocks: Sequence[Row]) -> KnownHistory:
    links = tuple(
        Link(LinkKind(kind), fingerprint, public, Role(role), turn) for kind, fingerprint, _, public, role, turn in rows
    )
    said: dict[str, list[StoredBlock]] = defaultdict(list)
    for conversation, *row in blocks:
        said[conversation].append(StoredBlock(*_block(row)))
    return KnownHistory(links, tuple(head_of(head, tuple(said[head[0]])) for head in heads))


def _block(row: Sequence[Any]) -> tuple[int, Block]:
    """A block, behind the occurrence that carries it."""
    anchor, text, kind, packed, tokens, role, told = row
    facts = tuple((id, source) for id, source in orjson.loads(told)) if told != "[]" else ()
    of_facts = {source for _, source in facts}
    sources = orjson.loads(packed)
    parted_at = sources.index(0) if 0 in sources else len(sources)
    quoted = tuple(occurrence for occurrence in sources[:parted_at] if occurrence not in of_facts)
    return anchor, Block(text, BlockKind(kind), quoted, tokens, role, facts, tuple(sources[parted_at + 1 :]))


def _likeliest(rows: Sequence[Row]) -> list[int]:
    """The conversations in question: named ones, then by how many links lead there and to few others, then newest."""
    share = Counter((kind, fingerprint) for kind, fingerprint, *_ in rows)
    weight: dict[int, tuple[bool, float, int]] = defaultdict(lambda: (False, 0.0, 0))
    for kind, fingerprint, conversation, _, _, turn in rows:
        is_named, led, newest = weight[conversation]
        is_named |= kind in (LinkKind.CLIENT_ID, LinkKind.REPLY)
        weight[conversation] = (is_named, led + 1 / share[kind, fingerprint], max(newest, turn))
    return sorted(weight, key=lambda conversation: weight[conversation], reverse=True)[:MAX_CONVERSATIONS]
