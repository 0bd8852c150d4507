"""
Terms as rows: how many passages of a tenant hold each one. Which ones do says `engine/full_text.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import orjson

from palimpsest.store.engine import Ask, Row


def passages_holding(ask: Ask, tenant: int, terms: Sequence[str]) -> Mapping[str, int]:
    """By term, how many passages of the tenant hold it; terms that none holds are left out."""
    rows: list[Row] = ask(
        "SELECT term, memories FROM term WHERE tenant = ? AND term IN (SELECT value FROM texts(?))",
        (tenant, orjson.dumps(terms).decode()),
    )
    return dict(rows)
