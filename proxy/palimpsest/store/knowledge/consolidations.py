"""The log of consolidation as rows: what each run did to which item, and why; and taking it back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, get_args

from palimpsest.domain import Json, frozen
from palimpsest.store.engine import Ask, Transaction, ids
from palimpsest.store.families.items import forget_items
from palimpsest.store.knowledge.graph import forget_unused
from palimpsest.store.operation.changes import ITEMS, count

Change = Literal["merged", "superseded", "evicted", "related"]

RUNS = """
SELECT consolidation.key, coalesce(tenant.name, ''), consolidation.at, nullif(consolidation.undone_at, 0),
    count(*) FILTER (WHERE what = 'merged'), count(*) FILTER (WHERE what = 'superseded'),
    count(*) FILTER (WHERE what = 'evicted'), count(*) FILTER (WHERE what = 'related')
FROM consolidation JOIN consolidation_step ON consolidation_step.run = consolidation.id
LEFT JOIN tenant ON tenant.id = consolidation.tenant
WHERE ?1 = '' OR tenant.name = ?1
GROUP BY consolidation.id, tenant.name ORDER BY consolidation.id DESC LIMIT ?2
"""
STEPS = """
SELECT consolidation_step.item, item.text, consolidation_step.heir, what, why, consolidation_step.at
FROM consolidation_step JOIN consolidation ON consolidation.id = consolidation_step.run
JOIN item ON item.id = consolidation_step.item JOIN tenant ON tenant.id = item.tenant
WHERE consolidation.key = ?1 AND (?2 = '' OR tenant.name = ?2) ORDER BY consolidation_step.id LIMIT ?3
"""
# What gave way for room is kept until then, with all that it stood for.
SPENT = """
WITH RECURSIVE spent(id) AS (
    SELECT item.id FROM item JOIN consolidation_step AS step ON step.item = item.id AND step.what = 'evicted'
        WHERE item.state = 'evicted' GROUP BY item.id HAVING max(step.at) < ?1
    UNION SELECT item.id FROM spent JOIN item ON item.heir = spent.id
)
SELECT id FROM spent LIMIT ?2
"""


@frozen
class Action:
    """What is to become of an item."""

    item: int
    heir: int
    what: Change
    why: str


def begin(transaction: Transaction, key: str, tenant: int, at: float) -> int:
    """The row of a run that changes something of a tenant; the same one for the same key."""
    transaction.write(
        "INSERT INTO consolidation(key, tenant, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", [(key, tenant, at)]
    )
    ((run,),) = transaction.read("SELECT id FROM consolidation WHERE key = ?", (key,))
    return int(run)


def act(transaction: Transaction, run: int, actions: Sequence[Action], at: float) -> list[Action]:
    """Apply and log those actions that still can be, and return them."""
    done = []
    for action in actions:
        found = transaction.read(
            "SELECT 1 FROM item WHERE id = ?1 AND (?3 <> 0 OR (state = 'current' AND heir = 0))"
            " AND (?2 = 0 OR EXISTS (SELECT 1 FROM item WHERE id = ?2))",
            (action.item, action.heir, action.what == "related"),
        )
        if not found:
            continue
        if action.what != "related":
            transaction.write(
                "UPDATE item SET state = ?, heir = ? WHERE id = ?", [(action.what, action.heir, action.item)]
            )
        transaction.write(
            "INSERT INTO consolidation_step(tenant, run, item, heir, what, why, at)"
            " SELECT tenant, ?, id, ?, ?, ?, ? FROM item WHERE id = ?",
            [(run, action.heir, action.what, action.why, at, action.item)],
        )
        done.append(action)
    if done:
        count(transaction, ITEMS)
    return done


def undone_pairs(ask: Ask, items: Iterable[int]) -> frozenset[tuple[int, int]]:
    """Pairs of an item and its heir (0: none) from undone runs, which are not made again."""
    rows = ask(
        "SELECT consolidation_step.item, consolidation_step.heir FROM consolidation"
        " JOIN consolidation_step ON consolidation_step.run = consolidation.id"
        " WHERE undone_at <> 0 AND what <> 'evicted'"
    )
    among = frozenset(items)
    return frozenset((item, heir) for item, heir in rows if item in among)


def runs(ask: Ask, tenant: str, limit: int) -> list[Json]:
    """
    The newest runs that changed something; of one tenant, or (tenant "") all.

    Returns:
        `run` (its key), `tenant`, `at` and `undone_at` in Unix seconds (None: it stands), and how many items were
        `merged`, `superseded`, `evicted` and `related`.
    """
    fields = ("run", "tenant", "at", "undone_at", *get_args(Change))
    return [dict(zip(fields, row, strict=True)) for row in ask(RUNS, (tenant, limit))]


def steps(ask: Ask, key: str, tenant: str, limit: int) -> list[Json]:
    """
    The first changes that a run made to items of a tenant ("": any), in order.

    Returns:
        `item`, its `text`, the item that stands for it (`heir`, 0 none), `what` was done, `why`, `at` (Unix seconds).
    """
    fields = ("item", "text", "heir", "what", "why", "at")
    return [dict(zip(fields, row, strict=True)) for row in ask(STEPS, (key, tenant, limit))]


def size(ask: Ask, key: str, tenant: str) -> int:
    """How many changes of a run can be undone; 0: none, or there is no such run of this tenant ("": any)."""
    ((count,),) = ask(
        "SELECT count(*) FROM consolidation_step JOIN consolidation ON consolidation.id = consolidation_step.run"
        " LEFT JOIN tenant ON tenant.id = consolidation.tenant"
        " WHERE key = ?1 AND undone_at = 0 AND (?2 = '' OR tenant.name = ?2)",
        (key, tenant),
    )
    return int(count)


def undo(transaction: Transaction, key: str, tenant: str, at: float) -> dict[str, int] | None:
    """
    Undo a run, except for items that changed again since. Returns counts by kind. None: there is no such run, or it was
    undone before. `tenant`: whose it must be; "": anybody's.
    """
    found = transaction.read(
        "SELECT consolidation.id FROM consolidation LEFT JOIN tenant ON tenant.id = consolidation.tenant"
        " WHERE key = ?1 AND undone_at = 0 AND (?2 = '' OR tenant.name = ?2)",
        (key, tenant),
    )
    if not found:
        return None
    ((run,),) = found
    taken_back = dict.fromkeys(get_args(Change), 0)
    tenants = set()
    rows = transaction.read(
        "SELECT step.item, step.heir, step.what, item.state, item.heir, item.tenant FROM consolidation_step AS step"
        " JOIN item ON item.id = step.item WHERE step.run = ? ORDER BY step.id DESC",
        (run,),
    )
    for item, heir, what, state, stands, of_tenant in rows:
        if what == "related":
            transaction.write("DELETE FROM edge_evidence WHERE item = ?", [(item,)])
            tenants.add(of_tenant)
        elif (state, stands) == (what, heir):
            transaction.write("UPDATE item SET state = 'current', heir = 0 WHERE id = ?", [(item,)])
        else:
            continue
        taken_back[what] += 1
    for one in tenants:
        forget_unused(transaction, one)
    count(transaction, ITEMS)
    transaction.write("UPDATE consolidation SET undone_at = ? WHERE id = ?", [(at, run)])
    return taken_back


def has_spent(ask: Ask, before: float) -> bool:
    """Whether anything was evicted before a time (Unix seconds), and is still there."""
    return bool(ask(SPENT, (before, 1)))


def forget_spent(transaction: Transaction, before: float, limit: int) -> int:
    """Remove what was evicted before a time (Unix seconds), with all that it stood for; returns how many items."""
    items = [item for (item,) in transaction.read(SPENT, (before, limit))]
    forget_items(transaction, ids(items))
    return len(items)
