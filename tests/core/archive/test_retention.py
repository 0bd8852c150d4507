"""What is to go of a tenant, and since when."""

from __future__ import annotations

from palimpsest.core.archive.retention import cutoffs
from palimpsest.settings.policy import RetentionPolicy

NOW = 1_000_000_000.0
DAY_SECONDS = 86_400.0


def test_a_kind_goes_with_the_shorter_of_its_periods_and_nothing_goes_of_what_is_kept() -> None:
    policy = RetentionPolicy(turns="30d", tool_results="7d", side_requests="60d", explain="forever")
    found = cutoffs(policy, "acme", NOW)
    assert (found.turns, found.tool_results) == (NOW - 30 * DAY_SECONDS, NOW - 7 * DAY_SECONDS)
    assert (found.side_requests, found.explain) == (NOW - 30 * DAY_SECONDS, 0.0)


def test_a_tenant_has_its_own_periods_and_of_the_others_those_of_all() -> None:
    policy = RetentionPolicy(turns="30d", tool_results="7d", tenants={"key:*": {"turns": "1d"}})
    own, other = cutoffs(policy, "key:acme", NOW), cutoffs(policy, "static:me", NOW)
    assert (own.turns, own.tool_results) == (NOW - DAY_SECONDS, NOW - DAY_SECONDS)
    assert (other.turns, other.tool_results) == (NOW - 30 * DAY_SECONDS, NOW - 7 * DAY_SECONDS)
