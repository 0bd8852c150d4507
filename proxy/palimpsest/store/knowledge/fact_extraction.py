"""
The extraction of facts as rows: how far it has come, and what it found.

One number says up to which message facts were extracted. A batch of the messages behind it is claimed by lease, so that
several workers share the work and one that dies holds it up for no longer than that. To make all facts again, the
number goes back to the beginning; until a message has its turn again, it keeps the facts that it had.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from palimpsest.core.archive.records import is_findable
from palimpsest.core.facts.marks import Statement, fact_id, marks, place_print
from palimpsest.domain import TOOL_ROLES, FactProposal, HeadFlag, Role, frozen
from palimpsest.store.engine import Ask, Row, Transaction, ids
from palimpsest.store.families.facts import remove_facts_where, settle
from palimpsest.store.operation.changes import lease, put_position, release

EXTRACTION = "facts"  # name of the task: the last message whose facts are there
LEASE = "facts run"  # ... and who works on it
VERSION = "facts version"  # ... and of which extractor they are
BATCH_MESSAGES = 50  # read and extracted at a time, some 20 ms; a tool's answer may be a megabyte

EARLIER_MESSAGES = 400  # of a conversation that are looked at, before one that states something
EARLIER_CHARS = 2_000  # of each

SOURCES = """
SELECT occurrence.id, conversation.id, conversation.public, conversation.user_id, conversation.scope, tenant.id,
    tenant.name, turn.role, occurrence.role, occurrence.flags, occurrence.fingerprint, turn.key, occurrence.position,
    CASE WHEN occurrence.role IN ('user', 'tool', 'function') THEN content.text ELSE '' END
FROM occurrence JOIN turn ON turn.id = occurrence.turn JOIN conversation ON conversation.id = occurrence.conversation
JOIN tenant ON tenant.id = conversation.tenant JOIN content ON content.id = occurrence.content
WHERE {} ORDER BY occurrence.id
"""
NEXT = SOURCES.format("occurrence.id > ? AND occurrence.id <= ?")
EARLIER = f"""
SELECT substr(content.text, 1, {{chars}}) FROM occurrence JOIN content ON content.id = occurrence.content
WHERE occurrence.conversation = ? AND occurrence.id < ? AND occurrence.role IN ('user', 'system', 'developer')
    AND occurrence.flags & {HeadFlag.ERASED} = 0 ORDER BY occurrence.id DESC LIMIT {{messages}}
""".format(chars=EARLIER_CHARS, messages=EARLIER_MESSAGES)
LAST = "SELECT max(id) FROM (SELECT id FROM occurrence WHERE id > ? ORDER BY id LIMIT ?) AS next"
WAITING = f"""
SELECT occurrence.id, occurrence.created_at FROM occurrence
WHERE occurrence.id > coalesce((SELECT next FROM task WHERE name = '{EXTRACTION}'), 0) ORDER BY occurrence.id LIMIT 1
"""
STORE = f"""
INSERT INTO fact(public, start, stop, extractor, subject, slot, value, category, single, confidence, pinned, place,
    tenant, conversation, user_id, scope, occurrence, said_at, retirement)
SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, conversation.tenant, conversation.id, user_id, scope, occurrence.id,
    occurrence.created_at, CASE WHEN flags & {HeadFlag.RETIRED} = 0 THEN 0 ELSE 1 END
FROM occurrence JOIN conversation ON conversation.id = occurrence.conversation WHERE occurrence.id = ?
"""
SET_ASIDE = """
INSERT INTO quarantine(turn, part, reason, chars, digest, created_at)
SELECT turn.key, 'facts', ?, length(content.text), bytes_of(occurrence.fingerprint), ?
FROM occurrence JOIN turn ON turn.id = occurrence.turn JOIN content ON content.id = occurrence.content
WHERE occurrence.id = ? AND NOT EXISTS (SELECT 1 FROM quarantine WHERE part = 'facts' AND quarantine.turn = turn.key
    AND quarantine.digest = bytes_of(occurrence.fingerprint))
"""
IN_RANGE = "occurrence > ?1 AND occurrence <= ?2"


@frozen
class Source:
    """A stored message, as the extraction reads it."""

    occurrence: int
    conversation: int
    public: str
    user: str
    scope: str
    tenant: int
    tenant_name: str
    request: str  # role of the request that brought it
    role: str
    flags: int
    full: int
    turn: str  # key
    position: int  # in the request that brought it
    text: str

    @property
    def may_state(self) -> bool:
        """Whether a person or a tool says it: no instruction, summary, or message between agents."""
        flags = self.flags & ~HeadFlag.RETIRED
        if flags & HeadFlag.ERASED or not is_findable(Role(self.request), self.role, flags):
            return False
        return self.role in TOOL_ROLES or (self.role == "user" and self.request == Role.MAIN)


@frozen
class Claim:
    """Messages that one worker was given: behind occurrence `after`, up to `last`; its lease ends at `until_ms`."""

    after: int
    last: int
    until_ms: int


def begin(transaction: Transaction, version: int) -> bool:
    """Note that facts are extracted by this version; True: they were by another, and are all made again."""
    known = transaction.read("SELECT next FROM task WHERE name = ?", (VERSION,))
    if known == [(version,)]:
        return False
    put_position(transaction, VERSION, version)
    start_over(transaction)
    return bool(known)


def start_over(transaction: Transaction) -> None:
    """Have the facts of all messages extracted again."""
    put_position(transaction, EXTRACTION)


def oldest_waiting_at(ask: Ask) -> float:
    """When the oldest message came that waits for extraction, Unix seconds; 0: none waits."""
    return next((float(row[1]) for row in ask(WAITING)), 0.0)


def claim(transaction: Transaction, now_ms: int, until_ms: int) -> Claim | None:
    """Claim the next messages for extraction; None: there are none, or another worker has them."""
    after = _last_extracted(transaction)
    ((last,),) = transaction.read(LAST, (after, BATCH_MESSAGES))
    if last is None or not lease(transaction, LEASE, 0, now_ms, until_ms):
        return None
    return Claim(after, last, until_ms)


def sources(ask: Ask, claimed: Claim) -> list[Source]:
    """The messages of a claim; texts may be long, and who writes meanwhile does not wait for their reading."""
    return [Source(*row) for row in ask(NEXT, (claimed.after, claimed.last))]


def earlier_texts(ask: Ask, source: Source) -> list[str]:
    """What people and instructions said in the conversation of a message before it, the newest first."""
    return [text for (text,) in ask(EARLIER, (source.conversation, source.occurrence))]


def save(
    transaction: Transaction,
    claimed: Claim,
    read: Sequence[Source],
    found: Mapping[int, Sequence[FactProposal]],
    broken: Mapping[int, str],
    version: int,
    key_of: Callable[[str], bytes],
    now: float,
) -> int | None:
    """
    Replace the facts that messages stated by new ones; returns how many there are.

    What was erased or forgotten since they were read is left out. None: another worker took over, or all is made again.

    Args:
        read: the messages, as `sources` has them.
        found: proposals by occurrence.
        broken: why the extraction of a message failed, by occurrence.
        key_of: the key of a tenant, by its name.
    """
    if not _is_mine(transaction, claimed):
        return None
    there = {
        row[0]
        for row in transaction.read(
            "SELECT occurrence.id FROM numbers(?) AS asked JOIN occurrence ON occurrence.id = asked.value"
            f" WHERE occurrence.flags & {HeadFlag.ERASED} = 0",
            (ids(found),),
        )
    }
    pinned = {
        row[0]
        for row in transaction.read(
            f"SELECT public FROM fact WHERE {IN_RANGE} AND pinned <> 0", (claimed.after, claimed.last)
        )
    }
    remove_facts_where(transaction, IN_RANGE, claimed.after, claimed.last)
    rows = [
        row
        for source in read
        if source.occurrence in there
        for row in _fact_rows(
            transaction, source, found[source.occurrence], version, key_of(source.tenant_name), pinned
        )
    ]
    transaction.write(STORE, rows)
    stored = transaction.read(f"SELECT id FROM fact WHERE {IN_RANGE}", (claimed.after, claimed.last))
    settle(transaction, ids(id for (id,) in stored))
    transaction.write(SET_ASIDE, [(reason, now, occurrence) for occurrence, reason in broken.items()])
    put_position(transaction, EXTRACTION, claimed.last)
    release(transaction, LEASE, claimed.until_ms)
    return len(rows)


def statement_of(source: Source, one: FactProposal) -> Statement:
    return Statement(source.full, one.subject, one.slot, one.value, one.is_single)


def _last_extracted(transaction: Transaction) -> int:
    """The id of the last message whose facts are extracted."""
    return next((int(row[0]) for row in transaction.read("SELECT next FROM task WHERE name = ?", (EXTRACTION,))), 0)


def _is_mine(transaction: Transaction, claimed: Claim) -> bool:
    held = transaction.read("SELECT stop FROM task WHERE name = ?", (LEASE,))
    return held == [(claimed.until_ms,)] and _last_extracted(transaction) == claimed.after


def _fact_rows(
    transaction: Transaction,
    source: Source,
    proposals: Sequence[FactProposal],
    version: int,
    key: bytes,
    pinned: set[str],
) -> list[Row]:
    rows: dict[str, Row] = {}
    for one in proposals:
        forbidding = marks(key, source.public, source.user, source.scope, statement_of(source, one))
        if transaction.read(
            "SELECT 1 FROM fact_forgotten WHERE mark IN (SELECT value FROM numbers(?)) LIMIT 1", (ids(forbidding),)
        ):
            continue
        id = fact_id(key, source.occurrence, one.subject, one.slot, one.value)
        rows[id] = (
            *(id, one.start, one.stop, version, one.subject, one.slot, one.value, one.category.value),
            *(one.is_single, one.confidence, id in pinned),
            *(place_print(key, one.subject, one.slot, one.value, one.is_single), source.occurrence),
        )
    return list(rows.values())
