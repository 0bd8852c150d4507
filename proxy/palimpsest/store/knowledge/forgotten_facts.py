"""
Forgotten facts on their way between databases: which messages state one, named by place, and their marks there.

A mark is a keyed hash, and another installation has another key. So an export names the place in the message, and an
import makes the marks anew from the message that it has written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from palimpsest.core.facts.extraction import proposals
from palimpsest.core.facts.marks import marks, marks_left
from palimpsest.domain import FactProposal
from palimpsest.domain.portable_turn import ForgottenFact
from palimpsest.store.engine import Ask, Transaction, ids
from palimpsest.store.families.facts import remove_facts
from palimpsest.store.families.family import Erased
from palimpsest.store.knowledge.added_facts import KeyOf, erase_blocks_with, leave_marks
from palimpsest.store.knowledge.fact_extraction import LAST, SOURCES, Source, statement_of
from palimpsest.store.turns.transcript import Selection

BATCH_MESSAGES = 200  # of which the facts are extracted at a time, some 50 ms of a reader

SELECTED = SOURCES.format(
    "occurrence.id > ?1 AND occurrence.id <= ?2 AND (?3 = '' OR tenant.name = ?3)"
    " AND (?4 = '' OR conversation.public = ?4) AND (?5 = '' OR conversation.user_id = ?5)"
    " AND (?6 = '' OR conversation.scope = ?6)"
)
AT = SOURCES.format("turn.key = ? AND occurrence.position = ?")
STATED = "SELECT id FROM fact WHERE occurrence = ? AND subject = ? AND slot = ? AND (? <> 0 OR lower(value) = lower(?))"


def forgotten(ask: Ask, selection: Selection, after: int, key_of: KeyOf) -> tuple[int, list[ForgottenFact]]:
    """
    The next page of forgotten facts that messages state, for an export.

    Args:
        after: the occurrence that was looked at last; 0: none.

    Returns:
        Where to go on, 0 at the end, and the facts.
    """
    if not ask("SELECT 1 FROM fact_forgotten LIMIT 1"):
        return 0, []
    ((last,),) = ask(LAST, (after, BATCH_MESSAGES))
    if last is None:
        return 0, []
    named = (selection.tenant, selection.conversation, selection.user, selection.scope)
    read = (Source(*row) for row in ask(SELECTED, (after, last, *named)))
    return last, [fact for source in read if source.may_state for fact in _forgotten_in(ask, source, key_of)]


def _forgotten_in(ask: Ask, source: Source, key_of: KeyOf) -> Iterator[ForgottenFact]:
    key = key_of(source.tenant_name)
    for part, one in _parts(source):
        forbidding = marks(key, source.public, source.user, source.scope, statement_of(source, one))
        there = {
            mark
            for (mark,) in ask(
                "SELECT mark FROM fact_forgotten WHERE mark IN (SELECT value FROM numbers(?))", (ids(forbidding),)
            )
        }
        if there:
            _of_slot, _of_value, *of_users = forbidding
            is_shared = not source.user and not there.isdisjoint(of_users)
            place = (source.turn, source.position)
            yield ForgottenFact(source.tenant_name, place, one.start, one.stop, part, is_shared)


def forget_again(transaction: Transaction, facts: Sequence[ForgottenFact], key_of: KeyOf, now: float) -> int:
    """
    Store marks of facts that were forgotten elsewhere, where their messages are stored; how many.

    What was extracted of them meanwhile goes.
    """
    count, gone = 0, 0
    for fact in facts:
        for source in (Source(*row) for row in transaction.read(AT, fact.place)):
            if source.tenant_name != fact.tenant:
                continue
            key = key_of(source.tenant_name)
            for part, one in _parts(source):
                if part != fact.part or one.stop <= fact.start or fact.stop <= one.start:
                    continue
                count += 1
                statement = statement_of(source, one)
                left = marks_left(key, source.public, source.user, source.scope, statement, fact.is_shared)
                leave_marks(transaction, left, now)
                stated = (source.occurrence, one.subject, one.slot, one.is_single, one.value)
                rows = [row[0] for row in transaction.read(STATED, stated)]
                erase_blocks_with(transaction, source.tenant, rows, Erased())
                remove_facts(transaction, rows)
                gone += len(rows)
    if gone:
        transaction.write("INSERT INTO erasure(at) VALUES (?)", [(now,)])  # every worker empties its caches
    return count


def _parts(source: Source) -> Iterator[tuple[int, FactProposal]]:
    """The facts that a message states, each numbered among those of the same characters."""
    at, part = -1, 0
    for one in proposals(source.text, source.role):
        at, part = (at, part + 1) if one.start == at else (one.start, 0)
        yield part, one
