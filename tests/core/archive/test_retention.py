"""What is to go of a tenant, and since when."""

from __future__ import annotations

from typing import Any

import pytest
from palimpsest.core.archive.retention import cutoffs, is_in_force
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


@pytest.mark.parametrize(
    "given", [{"max_store_bytes": "1GB"}, {"turns": "90d"}, {"explain": "1d"}, {"tenants": {"t": {"turns": "1d"}}}]
)
def test_a_bound_of_room_or_a_single_period_puts_retention_in_force(given: dict[str, Any]) -> None:
    forever = {"turns": "forever", "tool_results": "forever", "side_requests": "forever", "explain": "forever"}
    nothing = {**forever, "max_store_bytes": "unlimited"}
    assert is_in_force(RetentionPolicy.model_validate(nothing | given))
    assert not is_in_force(RetentionPolicy.model_validate(nothing))
