"""Turns as rows: requests and the answers to them, in one transaction, with the passages that find both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import orjson

from palimpsest.domain import AnswerRecord, Cost, Record
from palimpsest.store.engine import Ask, Transaction
from palimpsest.store.turns.answers import write_answers
from palimpsest.store.turns.requests import write_requests

TENANTS = """
SELECT DISTINCT tenant.name FROM texts(?) AS asked JOIN turn ON turn.key = asked.value
JOIN conversation ON conversation.id = turn.conversation JOIN tenant ON tenant.id = conversation.tenant
"""


def tenants_of(ask: Ask, requests: Sequence[Record], answers: Sequence[AnswerRecord]) -> set[str]:
    """Names of the tenants whose turns these are, as far as they are known."""
    named = {record.turn.tenant for record in requests} | {heard.tenant for heard in answers if heard.tenant}
    nameless = [heard.answer.turn_id for heard in answers if not heard.tenant]
    found = ask(TENANTS, (orjson.dumps(nameless).decode(),)) if nameless else ()
    return named | {name for (name,) in found}


def write_turns(
    transaction: Transaction, requests: Sequence[Record], answers: Sequence[AnswerRecord]
) -> Mapping[str, Cost]:
    """
    Write requests and what was heard of answers: journal, heads, links, blocks, memories and full-text rows.

    What is already written is not written again; a refused turn loses its content.

    Returns:
        As `write_answers`.
    """
    entries = [*(entry for record in requests for entry in record.entries), *(h.entry for h in answers if h.entry)]
    passages = sum(len(entry.passages) for entry in entries)
    transaction.reserve({"turn": len(requests), "occurrence": len(entries), "memory": passages})
    unwritten = write_requests(transaction, requests)
    if answers:
        return write_answers(transaction, answers, unwritten)
    unwritten.write(transaction)
    return {}
