"""Requests as rows: each is a diff against the head that it continues, with all that leads back to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import field, replace

import orjson

from palimpsest.core.archive.tombstones import SentMessage, Tombstone, resends
from palimpsest.domain import Block, HeadFlag, LinkKind, ParentListing, Record, Role, Turn, frozen
from palimpsest.store.engine import Row, Statement, Transaction, ids
from palimpsest.store.families.facts import move_facts
from palimpsest.store.families.passages import write_passages
from palimpsest.store.turns.branch_heads import Listed, int64_of, to_listing, to_lost, to_state
from palimpsest.store.turns.branch_writing import (
    MAX_TAIL_MESSAGES,
    ROW_BYTES,
    Parent,
    listing_prefix,
    remove_unused_listings,
)
from palimpsest.store.turns.diffs import encode_kept, encode_run
from palimpsest.store.turns.messages import NewOccurrence, write_occurrences
from palimpsest.store.turns.reminders import take_up
from palimpsest.store.turns.tombstones import (
    ERASED_TURN,
    holds_erased,
    retirement_of,
    retirement_of_messages,
    tombstones,
    uncovered,
    was_erased_whole,
    without_passages,
    without_query,
    without_text,
)
from palimpsest.wire.values import dumps

MAX_HEADS = 16  # of one conversation: parallel branches, and the states before compactions, newest first

# What a request goes on from: each row by its key.
KNOWN = """
WITH asked AS MATERIALIZED (
    SELECT key AS place, item(value, 0) AS turn, item(value, 1) AS tenant, item(value, 2) AS conversation,
        CAST(item(value, 3) AS BIGINT) AS parent FROM arrays(?) AS one)
SELECT EXISTS (SELECT 1 FROM erasure) OR EXISTS (SELECT 1 FROM erased), turn.id, tenant.id,
    conversation.id, conversation.role, conversation.user_id, conversation.scope,
    conversation.folder, (SELECT count(*) FROM head AS other WHERE other.conversation = conversation.id),
    (SELECT count(*) FROM listing AS other WHERE other.conversation = conversation.id),
    before.id, before.tenant, before.ending, head.lost, head.base, length(listing.rows), head.listing
FROM asked
LEFT JOIN tenant ON tenant.name = asked.tenant
LEFT JOIN turn ON turn.key = asked.turn AND turn.tenant = tenant.id
LEFT JOIN conversation ON conversation.tenant = tenant.id AND conversation.public = asked.conversation
LEFT JOIN turn AS before ON before.id = asked.parent AND before.tenant = tenant.id
LEFT JOIN head ON head.turn = before.id LEFT JOIN listing ON listing.turn = head.base
ORDER BY asked.place
"""
CONVERSATIONS = """
WITH asked AS MATERIALIZED (
    SELECT DISTINCT CAST(item(value, 0) AS BIGINT) AS tenant, item(value, 1) AS public FROM arrays(?) AS one)
SELECT conversation.tenant, conversation.public, conversation.id FROM asked
INNER JOIN conversation ON conversation.tenant = asked.tenant AND conversation.public = asked.public
"""

# A subquery with one value is asked for each link, by keys; of `NOT EXISTS` PostgreSQL makes a join with whole tables.
LINK = """
INSERT INTO link(tenant, fingerprint, kind, conversation, turn)
SELECT tenant, fingerprint, kind, conversation, turn FROM (
    SELECT CAST(item(value, 0) AS BIGINT) AS tenant, CAST(item(value, 1) AS BIGINT) AS fingerprint,
        item(value, 2) AS kind, CAST(item(value, 3) AS BIGINT) AS conversation, CAST(item(value, 4) AS BIGINT) AS turn
    FROM arrays(?) AS one ORDER BY key) AS left_now
WHERE 0 = (
    SELECT count(*) FROM link AS other JOIN turn ON turn.id = other.turn AND turn.tenant = other.tenant
    WHERE other.tenant = left_now.tenant AND other.fingerprint = left_now.fingerprint AND other.kind = left_now.kind
        AND other.conversation = left_now.conversation AND turn.ending <> 'open')
ON CONFLICT DO NOTHING
"""
NewLink = tuple[int, int, LinkKind, int, int]
"""Tenant, fingerprint, kind, conversation, turn."""

GONE = SentMessage(full=-1, opening=-1, is_instruction=False, is_assistant=True, is_new=False)
"""
A message that a request carries and that is not stored any more: its conversation was erased meanwhile, or the request
that brought it was taken back. It was known, so what stands in front of it is history, as before an answer.
"""

Tenants = Mapping[str, int]
Conversations = Mapping[tuple[int, str], int]


@frozen
class _StoredState:
    """What stands in the database of a request, and of what it goes on from."""

    was_erased: bool  # something, ever, of anybody
    turn: int | None  # None: it is not written yet
    tenant: int | None
    conversation: tuple[int, str, str, str, int] | None  # row id, role, user, scope, folder
    heads: int  # of the conversation
    has_listings: bool  # likewise
    parent: Parent | None

    @classmethod
    def of(cls, row: Row) -> _StoredState:
        was_erased, turn, tenant, conversation, role, user, scope, folder, heads, has_listings, *parent = row
        stored = None if conversation is None else (conversation, role, user, scope, folder)
        before = None if parent[0] is None else Parent.of(tuple(parent))
        return cls(bool(was_erased), turn, tenant, stored, heads, bool(has_listings), before)


def write_requests(transaction: Transaction, records: Sequence[Record]) -> PendingRows:
    """
    Write the requests whose turns are not stored yet; the others change nothing.

    Returns:
        The rows that are still to be written, together with those of the answers.
    """
    if not records:
        return PendingRows()
    asked = [[turn.id, turn.tenant, turn.conversation, turn.parent_turn] for turn in (r.turn for r in records)]
    rows = map(_StoredState.of, transaction.read(KNOWN, (orjson.dumps(asked).decode(),)))
    known = {record.turn.id: row for record, row in zip(records, rows, strict=True)}
    fresh = {record.turn.id: record for record in records if known[record.turn.id].turn is None}
    if not fresh:
        return PendingRows()
    was_erased = any(row.was_erased for row in known.values())
    if was_erased:
        fresh = {key: uncovered(transaction.read, record) for key, record in fresh.items()}
    turns = [record.turn for record in fresh.values()]
    tenants = _tenants(transaction, turns, known)
    conversations = _conversations(transaction, turns, tenants, known)
    parents = {row.parent.number: row.parent for row in known.values() if row.parent is not None}
    going_on = {turn.id for turn in turns if _goes_on(turn, parents, tenants[turn.tenant])}
    if was_erased:
        going_on -= {id for id in going_on if _touches_erased(transaction, parents, fresh[id])}
    diffs = [turn for turn in turns if turn.id not in going_on]
    continued = parents.keys() & {turn.parent_turn for turn in diffs}
    listings = {number: parents[number].listing(transaction.read) for number in continued}
    loose = _loose(transaction, diffs, {*tenants.values()}, listings)
    numbers = transaction.new_ids("turn", len(fresh))
    occurrences = iter(transaction.new_ids("occurrence", sum(len(record.entries) for record in fresh.values())))
    requests = []
    for number, record in zip(numbers, fresh.values(), strict=True):
        turn, tenant = record.turn, tenants[record.turn.tenant]
        conversation = conversations[tenant, turn.conversation]
        new = [
            NewOccurrence(next(occurrences), tenant, conversation, number, entry.new.position, entry, turn.created_at)
            for entry in record.entries
        ]
        parent = parents.get(turn.parent_turn or 0)
        parent = parent if parent and parent.tenant == tenant else None
        if turn.id in going_on:
            request = _Request(number, tenant, conversation, turn, parent, new, turn.whole)
        else:
            listed = listings[parent.number] if parent else {}
            kept = {at: o for at, o in turn.carried if o in listed or loose.get(o, (0,))[0] == tenant}
            placed = {at: listed[o] if o in listed else loose[o][1] for at, o in kept.items()}
            gone = tuple(at for at, _ in turn.carried if at not in kept)
            request = _Request(number, tenant, conversation, turn, parent, new, None, listed, kept, placed, gone)
        requests.append(_without_erased(transaction, request, record) if was_erased else request)
    return _write(transaction, requests, known)


@frozen
class _Request:
    """One request with every name resolved. What it carries is `whole`, or else `kept` and `placed`."""

    number: int
    tenant: int
    conversation: int
    turn: Turn
    parent: Parent | None
    new: Sequence[NewOccurrence]
    whole: ParentListing | None = None
    listed: Mapping[int, Listed] = field(default_factory=dict)  # of the parent
    kept: Mapping[int, int] = field(default_factory=dict)  # position: occurrence
    placed: Mapping[int, Listed | None] = field(default_factory=dict)  # the same; None for instructions
    gone: Sequence[int] = ()  # positions of what it carries that is not stored any more

    @property
    def messages(self) -> int:
        last = self.whole.stop - 1 if self.whole else max(self.kept, default=-1)
        return 1 + max([last, *(s.position for s in self.new)])

    @property
    def encoded_kept(self) -> str:
        if self.whole:
            return encode_run(self.whole.position, len(self.whole.occurrences))
        return encode_kept(sorted(self.kept.items()), tuple(self.listed))

    def occurrence_at(self, position: int) -> int | None:
        """The message in one place; None: it is not stored."""
        found = next((s.occurrence for s in self.new if s.position == position), None)
        if found is None and self.whole and self.whole.position <= position < self.whole.stop:
            return self.whole.occurrences[position - self.whole.position]
        return self.kept.get(position) if found is None else found


def _goes_on(turn: Turn, parents: Mapping[int, Parent], tenant: int) -> bool:
    """Whether a turn carries all that its parent's listing has, so that only what is new of it is to be looked at."""
    parent = parents.get(turn.parent_turn or 0)
    return (
        turn.whole is not None
        and parent is not None
        and parent.tenant == tenant
        and parent.tail is not None
        and not (parent.is_open or turn.lost or turn.kept)
        and parent.messages == len(turn.whole.occurrences)
    )


def _touches_erased(transaction: Transaction, parents: Mapping[int, Parent], record: Record) -> bool:
    """Whether a request repeats, or brings again, something that was erased or retired."""
    flags = parents[record.turn.parent_turn or 0].flags(transaction.read)
    is_marked = any(flag & (HeadFlag.ERASED | HeadFlag.RETIRED) for flag in flags)
    return is_marked or bool(tombstones(transaction.read, (entry.new.fingerprint for entry in record.entries)))


def _without_erased(transaction: Transaction, r: _Request, record: Record) -> _Request:
    """
    The request without the texts that were erased before and come by again; what was retired stays so.

    One beside a conversation of which something was erased keeps no text at all: a summariser gets all that was said,
    often as one message.
    """
    if r.turn.role is Role.SIDE and (
        holds_erased(transaction.read, r.tenant, r.conversation) or was_erased_whole(transaction.read, record)
    ):
        occurrences = [replace(s, entry=without_text(s.entry)) for s in r.new]
        block = r.turn.block
        if block is not None and (r.turn.quotes or not _all_stand(transaction, r.tenant, block.sources)):
            block = None
        return replace(r, turn=replace(r.turn, explain=orjson.loads(ERASED_TURN), block=block), new=occurrences)
    turn, occurrences = r.turn, list(r.new)
    stones = tombstones(transaction.read, (s.entry.new.fingerprint for s in r.new))
    if stones or _carries(r, HeadFlag.ERASED):
        gone, is_beside = _come_again(r, record, [stone for stone in stones if not stone.retirement], HeadFlag.ERASED)
        if gone or is_beside:
            texts = [s.entry.text for s in r.new if s.position not in gone]
            turn = replace(turn, explain=without_query(turn.explain, texts))
        occurrences = [replace(s, entry=without_text(s.entry)) if s.position in gone else s for s in r.new]
    occurrences = _retired(transaction, replace(r, new=occurrences), record, [s for s in stones if s.retirement])
    if turn.block is not None and not _all_stand(transaction, r.tenant, turn.block.sources):
        turn = replace(turn, block=None)
    return replace(r, turn=turn, new=occurrences)


def _retired(transaction: Transaction, r: _Request, record: Record, stones: Sequence[Tombstone]) -> list[NewOccurrence]:
    """The new messages; those that were retired before, or belong to what was, are not found."""
    whole = retirement_of(transaction.read, record)
    by_full = {stone.full: stone.retirement for stone in stones}
    again: Set[int] = frozenset()
    if stones or _carries(r, HeadFlag.RETIRED):
        again, _ = _come_again(r, record, stones, HeadFlag.RETIRED)
    if not whole and not again:
        return list(r.new)
    beside = retirement_of_messages(transaction.read, r.tenant, r.kept.values()) if again else 0
    newest = max(whole, beside, *by_full.values(), 0)

    def retired(s: NewOccurrence) -> NewOccurrence:
        retirement = whole or (by_full.get(s.entry.new.fingerprint.full, newest) if s.position in again else 0)
        return replace(s, entry=without_passages(s.entry), retirement=retirement) if retirement else s

    return [retired(s) for s in r.new]


def _carries(r: _Request, flag: int) -> bool:
    """Whether a message that the request repeats has this flag."""
    return any(row[3] & flag for row in r.placed.values() if row is not None)


def _come_again(r: _Request, record: Record, stones: Sequence[Tombstone], flag: int) -> tuple[Set[int], bool]:
    """
    Positions of new messages that these tombstones recognise.

    Args:
        flag: that known messages have which were recognised before.

    Returns:
        Also whether the request repeats such a message, unless it went for its age.
    """
    known = {position: row for position, row in r.placed.items() if row is not None}
    sent = {s.position: _new_message(s) for s in r.new}
    sent |= {position: _known_message(row, flag) for position, row in known.items()}
    sent |= dict.fromkeys(r.gone, replace(GONE, is_erased=r.parent is None))
    places = sorted(sent)
    found = resends(
        [sent[place] for place in places], stones, record.scopes[0] if record.scopes else 0, r.turn.created_at
    )
    is_beside = any(row[3] & (flag | HeadFlag.SWEPT) == flag for row in known.values())
    return {places[at] for at in found}, is_beside or (bool(r.gone) and r.parent is None)


def _new_message(new: NewOccurrence) -> SentMessage:
    said = new.entry.new
    is_assistant = said.message.role == "assistant"
    return SentMessage(said.fingerprint.full, said.fingerprint.opening, said.message.is_instruction, is_assistant, True)


def _known_message(kept: Listed, flag: int) -> SentMessage:
    full, opening, _, flags = kept
    return SentMessage(full, opening, False, bool(flags & HeadFlag.ASSISTANT), False, bool(flags & flag))


def _all_stand(transaction: Transaction, tenant: int, occurrences: Sequence[int]) -> bool:
    """Whether all messages that a block holds words of are still there, and in use."""
    ((count,),) = transaction.read(
        "SELECT count(*) FROM numbers(?) AS quoted JOIN occurrence ON occurrence.id = quoted.value"
        f" AND occurrence.tenant = ? WHERE occurrence.flags & {HeadFlag.ERASED | HeadFlag.RETIRED} = 0",
        (ids(set(occurrences)), tenant),
    )
    return bool(count == len(set(occurrences)))


def _write(transaction: Transaction, requests: Sequence[_Request], known: Mapping[str, _StoredState]) -> PendingRows:
    turns = (
        "INSERT INTO turn(id, tenant, key, conversation, parent, role, event, kept, messages, model, explain,"
        " created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                *(r.number, r.tenant, r.turn.id, r.conversation, r.turn.parent_turn if r.parent else None),
                *(r.turn.role, r.turn.event, r.encoded_kept, r.messages),
                *(r.turn.model, dumps(r.turn.explain), r.turn.created_at),
            )
            for r in requests
        ],
    )
    with_listings = _write_with_heads(transaction, turns, [r for r in requests if r.turn.role is not Role.SIDE], known)
    take_up(transaction, [(r.number, memory) for r in requests for memory in r.turn.reminders])
    opened = {
        r.turn.id: OpenTurn(
            *(r.number, r.conversation, r.tenant, r.turn.parent_turn if r.parent else None, r.messages),
            was_erased=dumps(r.turn.explain) == ERASED_TURN,
            retirement=max((s.retirement for s in r.new), default=0),
            has_listings=known[r.turn.id].has_listings or r.conversation in with_listings,
        )
        for r in requests
    }
    unwritten = PendingRows(
        [occurrence for r in requests for occurrence in r.new],
        [(r.tenant, link, kind, r.conversation, r.number) for r in requests for kind, link in r.turn.links],
        opened,
    )
    if any(r.turn.block or r.turn.replaces_blocks for r in requests):  # blocks stand on messages
        unwritten.write(transaction)
        _write_blocks(transaction, requests)
        return PendingRows(opened=opened)
    return unwritten


@frozen
class OpenTurn:
    """A written request that has no answer yet."""

    number: int
    conversation: int
    tenant: int
    parent: int | None
    messages: int
    was_erased: bool  # while its answer was on its way
    retirement: int  # of what it asked, meanwhile; 0 none
    has_listings: bool  # its conversation


@frozen
class PendingRows:
    """Messages and links of turns, to be written together with those of the answers to them; and these turns, by id."""

    occurrences: Sequence[NewOccurrence] = ()
    links: Sequence[NewLink] = ()
    opened: Mapping[str, OpenTurn] = field(default_factory=dict)

    def write(self, transaction: Transaction) -> None:
        """Write them, with the passages that find the messages."""
        write_passages(transaction, write_occurrences(transaction, self.occurrences))
        transaction.write(*links_as_rows(self.links))


def links_as_rows(links: Sequence[NewLink]) -> Statement:
    """
    The statement that writes links, except those that a turn with an answer has written: these are permanent, and ids
    come with every request.
    """
    return LINK, [(orjson.dumps(links).decode(),)] if links else ()


def _tenants(transaction: Transaction, turns: Sequence[Turn], known: Mapping[str, _StoredState]) -> Tenants:
    found = {turn.tenant: row for turn in turns if (row := known[turn.id].tenant) is not None}
    if new := sorted({turn.tenant for turn in turns} - found.keys()):
        transaction.write("INSERT INTO tenant(name) VALUES (?)", [(name,) for name in new])
        sql = "SELECT tenant.name, tenant.id FROM texts(?) AS asked JOIN tenant ON tenant.name = asked.value"
        found |= dict(transaction.read(sql, (orjson.dumps(new).decode(),)))
    return found


def _conversations(
    transaction: Transaction, turns: Sequence[Turn], tenants: Tenants, rows: Mapping[str, _StoredState]
) -> Conversations:
    """Row ids of conversations; what only a later request makes known of them is written now."""
    known = {
        (tenants[turn.tenant], turn.conversation): of
        for turn in turns
        if (of := rows[turn.id].conversation) is not None
    }

    def stored_row(turn: Turn) -> tuple[int, str, str, str, int] | None:
        return known.get((tenants[turn.tenant], turn.conversation))

    def names_late(turn: Turn, user: str, scope: str) -> bool:
        return bool((turn.user and not user) or (turn.scope and not scope))

    late = {of[0] for turn in turns if (of := stored_row(turn)) and names_late(turn, *of[2:4])}
    changed = [
        turn
        for turn in turns
        if (of := stored_row(turn)) is None
        or of[0] in late
        or (of[1] == Role.SIDE and turn.role is not Role.SIDE)
        or (turn.folder and not of[4])
        or turn.folder > 0 > of[4]
    ]
    if not changed:
        return {key: of[0] for key, of in known.items()}
    if late:  # caches of what this user said elsewhere have read past these passages: they look again
        transaction.keep_order("forgotten")
    transaction.write(
        "INSERT INTO forgotten(memory) SELECT id FROM memory"
        " WHERE conversation = ? AND /*+ NO_INDEX */ memory.tenant = ?",
        sorted({(id, tenant) for (tenant, _), (id, *_) in known.items() if id in late}),
    )
    transaction.write(
        "INSERT INTO conversation AS mine (tenant, public, role, parent, user_id, scope, folder, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (tenant, public) DO UPDATE SET"
        " role = CASE WHEN mine.role = 'side' THEN excluded.role ELSE mine.role END,"
        " user_id = CASE WHEN mine.user_id = '' THEN excluded.user_id ELSE mine.user_id END,"
        " scope = CASE WHEN mine.scope = '' THEN excluded.scope ELSE mine.scope END,"
        " folder = CASE WHEN mine.folder = 0 OR mine.folder < 0 AND excluded.folder > 0 THEN excluded.folder"
        " ELSE mine.folder END"
        " WHERE (mine.role = 'side' AND excluded.role <> 'side') OR (mine.user_id = '' AND excluded.user_id <> '')"
        " OR (mine.scope = '' AND excluded.scope <> '') OR (mine.folder = 0 AND excluded.folder <> 0)"
        " OR (mine.folder < 0 AND excluded.folder > 0)",
        [
            (tenants[t.tenant], t.conversation, t.role, t.parent_conversation, t.user, t.scope, t.folder, t.created_at)
            for t in changed
        ],
    )
    if late:
        facts = transaction.read(
            "SELECT id FROM fact WHERE conversation IN (SELECT value FROM numbers(?))", (ids(late),)
        )
        move_facts(
            transaction,
            (id for (id,) in facts),
            "user_id = (SELECT user_id FROM conversation WHERE id = fact.conversation),"
            " scope = (SELECT scope FROM conversation WHERE id = fact.conversation)",
        )
    asked = orjson.dumps([[tenants[turn.tenant], turn.conversation] for turn in turns]).decode()
    return {(tenant, public): id for tenant, public, id in transaction.read(CONVERSATIONS, (asked,))}


def _loose(
    transaction: Transaction,
    turns: Sequence[Turn],
    tenants: Collection[int],
    listings: Mapping[int, Mapping[int, Listed]],
) -> dict[int, tuple[int, Listed | None]]:
    """
    Kept messages that the parent's listing does not have, by occurrence: tenant and, but for instructions, what a
    listing says of it. What is not there any more was taken back meanwhile, with the request that brought it.
    """
    wanted = set()
    for turn in turns:
        listed = listings.get(turn.parent_turn or 0, {})
        wanted |= {occurrence for _, occurrence in turn.carried if occurrence not in listed}
    if not wanted:
        return {}
    rows = transaction.read(
        "SELECT conversation.tenant, fingerprint, opening, occurrence.id, flags,"
        " occurrence.role IN ('system', 'developer') FROM numbers(?) AS asked"
        " JOIN occurrence ON occurrence.id = asked.value AND occurrence.tenant IN (SELECT value FROM numbers(?))"
        " JOIN conversation ON conversation.id = occurrence.conversation",
        (ids(wanted), ids(tenants)),
    )
    return {
        occurrence: (tenant, None if is_instruction else (full, opening, occurrence, flags))
        for tenant, full, opening, occurrence, flags, is_instruction in rows
    }


def _write_with_heads(
    transaction: Transaction, turns: Statement, requests: Sequence[_Request], known: Mapping[str, _StoredState]
) -> Set[int]:
    """
    Turns, and the heads of these branches from now on. Returns the conversations of the requests that have listings.

    One replaces its parent's where it carries all of that, but only once its own answer is there: until then the
    request may be refused, and the parent's head is what remains.
    """
    heads, listings = [], []
    for r in requests:
        columns = _head_columns(r)
        base, tail = columns.base, columns.tail
        if len(tail) > MAX_TAIL_MESSAGES * ROW_BYTES:
            listings.append(
                (r.number, r.tenant, r.conversation, listing_prefix(transaction.read, r.tenant, base) + tail)
            )
            base, tail = r.number, b""
        cut = r.turn.cut.stored({s.position: s.occurrence for s in r.new})
        state = to_state(r.turn, columns.messages, r.occurrence_at(r.turn.restored_at) or 0, cut)
        heads.append((r.number, r.tenant, r.conversation, columns.replaces, state, columns.lost, base, tail))
    transaction.write_together(
        [
            turns,
            ("INSERT INTO listing(turn, tenant, conversation, rows) VALUES (?, ?, ?, ?)", listings),
            (
                "INSERT INTO head(turn, tenant, conversation, replaces, state, lost, base, listing)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                heads,
            ),
        ]
    )
    new = Counter(r.conversation for r in requests)
    full = {(r.tenant, r.conversation) for r in requests if known[r.turn.id].heads + new[r.conversation] > MAX_HEADS}
    transaction.write(
        "DELETE FROM head WHERE tenant = ?1 AND conversation = ?2 AND turn NOT IN"
        " (SELECT turn FROM head WHERE tenant = ?1 AND conversation = ?2 ORDER BY turn DESC LIMIT ?3)",
        [(*one, MAX_HEADS) for one in full],
    )
    with_listings = {r.conversation for r in requests if known[r.turn.id].has_listings} | {row[2] for row in listings}
    remove_unused_listings(transaction, {one for one in full if one[1] in with_listings})
    return with_listings


@frozen
class _HeadColumns:
    """How a conversation stands after a request, as the columns of a head."""

    replaces: int
    messages: int
    lost: bytes
    base: int
    tail: bytes


def _head_columns(r: _Request) -> _HeadColumns:
    parent, new = r.parent, {s.position: _to_listed(s) for s in r.new}
    if r.whole:  # what is new stands behind it
        assert parent is not None and parent.tail is not None
        rows = [row for _, row in sorted(new.items()) if row is not None]
        tail = parent.tail + to_listing(rows)
        return _HeadColumns(parent.number, parent.messages + len(rows), parent.lost, parent.base, tail)
    placed = dict(r.placed) | new
    rows = [row for _, row in sorted(placed.items(), key=lambda item: item[0]) if row is not None]
    carried = {row[2] for row in rows}
    is_replaced = parent and parent.tail is not None and not parent.is_open and carried.issuperset(r.listed)
    lost = dict.fromkeys((*(int64_of(parent.lost) if parent else ()), *r.turn.lost))
    return _HeadColumns(
        replaces=parent.number if parent and is_replaced else 0,
        messages=len(rows),
        lost=to_lost(o for o in lost if o not in carried),
        base=0,
        tail=to_listing(rows),
    )


def _to_listed(occurrence: NewOccurrence) -> Listed | None:
    new, fingerprint = occurrence.entry.new, occurrence.entry.new.fingerprint
    return (
        None
        if new.message.is_instruction
        else (fingerprint.full, fingerprint.opening, occurrence.occurrence, new.flags)
    )


def _sources(block: Block) -> str:
    """What a block is from, as JSON; behind a 0, which is no occurrence, the messages that it only mentions."""
    carried = [occurrence for occurrence in block.sources if occurrence not in block.mentions]
    return ids([*carried, *([0, *block.mentions] if block.mentions else ())])


def _write_blocks(transaction: Transaction, requests: Sequence[_Request]) -> None:
    rows = []
    for r in requests:
        block = r.turn.block
        anchor = r.occurrence_at(r.turn.anchor) if block else None
        if block is not None and anchor is not None:
            own = {at: is_whole for place, is_whole in r.turn.quotes if (at := r.occurrence_at(place))}
            whole = [at for at, is_whole in own.items() if is_whole]
            mentions = tuple(at for at in (*block.mentions, *own) if at not in whole)
            block = replace(block, occurrences=(*block.occurrences, *whole), mentions=mentions)
            said = (block.kind, block.text, block.role, block.tokens, _sources(block), dumps(block.facts))
            rows.append((anchor, r.tenant, r.conversation, r.number, *said))
    transaction.write(
        "INSERT INTO block(occurrence, tenant, conversation, turn, kind, text, role, tokens, occurrences, facts)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (tenant, occurrence) DO UPDATE SET"
        " conversation = excluded.conversation, turn = excluded.turn,"
        " kind = excluded.kind, text = excluded.text, role = excluded.role,"
        " tokens = excluded.tokens, occurrences = excluded.occurrences, facts = excluded.facts, shed = 0, retired = 0",
        rows,
    )
    transaction.write(
        "UPDATE block SET shed = ?1 WHERE tenant = ?2 AND conversation = ?3 AND turn < ?1 AND shed = 0",
        [(r.number, r.tenant, r.conversation) for r in requests if r.turn.replaces_blocks],
    )
