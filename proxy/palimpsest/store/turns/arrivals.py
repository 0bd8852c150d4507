"""
Imported turns as rows: written as the proxy writes its own, once each, in the order in which they were said.

What a turn keeps of earlier ones is named by turn and position (`domain/portable_turn.py`); here it becomes
occurrences again. What was erased does not come back: each message is compared with the tombstones, answers too.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import orjson

from palimpsest.core.archive.tombstones import SentMessage, resends
from palimpsest.domain import Answer, AnswerRecord, Block, Entry, HeadFlag, ParentListing, Record, frozen
from palimpsest.domain.portable_turn import Place, PortableTurn
from palimpsest.store.engine import Ask, Row, Transaction, ids
from palimpsest.store.turns.answers import write_answers
from palimpsest.store.turns.diffs import message_list
from palimpsest.store.turns.tombstones import has_erasures, tombstones, without_text
from palimpsest.store.turns.turns import write_turns

KEPT_PARENTS = 1_000  # turns whose listing is remembered: conversations come one behind the other, or a few mixed

KNOWN = """
SELECT turn.key, tenant.name, turn.ending = 'open' FROM texts(?) AS asked JOIN turn ON turn.key = asked.value
JOIN conversation ON conversation.id = turn.conversation JOIN tenant ON tenant.id = conversation.tenant
"""
HEAD_OF = """
SELECT turn.id, coalesce(CAST(field(head.state, 'compactions') AS BIGINT), 0)
FROM turn LEFT JOIN head ON head.turn = turn.id WHERE turn.key = ?
"""
PRINTS = """
SELECT occurrence.id, fingerprint, opening, flags, occurrence.role IN ('system', 'developer')
FROM numbers(?) AS asked INNER JOIN occurrence ON occurrence.id = asked.value
"""


@frozen
class Arrival:
    """A turn that is imported, ready but for what it keeps of earlier ones; its answer, unless it is under way."""

    source: PortableTurn
    record: Record
    heard: AnswerRecord | None


@dataclass(slots=True)
class ImportedCounts:
    """What an import has written. A turn of which every message was erased before is none."""

    turns: int = 0
    messages: int = 0
    erased: int = 0  # messages that were erased before and came without their text

    def add(self, other: ImportedCounts) -> None:
        self.turns += other.turns
        self.messages += other.messages
        self.erased += other.erased


@frozen
class _TurnState:
    """How the conversation stood after a turn."""

    number: int
    listing: tuple[int, ...]
    compactions: int


def stored_turns(ask: Ask, keys: Sequence[str]) -> dict[str, tuple[str, bool]]:
    """Of these turns those that are stored: the name of their tenant, and whether they still wait for their answer."""
    rows = ask(KNOWN, (orjson.dumps(list(keys)).decode(),))
    return {key: (tenant, bool(is_open)) for key, tenant, is_open in rows}


@dataclass(slots=True)
class Arrivals:
    """The writer of one import. What it remembers of a transaction that failed is dropped with `start_over`."""

    _states: OrderedDict[str, _TurnState] = field(default_factory=OrderedDict)

    def start_over(self) -> None:
        """Drop what was remembered of a transaction that failed."""
        self._states.clear()

    def write(self, transaction: Transaction, arrivals: Sequence[Arrival]) -> ImportedCounts:
        """Write turns that are not stored yet, parents in front of their children, and answers that are missing."""
        written, was_erased = ImportedCounts(), has_erasures(transaction.read)
        stored = stored_turns(transaction.read, [arrival.source.id for arrival in arrivals])
        for arrival in arrivals:
            if arrival.source.id not in stored:
                written.add(self._write(transaction, arrival, was_erased))
            elif stored[arrival.source.id][1] and arrival.heard is not None:
                write_answers(transaction, [arrival.heard])
                self._states.pop(arrival.source.id, None)
        return written

    def _write(self, transaction: Transaction, arrival: Arrival, was_erased: bool) -> ImportedCounts:
        source, read = arrival.source, transaction.read
        parent = self._state_after(read, source.parent)
        kept = self._kept_occurrences(read, source, parent)
        carried = {occurrence for _, occurrence in kept}
        whole = _parent_listing(source, parent, kept)
        turn = replace(
            arrival.record.turn,
            parent_turn=parent.number if parent else None,
            kept=() if whole else tuple(kept),
            whole=whole,
            lost=tuple(o for o in parent.listing if o not in carried) if parent and source.event.is_compaction else (),
            compactions=(parent.compactions if parent else 0) + source.event.is_compaction,
            block=_block(read, source),
        )
        record, heard = replace(arrival.record, turn=turn), arrival.heard
        if was_erased:
            record, heard = _without_erased(read, record, heard)
        write_turns(transaction, [record], [] if heard is None else [heard])
        rows = read(
            "SELECT id, position, flags FROM occurrence WHERE turn = (SELECT id FROM turn WHERE key = ?)"
            " ORDER BY position",
            (source.id,),
        )
        self._remember(read, source.id, rows, kept, turn.compactions, source)
        came_erased = sum(message.is_erased for message in (*source.messages, *filter(None, [source.answer])))
        gone = sum(bool(flags & HeadFlag.ERASED) for *_, flags in rows) - came_erased
        return ImportedCounts(int(not 0 < gone == len(rows)), len(rows) - gone, gone)

    def _state_after(self, read: Ask, key: str) -> _TurnState | None:
        if not key:
            return None
        if key not in self._states:
            for number, compactions in read(HEAD_OF, (key,)):
                self._keep(key, _TurnState(number, message_list(read, number).listing, compactions))
        if key in self._states:
            self._states.move_to_end(key)
        return self._states.get(key)

    def _kept_occurrences(self, read: Ask, source: PortableTurn, parent: _TurnState | None) -> list[tuple[int, int]]:
        kept: dict[int, int] = {}
        listing = parent.listing if parent else ()
        for position, index, count in source.kept:
            kept |= zip(range(position, position + count), listing[index : index + count], strict=False)
        found = _occurrences_at(read, [place for _, place in source.kept_elsewhere])
        kept |= {position: found[place] for position, place in source.kept_elsewhere if place in found}
        mine = {message.position for message in source.messages}
        return sorted((position, occurrence) for position, occurrence in kept.items() if position not in mine)

    def _remember(
        self,
        read: Ask,
        key: str,
        rows: Sequence[Row],
        kept: Sequence[tuple[int, int]],
        compactions: int,
        source: PortableTurn,
    ) -> None:
        outside = {message.position for message in source.messages if message.raw["role"] in ("system", "developer")}
        places = {position: id for id, position, _ in rows if position not in outside} | dict(kept)
        for (number,) in read("SELECT id FROM turn WHERE key = ?", (key,)):
            self._keep(key, _TurnState(number, tuple(places[position] for position in sorted(places)), compactions))

    def _keep(self, key: str, state: _TurnState) -> None:
        self._states[key] = state
        if len(self._states) > KEPT_PARENTS:
            self._states.popitem(last=False)


def _parent_listing(
    source: PortableTurn, parent: _TurnState | None, kept: Sequence[tuple[int, int]]
) -> ParentListing | None:
    """The parent's whole listing, if the turn keeps just that, as most turns do; else None."""
    is_whole = parent is not None and len(source.kept) == 1 and len(kept) == len(parent.listing)
    if parent is None or not is_whole or not kept or source.kept_elsewhere:
        return None
    return ParentListing(source.kept[0][0], parent.listing)


def _occurrences_at(read: Ask, places: Sequence[Place]) -> dict[Place, int]:
    """Occurrences by the turn that brought them and their position there."""
    if not places:
        return {}
    rows = read(
        "WITH asked AS MATERIALIZED ("
        " SELECT item(value, 0) AS turn, CAST(item(value, 1) AS BIGINT) AS position FROM arrays(?) AS one)"
        " SELECT turn.key, occurrence.position, occurrence.id FROM asked JOIN turn ON turn.key = asked.turn"
        " JOIN occurrence ON occurrence.turn = turn.id AND occurrence.position = asked.position",
        (orjson.dumps([list(place) for place in places]).decode(),),
    )
    return {(key, position): id for key, position, id in rows}


def _block(read: Ask, source: PortableTurn) -> Block | None:
    if source.block is None:
        return None
    said = source.block
    found = _occurrences_at(read, said.quotes)
    return Block(
        said.text, said.kind, tuple(found[place] for place in said.quotes if place in found), said.tokens, said.role
    )


def _without_erased(read: Ask, record: Record, heard: AnswerRecord | None) -> tuple[Record, AnswerRecord | None]:
    """
    An imported turn and its answer, without texts that were erased before.

    The proxy compares requests only, as no answer can be a resend; here both are from a file. All of it was said
    before the file was made, so the answer counts as history, as does what stands in front of it.
    """
    answer = heard.entry if heard else None
    entries = [*record.entries, *([answer] if answer else [])]
    stones = tombstones(read, (entry.new.fingerprint for entry in entries))
    if not stones:
        return record, heard
    kept = {at: occurrence for at, occurrence in record.turn.carried}
    rows = {row[0]: row[1:] for row in read(PRINTS, (ids(kept.values()),))}
    places: list[tuple[int, SentMessage]] = []
    for position, occurrence in kept.items():
        if occurrence in rows:
            full, opening, flags, is_instruction = rows[occurrence]
            is_assistant, is_erased = bool(flags & HeadFlag.ASSISTANT), bool(flags & HeadFlag.ERASED)
            places.append((position, SentMessage(full, opening, bool(is_instruction), is_assistant, False, is_erased)))
    behind = 1 + max((*kept, *(entry.new.position for entry in record.entries)), default=-1)
    places += [(entry.new.position, _sent_message(entry)) for entry in record.entries]
    places += [(behind, _sent_message(answer))] if answer else []
    places.sort(key=lambda place: place[0])
    conversation = record.scopes[0] if record.scopes else 0
    found = resends([sent for _, sent in places], stones, conversation, record.turn.created_at)
    gone = {places[at][0] for at in found}
    record = replace(record, entries=tuple(without_text(e) if e.new.position in gone else e for e in record.entries))
    if heard is not None and answer is not None and behind in gone:
        heard = without_words(heard)
    return record, heard


def without_words(heard: AnswerRecord) -> AnswerRecord:
    """An answer of which only the fingerprints are kept."""
    said = heard.answer
    bare = Answer(
        said.turn_id, said.ending, said.message, said.fingerprint, said.flags, (), said.prompt_tokens, said.created_at
    )
    return AnswerRecord(bare, without_text(heard.entry) if heard.entry else None, heard.tenant)


def _sent_message(entry: Entry) -> SentMessage:
    new = entry.new
    is_erased = bool(new.flags & HeadFlag.ERASED)
    return SentMessage(
        new.fingerprint.full,
        new.fingerprint.opening,
        new.message.is_instruction,
        new.message.role == "assistant",
        not is_erased,
        is_erased,
    )
