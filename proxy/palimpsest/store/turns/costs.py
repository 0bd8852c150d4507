"""Costs as rows: what each request cost, by conversation and by day."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any

from palimpsest.core.prefix_rebuild import PreviousPrompt, rebuild_of
from palimpsest.domain import Cost, Rebuild, Role, Usage
from palimpsest.store.engine import Ask, Transaction
from palimpsest.wire.values import dumps

INSERT = """
INSERT INTO cost(tenant, turn, conversation, at, own_tokens, added_tokens, repeated_tokens, input_tokens,
    output_tokens, cache_read_tokens, cache_write_tokens)
SELECT tenant, id, conversation, created_at, ?, ?, ?, ?, ?, ?, ? FROM turn WHERE tenant = ? AND id = ?
ON CONFLICT (tenant, turn) DO UPDATE SET own_tokens = excluded.own_tokens, added_tokens = excluded.added_tokens,
    repeated_tokens = excluded.repeated_tokens, input_tokens = excluded.input_tokens,
    output_tokens = excluded.output_tokens, cache_read_tokens = excluded.cache_read_tokens,
    cache_write_tokens = excluded.cache_write_tokens
"""
# INNER JOIN: in this order, each row by its key.
WITH_BEFORE = """
SELECT turn.tenant, turn.id, turn.key, turn.created_at, turn.role, turn.parent IS NULL, before.at, before.added_tokens,
    before.input_tokens, before.output_tokens, before.cache_read_tokens, before.cache_write_tokens
FROM arrays(?) AS asked INNER JOIN turn ON turn.tenant = CAST(item(asked.value, 0) AS BIGINT)
    AND turn.id = CAST(item(asked.value, 1) AS BIGINT)
LEFT JOIN cost AS before ON before.turn = turn.parent
"""
UPDATE = "UPDATE cost SET rebuild = ?, rebuilt_tokens = ? WHERE tenant = ? AND turn = ?"

TOKENS = (
    *("own_tokens", "added_tokens", "repeated_tokens"),
    *("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"),
)
REBUILDS = tuple(cause for cause in Rebuild if cause is not Rebuild.NONE)
SUMS = ", ".join(
    (
        "count(*)",
        "count(cost.input_tokens)",
        "count(cost.cache_read_tokens)",
        "count(*) - count(cost.rebuild)",
        *(f"sum(cost.{name})" for name in TOKENS),
        *(f"count(*) FILTER (WHERE cost.rebuild = '{cause}')" for cause in REBUILDS),
        *(f"coalesce(sum(cost.rebuilt_tokens) FILTER (WHERE cost.rebuild = '{cause}'), 0)" for cause in REBUILDS),
    )
)


class CostGrouping(StrEnum):
    """What costs are added up by."""

    DAY = "day"
    CONVERSATION = "conversation"


KEYS = {
    CostGrouping.DAY: ("utc_day(cost.at)", "max(cost.at)"),
    CostGrouping.CONVERSATION: ("conversation.public", "max(cost.turn)"),
}
GROUPS = {CostGrouping.CONVERSATION: "conversation.id, conversation.public, tenant.id"}


def write_costs(transaction: Transaction, costs: Mapping[tuple[int, int], Cost]) -> dict[str, Cost]:
    """
    Write what requests cost, and why their provider read anew what it did.

    Args:
        costs: by tenant and turn.

    Returns:
        The same with that, by the turns' ids.
    """
    if not costs:
        return {}
    rows = []
    for turn, cost in costs.items():
        added, usage = cost.added, cost.usage
        ours = (added.own_tokens, added.tokens, added.repeated_tokens)
        theirs = (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens)
        rows.append((*ours, *theirs, *turn))
    transaction.write(INSERT, rows)
    told = {}
    for tenant, turn, key, at, role, is_first, before_at, before_added, *counted in transaction.read(
        WITH_BEFORE, (dumps([*costs]),)
    ):
        before = None if before_at is None else PreviousPrompt(before_at, before_added, Usage(*counted))
        found = rebuild_of(cost := costs[tenant, turn], at, before, is_first=bool(is_first) or role == Role.SIDE)
        told[key] = (tenant, turn, replace(cost, rebuild=found[0], rebuilt_tokens=found[1]) if found else cost)
    transaction.write(UPDATE, [(cost.rebuild, cost.rebuilt_tokens, *turn) for *turn, cost in told.values()])
    return {key: cost for key, (*_, cost) in told.items()}


def costs(
    ask: Ask,
    by: CostGrouping,
    limit: int,
    *,
    tenant: str = "",
    conversation: str = "",
    since: float | None = None,
    until: float | None = None,
) -> list[dict[str, Any]]:
    """
    What requests cost, the newest days or conversations first.

    Args:
        limit: days or conversations, at most.
        tenant: "": all of them.
        conversation: public id; "": all.

    Returns:
        `day` (UTC, as 2026-11-22), or `conversation` and its `tenant`; `requests`, of which `counted` are those whose
        provider counted the prompt, `cache_told` those where it said what came from its cache, and `unknown` those of
        which it cannot be told why what was read anew; the sums named in `TOKENS`, None where nobody counted any;
        `rebuilds` and `rebuilt_tokens` by their cause.
    """
    key, newest = KEYS[by]
    is_of_conversations = by is CostGrouping.CONVERSATION
    where, args = ["true"], []
    for condition, value in (
        ("conversation.tenant = (SELECT id FROM tenant WHERE name = ?)", tenant or None),
        ("conversation.public = ?", conversation or None),
        ("cost.at >= ?", since),
        ("cost.at < ?", until),
    ):
        if value is not None:
            where.append(condition)
            args.append(value)
    named = ("key", "tenant", "requests", "counted", "cache_told", "unknown", *TOKENS)
    rows = ask(
        f"SELECT {key} AS key, {'tenant.name' if is_of_conversations else repr('')}, {SUMS} FROM cost"
        " JOIN conversation ON conversation.id = cost.conversation JOIN tenant ON tenant.id = conversation.tenant"
        f" WHERE {' AND '.join(where)} GROUP BY {GROUPS.get(by, 'key')}"
        f" ORDER BY {newest} DESC LIMIT ?",
        (*args, limit),
    )
    found = []
    for row in rows:
        told = dict(zip(named, row, strict=False))
        many, tokens = row[len(named) : -len(REBUILDS)], row[-len(REBUILDS) :]
        told[by.value] = told.pop("key")
        told["rebuilds"] = dict(zip(REBUILDS, many, strict=True))
        told["rebuilt_tokens"] = dict(zip(REBUILDS, tokens, strict=True))
        found.append(told)
    return found
