"""
Retention: how long each kind of what is stored is kept, and for whom.

A period is a number and a unit (180d), or `forever`. Those of a tenant go before the general ones.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase

from palimpsest.domain.errors import PolicyError
from palimpsest.domain.frozen import frozen
from palimpsest.settings.policy import FOREVER, UNLIMITED, RetentionPeriods, RetentionPolicy

UNIT_SECONDS = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}
UNIT_BYTES = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}

_AGE = re.compile(r"\d{1,6}[mhdw]")

TURNS, TOOL_RESULTS, SIDE_REQUESTS, EXPLAIN = KINDS = ("turns", "tool_results", "side_requests", "explain")
"""What has a period: all messages, what tools answered, requests beside a conversation, records of decisions."""


@frozen
class Cutoffs:
    """What came before these times goes, Unix seconds; 0 keeps everything."""

    turns: float = 0.0
    tool_results: float = 0.0
    side_requests: float = 0.0
    explain: float = 0.0

    @property
    def newest(self) -> float:
        """The latest of the cutoffs: what is newer stays, of whatever kind."""
        return max(self.turns, self.tool_results, self.side_requests, self.explain)


def cutoffs(policy: RetentionPolicy, tenant: str, now: float) -> Cutoffs:
    """The times before which messages of a tenant are erased, by kind; the shorter of two periods counts."""
    own = next((own for pattern, own in policy.tenants.items() if fnmatchcase(tenant, pattern)), RetentionPeriods())

    def cutoff(kind: str) -> float:
        period = getattr(own, kind) or getattr(policy, kind)
        return 0.0 if period == FOREVER else now - seconds(period)

    turns = cutoff(TURNS)
    return Cutoffs(turns, max(turns, cutoff(TOOL_RESULTS)), max(turns, cutoff(SIDE_REQUESTS)), cutoff(EXPLAIN))


def seconds(period: str) -> float:
    """The seconds of a period such as 180d."""
    return int(period[:-1]) * UNIT_SECONDS[period[-1]]


def age_seconds(text: str) -> float:
    """The seconds of an age that somebody typed, such as 90d; raises `PolicyError`: it is none."""
    if _AGE.fullmatch(text.strip()) is None:
        raise PolicyError("older_than: must be a number followed by m, h, d or w, such as 90d")
    return seconds(text.strip())


def size_bytes(size: str) -> int:
    """The bytes of a size such as 2GB; 0: unlimited."""
    if size == UNLIMITED:
        return 0
    number, unit = re.fullmatch(r"(\d+)(\D*)", size).groups()  # type: ignore[union-attr]
    return int(number) * UNIT_BYTES[unit]


def is_in_force(policy: RetentionPolicy) -> bool:
    """Whether the policy ever erases anything for its age or for room."""
    periods: list[Mapping[str, str]] = [policy.model_dump(include=set(KINDS))]
    periods += [own.model_dump() for own in policy.tenants.values()]
    return policy.max_store_bytes != UNLIMITED or any(
        period not in (FOREVER, "") for listed in periods for period in listed.values()
    )
