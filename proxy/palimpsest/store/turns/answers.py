"""
Answers as rows, and what becomes of requests that were refused.

One that has no answer is kept where its tenant had one before: it may hold what the client drops next, as it is too
long. Of a tenant whose credential nobody has vouched for yet, nothing is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

import orjson

from palimpsest.core.block.pressure import CHARS_PER_TOKEN
from palimpsest.domain import AnswerRecord, Cost, Ending, Entry, NewCut, ResentTurn
from palimpsest.store.engine import Statement, Transaction
from palimpsest.store.families.passages import write_passages
from palimpsest.store.turns.branch_heads import to_listing
from palimpsest.store.turns.branch_writing import remove_unused_listings
from palimpsest.store.turns.costs import write_costs
from palimpsest.store.turns.diffs import decode_kept, encode_kept, message_list
from palimpsest.store.turns.messages import NewOccurrence, forget_occurrences, write_occurrences
from palimpsest.store.turns.reminders import wait_again
from palimpsest.store.turns.requests import OpenTurn, PendingRows, links_as_rows
from palimpsest.store.turns.tombstones import ERASED_TURN, without_passages, without_query, without_text
from palimpsest.wire.values import dumps

# Where the other request has the same link, this one's goes with its turn.
HAND_OVER = """
UPDATE link SET turn = ?1 WHERE turn = ?2 AND /*+ NO_INDEX */ link.tenant = ?3 AND NOT EXISTS (
    SELECT 1 FROM link AS other WHERE other.tenant = link.tenant AND other.fingerprint = link.fingerprint
        AND other.conversation = link.conversation AND other.kind = link.kind AND other.turn = ?1)
"""
BROUGHT = "SELECT id FROM occurrence WHERE turn = ? AND tenant = ?"

NOTHING = PendingRows()


def write_answers(
    transaction: Transaction, answers: Sequence[AnswerRecord], unwritten: PendingRows = NOTHING
) -> Mapping[str, Cost]:
    """
    Write the answers of turns that are open; those of others were written before, or their request never was.

    Args:
        unwritten: of requests that were written in the same transaction, to be written with what answers bring.

    Returns:
        What the requests cost, by their turns' ids.
    """
    opened = {heard.answer.turn_id: turn for heard in answers if (turn := unwritten.opened.get(heard.answer.turn_id))}
    if earlier := [heard.answer.turn_id for heard in answers if heard.answer.turn_id not in opened]:
        opened |= _opened_earlier(transaction, earlier)
    heard_of = {heard.answer.turn_id: heard for heard in answers if heard.answer.turn_id in opened}
    bare = [(opened[key], heard.answer.bare) for key, heard in heard_of.items() if heard.answer.bare]
    refused = [
        opened[key]
        for key, heard in heard_of.items()
        if heard.answer.ending is Ending.REFUSED
        or (heard.answer.ending is Ending.UNANSWERED and not _is_known(transaction, opened[key].tenant))
    ]
    if refused or any(sent.cut != NewCut() for _, sent in bare):
        unwritten.write(transaction)  # so that it can be taken back, and a cut names what it leaves out
        unwritten = NOTHING
    _write_bare(transaction, bare)
    taken_back = {turn.number for turn in refused}
    ended = [(opened[key], heard) for key, heard in heard_of.items() if opened[key].number not in taken_back]
    told = [(turn, heard, _kept_entry(turn, heard.entry)) for turn, heard in ended if heard.entry]
    occurrences = [
        NewOccurrence(
            *(id, turn.tenant, turn.conversation, turn.number, turn.messages, entry, heard.answer.created_at),
            retirement=turn.retirement,
        )
        for id, (turn, heard, entry) in zip(transaction.new_ids("occurrence", len(told)), told, strict=True)
    ]
    write_passages(transaction, write_occurrences(transaction, [*unwritten.occurrences, *occurrences]))
    listed = {
        s.turn: to_listing([(new.fingerprint.full, new.fingerprint.opening, s.occurrence, new.flags)])
        for s in occurrences
        for new in (s.entry.new,)
    }
    links = (
        (turn.tenant, fingerprint, kind, turn.conversation, turn.number)
        for turn, heard in ended
        for kind, fingerprint in heard.answer.links
    )
    statements: list[Statement] = [
        (
            "UPDATE head SET listing = joined(listing, ?),"
            " state = with_field(state, 'tokens', coalesce(?, CAST(field(state, 'tokens') AS BIGINT)) + ?)"
            " WHERE turn = ? AND tenant = ?",
            [
                (
                    listed.get(turn.number, b""),
                    heard.answer.prompt_tokens,
                    ceil(len(heard.entry.text) / CHARS_PER_TOKEN) if heard.entry else 0,
                    turn.number,
                    turn.tenant,
                )
                for turn, heard in ended
            ],
        ),
        (
            "UPDATE turn SET ending = ?, prompt_tokens = ? WHERE id = ? AND tenant = ?",
            [(heard.answer.ending, heard.answer.prompt_tokens, turn.number, turn.tenant) for turn, heard in ended],
        ),
        (
            "DELETE FROM head WHERE turn = (SELECT replaces FROM head WHERE turn = ?1 AND tenant = ?2) AND tenant = ?2",
            [(turn.number, turn.tenant) for turn, _ in ended],
        ),
        links_as_rows([*unwritten.links, *links]),
    ]
    if len(ended) == 1:
        transaction.write_together(statements)
    else:  # one may replace the head of another
        for sql, rows in statements:
            transaction.write(sql, rows)
    remove_unused_listings(transaction, {(turn.tenant, turn.conversation) for turn, _ in ended if turn.has_listings})
    for turn in refused:
        _take_back(transaction, turn)
    return write_costs(transaction, {(t.tenant, t.number): told.answer.cost for t, told in ended if told.answer.cost})


def _opened_earlier(transaction: Transaction, keys: Sequence[str]) -> dict[str, OpenTurn]:
    """Those of these turns that are open, as earlier transactions wrote them."""
    rows = transaction.read(
        "SELECT turn.key, turn.id, turn.conversation, conversation.tenant, turn.parent, turn.messages,"
        " turn.explain = ?, coalesce((SELECT max(retirement) FROM occurrence"
        " JOIN retired ON retired.occurrence = occurrence.id"
        " WHERE occurrence.turn = turn.id), 0),"
        " EXISTS (SELECT 1 FROM listing WHERE listing.conversation = turn.conversation)"
        " FROM texts(?) AS asked JOIN turn ON turn.key = asked.value"
        " JOIN conversation ON conversation.id = turn.conversation"
        " WHERE turn.ending = 'open'",
        (ERASED_TURN, orjson.dumps(keys).decode()),
    )
    return {key: OpenTurn(*row) for key, *row in rows}


def _kept_entry(turn: OpenTurn, entry: Entry) -> Entry:
    """What is kept of an answer."""
    if turn.was_erased:
        return without_text(entry)
    return without_passages(entry) if turn.retirement else entry


def _is_known(transaction: Transaction, tenant: int) -> bool:
    """Whether the upstream has answered this tenant, and so accepted its credential."""
    (answered,) = transaction.read(
        "SELECT EXISTS (SELECT 1 FROM conversation JOIN turn ON turn.conversation = conversation.id"
        " WHERE conversation.tenant = ? AND turn.ending NOT IN ('open', ?, ?))",
        (tenant, Ending.REFUSED, Ending.UNANSWERED),
    )
    return bool(answered[0])


def _write_bare(transaction: Transaction, bare: Sequence[tuple[OpenTurn, ResentTurn]]) -> None:
    """
    Record that these requests went without what was added to them: it made them too long.

    The new block was never seen, and is gone. Those of before would be too much again at the next request: from here on
    they are not repeated.
    """
    transaction.write(
        "DELETE FROM block WHERE turn = ? AND tenant = ?", [(turn.number, turn.tenant) for turn, _ in bare]
    )
    wait_again(transaction, [turn.number for turn, _ in bare])
    transaction.write(
        "UPDATE block SET shed = ?1 WHERE tenant = ?2 AND conversation = ?3 AND turn < ?1 AND shed = 0",
        [(turn.number, turn.tenant, turn.conversation) for turn, _ in bare],
    )
    transaction.write(  # what was looked for may have been erased meanwhile
        "UPDATE turn SET explain = CASE WHEN field(explain, 'query') IS NULL THEN ? ELSE ? END"
        " WHERE id = ? AND tenant = ? AND explain <> ?",
        [
            (dumps(without_query(sent.explain, ())), dumps(sent.explain), turn.number, turn.tenant, ERASED_TURN)
            for turn, sent in bare
        ],
    )
    transaction.write(
        "UPDATE head SET state = with_field(state, 'tokens', ?) WHERE turn = ? AND tenant = ?",
        [(sent.tokens, turn.number, turn.tenant) for turn, sent in bare],
    )
    _write_cuts(transaction, [(turn, sent) for turn, sent in bare if sent.cut != NewCut()])


def _write_cuts(transaction: Transaction, bare: Sequence[tuple[OpenTurn, ResentTurn]]) -> None:
    """What stayed behind of requests when they were sent once more."""
    for turn, sent in bare:
        here = turn.number, turn.tenant
        rows = transaction.read("SELECT position, id FROM occurrence WHERE turn = ? AND tenant = ?", here)
        cut = sent.cut.stored(dict(rows))
        for (state,) in transaction.read("SELECT state FROM head WHERE turn = ? AND tenant = ?", here):
            told = orjson.dumps(orjson.loads(state) | {"cut": cut}).decode()
            transaction.write("UPDATE head SET state = ? WHERE turn = ? AND tenant = ?", [(told, *here)])


def _take_back(transaction: Transaction, turn: OpenTurn) -> None:
    """Leave nothing of a request that the upstream refused, but that it was made."""
    wait_again(transaction, [turn.number])
    _hand_over(transaction, turn)
    for table in ("link", "block", "head"):
        sql = f"DELETE FROM {table} WHERE turn = ? AND /*+ NO_INDEX */ {table}.tenant = ?"
        transaction.write(sql, [(turn.number, turn.tenant)])
    remove_unused_listings(transaction, [(turn.tenant, turn.conversation)])
    transaction.write(
        "UPDATE block SET shed = 0 WHERE tenant = ? AND conversation = ? AND shed = ?",
        [(turn.tenant, turn.conversation, turn.number)],
    )
    brought = transaction.read(BROUGHT, (turn.number, turn.tenant))
    forget_occurrences(transaction, turn.tenant, [row[0] for row in brought])
    transaction.write(
        "UPDATE turn SET ending = ?, kept = '{}', explain = '{}' WHERE id = ? AND tenant = ?",
        [(Ending.REFUSED, turn.number, turn.tenant)],
    )
    _drop_if_empty(transaction, turn)


def _hand_over(transaction: Transaction, turn: OpenTurn) -> None:
    """Requests that were built on this one meanwhile keep what they carry of it: it becomes theirs."""
    here = turn.number, turn.tenant
    children = transaction.read("SELECT id, kept FROM turn WHERE parent = ? AND tenant = ? ORDER BY id", here)
    if not children:
        return
    listing = (message_list(transaction.read, turn.number)).listing
    brought = {row[0] for row in transaction.read(BROUGHT, here)}
    for child, encoded in children:
        kept = sorted(decode_kept(encoded, listing))
        mine = [(position, occurrence) for position, occurrence in kept if occurrence in brought]
        brought.difference_update(occurrence for _, occurrence in mine)
        transaction.write(
            "UPDATE occurrence SET turn = ?, position = ? WHERE id = ? AND tenant = ?",
            [(child, at, o, turn.tenant) for at, o in mine],
        )
        transaction.write(
            "UPDATE turn SET parent = ?, kept = ? WHERE id = ? AND tenant = ?",
            [(turn.parent, encode_kept([pair for pair in kept if pair not in mine], ()), child, turn.tenant)],
        )
    transaction.write(HAND_OVER, [(children[0][0], turn.number, turn.tenant)])


def _drop_if_empty(transaction: Transaction, turn: OpenTurn) -> None:
    """A conversation, and then a tenant, that nothing but refused requests made, was never there."""
    (held,) = transaction.read(
        "SELECT EXISTS (SELECT 1 FROM occurrence WHERE conversation = ?1 AND tenant = ?2)"
        " OR EXISTS (SELECT 1 FROM turn WHERE conversation = ?1 AND tenant = ?2 AND ending <> 'refused')",
        (turn.conversation, turn.tenant),
    )
    if held[0]:
        return
    of_it, here = "(SELECT id FROM turn WHERE conversation = ?1 AND tenant = ?2)", (turn.conversation, turn.tenant)
    transaction.write(f"UPDATE turn SET parent = NULL WHERE parent IN {of_it} AND tenant = ?2", [here])
    transaction.write("DELETE FROM turn WHERE conversation = ? AND tenant = ?", [here])
    transaction.write("DELETE FROM conversation WHERE id = ? AND tenant = ?", [here])
    transaction.write(
        "DELETE FROM tenant WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM conversation WHERE tenant = ?1)",
        [(turn.tenant,)],
    )
    transaction.write(
        "DELETE FROM term WHERE tenant = ?1 AND NOT EXISTS (SELECT 1 FROM tenant WHERE id = ?1)", [(turn.tenant,)]
    )
