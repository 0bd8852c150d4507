"""What is stale and little used gives way first, and no more than is too much."""

from __future__ import annotations

from palimpsest.core.consolidation.capacity import DAY_SECONDS, Use, evicted

NOW = 1_700_000_000.0


def use(id: int, days_ago: float, uses: int = 0, used_days_ago: float | None = None) -> Use:
    said_at = NOW - days_ago * DAY_SECONDS
    return Use(id, said_at, said_at if used_days_ago is None else NOW - used_days_ago * DAY_SECONDS, uses)


def test_the_stalest_and_least_used_go_first() -> None:
    items = [use(1, 300), use(2, 1), use(3, 300, uses=4, used_days_ago=2), use(4, 100), use(5, 100, uses=9)]
    assert [one.id for one in evicted(items, 2, NOW)] == [1, 4, 5]


def test_nothing_goes_while_there_is_room() -> None:
    assert evicted([use(1, 900), use(2, 1)], 2, NOW) == []


def test_equal_ones_go_by_age_and_then_in_order() -> None:
    assert [one.id for one in evicted([use(3, 5), use(2, 5), use(1, 4)], 1, NOW)] == [2, 3]
