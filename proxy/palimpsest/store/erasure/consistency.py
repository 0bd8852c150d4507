"""
The consistency of a database: the journal in itself, and everything that is derived from it.

It is read in one snapshot, so that what a running proxy writes meanwhile is not taken for a fault. What passages an
earlier version made of a text is not judged: only whether they are there, and whether all that leads to them agrees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path

import orjson

from palimpsest.core.archive.chunking import SCOPE_MARK, scope_terms
from palimpsest.core.archive.records import passages_of
from palimpsest.domain import HeadFlag, Role, Shape, frozen
from palimpsest.store.engine import Ask, Transaction, full_text, ids
from palimpsest.store.engine.sqlite.snapshot import damages_of, orphans_of, snapshot
from palimpsest.store.knowledge.fact_consistency import wrong_facts
from palimpsest.store.search.derived import REBUILD
from palimpsest.store.turns.branch_heads import LISTED, WIDTH, int64_of, to_listing
from palimpsest.store.turns.branch_writing import remove_unused_listings
from palimpsest.store.turns.diffs import decode_kept, message_list

ROWS_AT_A_TIME = 5_000
KEPT_LISTINGS = 2_000  # of turns that others may go on from
NO_ORPHANS = (0, "")
NOT_FOUND = HeadFlag.ERASED | HeadFlag.RETIRED

UNUSED = "SELECT count(*) FROM content WHERE NOT EXISTS (SELECT 1 FROM occurrence WHERE content = content.id)"
FORGET_UNUSED = "DELETE FROM content WHERE NOT EXISTS (SELECT 1 FROM occurrence WHERE content = content.id)"
ERASED_WITH_TEXT = f"""
SELECT count(*) FROM occurrence JOIN content ON content.id = occurrence.content
WHERE flags & {HeadFlag.ERASED} <> 0 AND content.text <> ''
"""
FOUND_BUT_GONE = f"""
SELECT count(*) FROM memory JOIN occurrence ON occurrence.id = memory.occurrence WHERE flags & {NOT_FOUND} <> 0
"""
MISPLACED = """
SELECT count(*) FROM memory LEFT JOIN occurrence ON occurrence.id = memory.occurrence
LEFT JOIN conversation ON conversation.id = memory.conversation LEFT JOIN content ON content.id = occurrence.content
WHERE occurrence.conversation IS DISTINCT FROM memory.conversation
    OR conversation.tenant IS DISTINCT FROM memory.tenant
    OR content.tenant IS DISTINCT FROM memory.tenant OR start < 0 OR stop <= start OR stop > length(content.text)
"""
WITHOUT_VECTOR = """
SELECT count(*) FROM memory JOIN occurrence ON occurrence.id = memory.occurrence JOIN turn ON turn.id = occurrence.turn
WHERE memory.id NOT IN (SELECT memory FROM vector) AND memory.id NOT IN (SELECT memory FROM unindexed)
    AND turn.key NOT IN (SELECT turn FROM quarantine WHERE part = 'passage')
"""
WITHOUT_PASSAGES = f"""
SELECT occurrence.id, turn.role, occurrence.role, flags, text, rest
FROM occurrence JOIN turn ON turn.id = occurrence.turn JOIN content ON content.id = occurrence.content
WHERE occurrence.id > ? AND flags & {NOT_FOUND} = 0 AND text <> ''
    AND NOT EXISTS (SELECT 1 FROM memory WHERE memory.occurrence = occurrence.id)
    AND NOT (occurrence.position >= turn.messages AND EXISTS (SELECT 1 FROM block WHERE block.turn = turn.id))
    AND turn.key NOT IN (SELECT turn FROM quarantine WHERE part = 'message')
ORDER BY occurrence.id LIMIT {ROWS_AT_A_TIME}
"""
TERMS = "SELECT tenant, term, memories FROM term"
TURNS = f"""
SELECT id, parent, kept, messages FROM turn WHERE id > ? AND ending <> 'refused' ORDER BY id LIMIT {ROWS_AT_A_TIME}
"""
BROUGHT = """
SELECT turn, position, id, role IN ('system', 'developer') FROM occurrence WHERE turn BETWEEN ? AND ?
ORDER BY turn, position
"""
STANDING = "SELECT count(*) FROM numbers(?) AS asked JOIN occurrence ON occurrence.id = asked.value"
HEADS = """
SELECT head.turn, listing.rows, head.listing FROM head LEFT JOIN listing ON listing.turn = head.base ORDER BY head.turn
"""
HEADLESS = """
SELECT max(turn.id) FROM turn WHERE turn.role <> 'side' AND turn.ending <> 'refused'
    AND NOT EXISTS (SELECT 1 FROM head WHERE head.conversation = turn.conversation)
GROUP BY turn.conversation
"""
HEAD = """
SELECT turn.tenant, turn.conversation, turn.role, turn.event, turn.model, turn.messages, turn.prompt_tokens,
    head.state, head.lost
FROM turn LEFT JOIN head ON head.turn = turn.id WHERE turn.id = ?
"""


class Repair(StrEnum):
    """What puts a finding right."""

    NONE = "restore a backup"
    REBUILD = "passages, full text, term counts and vectors are rebuilt from the journal"
    HEADS = "the heads of conversations are rebuilt from the journal"
    UNUSED = "they are removed"
    FACTS = "facts without a source and blocks with them are removed, and facts are extracted from messages again"


ERASING = frozenset({Repair.UNUSED, Repair.FACTS})
"""Repairs that remove what the journal may not have."""


@frozen
class Finding:
    """Something that is wrong: how often, in words, and what puts it right."""

    count: int
    words: str
    repair: Repair


@frozen
class Examination:
    """What was examined, and what is wrong with it."""

    conversations: int
    turns: int
    messages: int
    findings: tuple[Finding, ...]
    note: str = ""  # what was not examined, and why


def examination(path: Path, report: Callable[[str], None] = lambda doing: None) -> Examination:
    """
    Examine a database that others may be writing to. `report`: told what is being examined. Raises `MemoryFault`: it
    cannot be read at all, or is none of this version.
    """
    doing = f"examining {path}"
    with snapshot(path, doing) as ask:
        report("the file")
        if damages := damages_of(ask, doing):
            return Examination(0, 0, 0, (Finding(len(damages), f"the file is damaged: {damages[0]}", Repair.NONE),))
        return _examined(ask, report, orphans_of(ask))


def examination_of_server(
    url: str, password_file: Path | None, report: Callable[[str], None] = lambda doing: None
) -> Examination:
    """
    Examine what a server's database says; its files are the server's own affair, which also refuses rows that refer to
    missing ones. Arguments and errors as of `examination`.
    """
    from palimpsest.store.engine.postgres.snapshot import snapshot as server_snapshot  # its driver is an extra

    with server_snapshot(url, password_file, "examining the database") as ask:
        return _examined(ask, report, NO_ORPHANS)


def _examined(ask: Ask, report: Callable[[str], None], orphans: tuple[int, str]) -> Examination:
    findings: list[Finding] = []

    def find(count: int, words: str, repair: Repair) -> None:
        if count:
            findings.append(Finding(count, words, repair))

    report("the journal")
    foreign, table = orphans
    find(foreign, f"rows of the table {table} and perhaps others refer to missing rows", Repair.NONE)
    find(sum(1 for _ in _broken_turns(ask)), "turns refer to missing messages", Repair.NONE)
    find(ask(ERASED_WITH_TEXT)[0][0], "erased messages still have their text", Repair.NONE)
    find(ask(UNUSED)[0][0], "texts belong to no message", Repair.UNUSED)
    report("the heads of conversations")
    wrong, missing = _wrong_heads(ask)
    find(len(wrong), "branches differ from the journal", Repair.HEADS)
    find(len(missing), "conversations have no newest state, and would not be recognised", Repair.HEADS)
    report("facts")
    for count, words in wrong_facts(ask):
        find(count, words, Repair.FACTS)
    note = ""
    if ask("SELECT 1 FROM task WHERE name = ?", (REBUILD,)):
        note = "data derived from the journal is being rebuilt, and was not examined"
    else:
        report("passages")
        find(ask(MISPLACED)[0][0], "passages lie outside of their messages, or belong to another", Repair.REBUILD)
        find(ask(FOUND_BUT_GONE)[0][0], "passages of erased or retired messages can still be found", Repair.REBUILD)
        find(_count_without_passages(ask), "messages should be searchable but have no passages", Repair.REBUILD)
        missing_passages, rows_alone = full_text.strays(ask)
        find(missing_passages, "passages are missing from the full-text index", Repair.REBUILD)
        find(rows_alone, "rows of the full-text index have no passage", Repair.REBUILD)
        find(ask(WITHOUT_VECTOR)[0][0], "passages have no vector and are not waiting for one", Repair.REBUILD)
        report("terms")
        strays, counts = _terms(ask)
        find(strays, "rows of the full-text index belong to another tenant or conversation", Repair.REBUILD)
        find(counts, "terms are counted wrongly", Repair.REBUILD)
    ((conversations, turns, messages),) = ask(
        "SELECT (SELECT count(*) FROM conversation), (SELECT count(*) FROM turn), (SELECT count(*) FROM occurrence)"
    )
    return Examination(conversations, turns, messages, tuple(findings), note)


def repair_heads(transaction: Transaction) -> None:
    """Rebuild the states of branches that are missing or differ from the journal."""
    wrong, missing = _wrong_heads(transaction.read)
    for turn in (*wrong, *missing):
        ((tenant, conversation, *row),) = transaction.read(HEAD, (turn,))
        role, event, model, messages, tokens, state, lost = row
        listed = transaction.read(LISTED, (ids(message_list(transaction.read, turn).listing),))
        answers = sum(owner == turn and position >= messages for *_, owner, position in listed)
        stored = orjson.loads(state or "{}")
        rebuilt = {"role": role, "event": event, "compactions": 0, "tokens": tokens or 0, "shape": Shape(model=model)}
        rebuilt |= stored | {"request_length": len(listed) - answers}
        head = turn, tenant, conversation, orjson.dumps(rebuilt).decode(), lost or b""
        transaction.write("DELETE FROM head WHERE turn = ?", [(turn,)])
        transaction.write(
            "INSERT INTO head(turn, tenant, conversation, replaces, state, lost, listing) VALUES (?, ?, ?, 0, ?, ?, ?)",
            [(*head, to_listing(one[:4] for one in listed))],
        )
        remove_unused_listings(transaction, [(tenant, conversation)])


def forget_unused(transaction: Transaction) -> None:
    """Remove texts that no message has."""
    transaction.write(FORGET_UNUSED)


def _broken_turns(ask: Ask) -> Iterator[int]:
    """Turns whose diff cannot be applied to their parent, or names messages that are not there."""
    listings: dict[int, tuple[int, ...]] = {}
    last = 0
    while rows := ask(TURNS, (last,)):
        brought: dict[int, list[tuple[int, int, bool]]] = {row[0]: [] for row in rows}
        for turn, *placed in ask(BROUGHT, (rows[0][0], rows[-1][0])):
            if turn in brought:
                brought[turn].append((placed[0], placed[1], bool(placed[2])))
        for turn, parent, encoded, messages in rows:
            listing = listings.get(parent) if parent else ()
            listing = message_list(ask, parent).listing if listing is None else listing
            kept = decode_kept(encoded, listing)
            diff = orjson.loads(encoded)
            wanted = len(diff.get("others", ())) + sum(count for *_, count in diff.get("runs", ()))
            others = [occurrence for _, occurrence in diff.get("others", ())]
            is_there = not others or ask(STANDING, (ids(others),)) == [(len(others),)]
            positions = [at for at, _ in kept] + [at for at, *_ in brought[turn]]
            if len(kept) < wanted or not is_there or len(set(positions)) < len(positions):
                yield turn
            placed = [*kept, *((at, id) for at, id, outside in brought[turn] if at < messages and not outside)]
            answers = [id for at, id, _ in brought[turn] if at >= messages]
            listings[turn] = (*(id for _, id in sorted(placed)), *answers)
            if len(listings) > KEPT_LISTINGS:
                del listings[next(iter(listings))]
        last = rows[-1][0]


def _wrong_heads(ask: Ask) -> tuple[list[int], list[int]]:
    """Turns whose head differs from the journal, and the newest turns of conversations without one."""
    wrong = []
    for turn, begins, listing in ask(HEADS):
        stored = int64_of((begins or b"") + listing)
        rows = ask(LISTED, (ids(message_list(ask, turn).listing),))
        if list(stored) != [number for row in rows for number in row[:WIDTH]]:
            wrong.append(turn)
    return wrong, [row[0] for row in ask(HEADLESS)]


def _count_without_passages(ask: Ask) -> int:
    """The number of messages without passages that should have some, judging by role and text."""
    count = last = 0
    while rows := ask(WITHOUT_PASSAGES, (last,)):
        count += sum(bool(passages_of(Role(request), *said)) for _, request, *said in rows)
        last = rows[-1][0]
    return count


def _terms(ask: Ask) -> tuple[int, int]:
    """Rows of the index whose scope is not that of their passage, and terms whose count is wrong."""
    counted: Counter[tuple[int, str]] = Counter()
    strays = last = 0
    while rows := full_text.indexed_after(ask, last, ROWS_AT_A_TIME):
        for _, tokens, tenant, conversation in rows:
            terms = set(tokens.split(" "))
            scope = {term for term in terms if term.startswith(SCOPE_MARK)}
            strays += scope != set(scope_terms(tenant, conversation))
            counted.update((tenant, term) for term in terms - scope if term)
        last = rows[-1][0]
    wrong = 0
    for tenant, term, memories in ask(TERMS):
        wrong += counted.pop((tenant, term), 0) != memories
    return strays, wrong + len(counted)
