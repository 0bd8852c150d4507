from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from palimpsest.domain.days import day_of, seconds_of, time_of

AT = 1_795_910_399.5  # a moment before midnight in UTC


def test_days_and_times_are_those_of_utc_to_the_second() -> None:
    assert (day_of(AT), day_of(AT + 1)) == ("2026-11-28", "2026-11-29")
    assert time_of(AT) == "2026-11-28T23:59:59+00:00"


def test_a_time_without_a_zone_is_of_utc() -> None:
    naive = datetime(2026, 11, 28, 12)
    assert seconds_of(naive) == seconds_of(naive.replace(tzinfo=UTC))
    assert seconds_of(naive.replace(tzinfo=timezone(timedelta(hours=1)))) == seconds_of(naive) - 3600
