"""
Erased messages as rows: how they stand in the journal, and what keeps them from coming back.

An erased message of a conversation that lives on keeps its occurrence, so that the tree of requests and the heads stay
whole; its content is a row without text, one for each tenant and role.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import orjson

from palimpsest.core.archive.tombstones import Tombstone
from palimpsest.domain import Entry, Fingerprint, HeadFlag, Json, Record
from palimpsest.store.engine import Ask, ids
from palimpsest.wire.values import dumps

ERASED_DIGEST = b"erased:"  # and the role; other digests are 16 bytes of a hash
ERASED_TURN = '{"erased":true}'  # `turn.explain` of an open turn whose answer is not to be kept
ERASED_REASON = "erased"  # why a gate opened may name words

STONES = """
SELECT fingerprint, opening, after, conversation, at, retirement
FROM erased WHERE fingerprint IN (SELECT value FROM numbers(?1))
UNION
SELECT fingerprint, opening, after, conversation, at, retirement
FROM erased WHERE opening IN (SELECT value FROM numbers(?2))
"""
ERASE_SCOPE = """
INSERT INTO erased_scope(fingerprint, at) VALUES (?, ?)
ON CONFLICT (fingerprint) DO UPDATE SET at = greatest(erased_scope.at, excluded.at)
"""
COVERED = "SELECT EXISTS (SELECT 1 FROM erased_scope WHERE fingerprint IN (SELECT value FROM numbers(?)) AND at >= ?)"
RETIRED = "SELECT max(retirement) FROM retired_scope WHERE fingerprint IN (SELECT value FROM numbers(?)) AND at >= ?"


def has_erasures(ask: Ask) -> bool:
    """Whether anything was ever erased or retired here."""
    return bool(ask("SELECT EXISTS (SELECT 1 FROM erasure) OR EXISTS (SELECT 1 FROM erased)")[0][0])


def holds_erased(ask: Ask, tenant: int, conversation: int) -> bool:
    """Whether something of a conversation was erased on request, and not for its age."""
    on_request = f"flags & {HeadFlag.ERASED | HeadFlag.SWEPT} = {HeadFlag.ERASED}"
    sql = f"SELECT EXISTS (SELECT 1 FROM occurrence WHERE tenant = ? AND conversation = ? AND {on_request})"
    return bool(ask(sql, (tenant, conversation))[0][0])


def was_erased_whole(ask: Ask, record: Record) -> bool:
    """Whether the conversation of a record was once erased as a whole."""
    sql = "SELECT EXISTS (SELECT 1 FROM erased_scope WHERE fingerprint = ?)"
    return bool(record.scopes and ask(sql, record.scopes[:1])[0][0])


def tombstones(ask: Ask, prints: Iterable[Fingerprint]) -> list[Tombstone]:
    """Those that share a fingerprint with one of these."""
    listed = list(prints)
    return [Tombstone(*row) for row in ask(STONES, (ids(p.full for p in listed), ids(p.opening for p in listed)))]


def without_text(entry: Entry) -> Entry:
    """An entry of which only the fingerprints are kept."""
    role = entry.new.message.role
    return replace(
        entry,
        new=replace(entry.new, flags=entry.new.flags | HeadFlag.ERASED),
        digest=ERASED_DIGEST + role.encode(errors="surrogatepass"),
        text="",
        rest=dumps({"role": role}),
        passages=(),
    )


def without_passages(entry: Entry) -> Entry:
    """An entry that is stored, and not found: a retired one."""
    return replace(entry, new=replace(entry.new, flags=entry.new.flags | HeadFlag.RETIRED), passages=())


def retirement_of(ask: Ask, record: Record) -> int:
    """The retirement of all that a record belongs to, if it came before that; 0: there is none."""
    return ask(RETIRED, (ids(record.scopes), record.turn.created_at))[0][0] or 0 if record.scopes else 0


def retirement_of_messages(ask: Ask, tenant: int, occurrences: Iterable[int]) -> int:
    """The newest retirement that one of these messages belongs to; 0: none does."""
    sql = "SELECT max(retirement) FROM retired WHERE tenant = ? AND occurrence IN (SELECT value FROM numbers(?))"
    return ask(sql, (tenant, ids(occurrences)))[0][0] or 0


def uncovered(ask: Ask, record: Record) -> Record:
    """The record as it may be written: without any text where all that it belongs to was erased after it came."""
    turn = record.turn
    if not record.scopes or not ask(COVERED, (ids(record.scopes), turn.created_at))[0][0]:
        return record
    bare = replace(turn, user="", scope="", model="", block=None, explain=orjson.loads(ERASED_TURN), new=())
    return replace(record, turn=bare, entries=tuple(map(without_text, record.entries)))


def query_words(explain: Json) -> tuple[str, str]:
    """What `without_query` takes from a decision: what was looked for, and why the gate opened."""
    return explain.get("query", {}).get("text", ""), explain.get("gate", {}).get("reason", "")


def without_query(explain: Json, texts: Sequence[str]) -> Json:
    """A decision without the words that were looked for, unless one of these texts holds them all."""
    query, _ = query_words(explain)
    if not query or any(query in text for text in texts):
        return explain
    told = {name: value for name, value in explain.items() if name != "query"}
    return told | {"gate": told["gate"] | {"reason": ERASED_REASON}} if "gate" in told else told
