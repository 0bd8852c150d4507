"""
Keys of rows: lists of them for statements, and the last that were given.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import orjson

from palimpsest.store.engine import Transaction


def last_ids(transaction: Transaction) -> dict[str, int]:
    """By table, the last id ever given; valid until the transaction ends, because nobody else can write."""
    return Counter({name: last for name, last in transaction.read("SELECT name, seq FROM last_id")})


def ids(values: Iterable[int]) -> str:
    """Numbers as the JSON list that `numbers` takes."""
    return orjson.dumps(list(values)).decode()
