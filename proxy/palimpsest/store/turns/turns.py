"""
Turns as rows: requests and the answers to them, in one transaction, with the passages that find both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import orjson

from palimpsest.domain import Cost, Heard, Record
from palimpsest.store.engine import Ask, Transaction
from palimpsest.store.families.passages import write_passages
from palimpsest.store.turns.answers import write_answers
from palimpsest.store.turns.requests import write_requests

TENANTS = """
SELECT DISTINCT tenant.name FROM texts(?) AS asked JOIN turn ON turn.key = asked.value
JOIN conversation ON conversation.id = turn.conversation JOIN tenant ON tenant.id = conversation.tenant
"""


def tenants_of(ask: Ask, requests: Sequence[Record], answers: Sequence[Heard]) -> set[str]:
    """Names of the tenants whose turns these are, as far as they are known."""
    keys = orjson.dumps([heard.answer.turn_id for heard in answers]).decode()
    return {record.turn.tenant for record in requests} | {name for (name,) in ask(TENANTS, (keys,))}


def write_turns(transaction: Transaction, requests: Sequence[Record], answers: Sequence[Heard]) -> Mapping[str, Cost]:
    """
    Write requests and what was heard of answers: journal, heads, links, blocks, memories and full-text rows.

    What is already written is not written again; a refused turn loses its content.

    Returns:
        As `write_answers`.
    """
    findable = write_requests(transaction, requests)
    if answers:
        return write_answers(transaction, answers, findable)
    write_passages(transaction, findable)
    return {}
