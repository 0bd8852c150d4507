"""Statistics: how large the store is, how far behind its index, and how long searches took (`palimpsest stats`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import ceil
from typing import Any

from palimpsest.store.engine import Ask
from palimpsest.store.operation.switches import switched_off
from palimpsest.store.turns.pending import PENDING, oldest_pending

COUNTS = {
    "tenants": "SELECT count(*) FROM tenant",
    "conversations": "SELECT count(*) FROM conversation",
    "turns": "SELECT count(*) FROM turn",
    "messages": "SELECT count(*) FROM occurrence",
    "contents": "SELECT count(*) FROM content",
    "memories": "SELECT count(*) FROM memory",
    "pending": PENDING,
    "set_aside": "SELECT count(*) FROM quarantine",
    "bytes": "SELECT stored_bytes()",
}
FACTS = """
SELECT count(*) FROM fact
HAVING count(*) > 0 OR EXISTS (SELECT 1 FROM task WHERE name = 'facts version')
"""
RECENT_TURNS = 2000  # whose searches are counted: enough for a 95th percentile, and read in well under a second

SEARCH_TIMES = """
SELECT ms FROM (
    SELECT CAST(field(explain, 'elapsed_ms.recall') AS DOUBLE PRECISION) AS ms FROM (
        SELECT explain FROM turn ORDER BY id DESC LIMIT ?) AS newest) AS told
WHERE ms IS NOT NULL
"""


def count(ask: Ask, name: str) -> int:
    """One of `COUNTS`."""
    return int(ask(COUNTS[name])[0][0])


def usage(ask: Ask) -> Mapping[str, Any]:
    """
    Counts of rows by name, `bytes` of the database, and
    `oldest_pending_at`: Unix seconds at which the oldest message that waits to be indexed was said, 0 where none waits;
    `models`: what language models used on the newest day on which one was asked (`day`, `role`, `calls`, `failures`,
    `prompt_tokens`, `completion_tokens`, `dollars`);
    `switched_off`: for whom memory is (`tenant`, "" everybody; `reason`; `at`);
    `gaps`: what memory loses, as its probes say (`core/recall/gaps.as_json`), None where it asked nothing;
    `facts`: statements of facts, None where none were ever kept;
    `searches`, `search_ms_p50`, `search_ms_p95`: of the newest 2,000 turns those that searched, and how long they took.
    """
    from palimpsest.core.recall.gaps import as_json  # late: whoever only counts what waits does not need them
    from palimpsest.store.operation.assist_usage import newest_use
    from palimpsest.store.operation.probes import live_estimate

    found: dict[str, Any] = {name: count(ask, name) for name in COUNTS}
    times = sorted(row[0] for row in ask(SEARCH_TIMES, (RECENT_TURNS,)))
    day, by_role = newest_use(ask)
    return found | {
        "models": [{"day": day, "role": role} | asdict(used) for role, used in by_role.items()],
        "switched_off": [asdict(off) for off in switched_off(ask)],
        "facts": next((row[0] for row in ask(FACTS)), None),
        "oldest_pending_at": oldest_pending(ask),
        "gaps": as_json(live_estimate(ask)),
        "searches": len(times),
        "search_ms_p50": _percentile(times, 50),
        "search_ms_p95": _percentile(times, 95),
    }


def _percentile(rising: Sequence[float], percent: int) -> float:
    """The smallest value that so many percent do not exceed; 0 of nothing."""
    return rising[ceil(len(rising) * percent / 100) - 1] if rising else 0
