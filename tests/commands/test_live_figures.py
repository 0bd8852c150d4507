"""What two readings of a proxy's metrics tell."""

from __future__ import annotations

from math import inf

import pytest
from palimpsest.commands.live_figures import MetricsSample, figures, parse_metrics, percentile_ms
from palimpsest.telemetry.metrics import Metrics


def read(metrics: Metrics, at: float) -> MetricsSample:
    return parse_metrics(metrics.render().decode(), at)


def test_rates_and_shares_are_of_what_happened_between_two_readings() -> None:
    metrics = Metrics()
    metrics.request("main", "append", "", 1000, 1000)
    metrics.gauge("store_up", 1)
    before = read(metrics, 100.0)
    for status in (200, 200, 200, 502):
        metrics.response(status)
    metrics.request("main", "append", "", 50, 1000)
    metrics.request("main", "append", "calm", 0, 1000)
    for name, amount in {"blocks": 1, "prompt_tokens": 200, "cache_read_tokens": 150}.items():
        metrics.add(name, amount)
    metrics.add("passages_shown", 4)
    metrics.add("passages_quoted", 1)
    metrics.gauge("archive_lag_seconds", 3)
    metrics.gauge("gap", 0.125, "retrieval")
    told = figures(before, read(metrics, 102.0))
    assert (told.seconds, told.requests_per_second, told.failed_share, told.block_share) == (2, 2, 0.25, 0.5)
    assert (told.added_tokens_per_second, told.added_share) == (25, 0.025)
    assert (told.cache_read_share, told.quoted_share) == (0.75, 0.25)
    assert (told.write_gap, told.retrieval_gap) == (None, 0.125)
    assert (told.archive_lag_seconds, told.store_up, told.memory_on) == (3, True, False)


def test_where_nothing_happened_there_is_no_share_and_no_time() -> None:
    told = figures(read(Metrics(), 0.0), read(Metrics(), 0.0))
    assert told.requests_per_second == 0
    assert told.block_share is told.failed_share is told.quoted_share is told.recall_p95_ms is None


def test_after_a_restart_what_came_since_counts() -> None:
    old, new = Metrics(), Metrics()
    for _ in range(10):
        old.response(200)
        old.observe("recall", 5.0)
    new.response(200)
    new.observe("recall", 0.002)
    told = figures(read(old, 0.0), read(new, 1.0))
    assert told.requests_per_second == 1
    assert told.recall_p95_ms is not None and told.recall_p95_ms <= 2


def test_times_are_those_between_the_readings() -> None:
    metrics = Metrics()
    metrics.observe("recall", 4.0)
    before = read(metrics, 0.0)
    for _ in range(20):
        metrics.observe("recall", 0.0015)
    told = figures(before, read(metrics, 1.0))
    assert told.recall_p50_ms == pytest.approx(1.5) and told.memory_p50_ms is None


def test_percentiles_lie_evenly_spread_within_their_bucket() -> None:
    assert percentile_ms({0.1: 0, 0.2: 10, inf: 10}, 0.5) == 150
    assert percentile_ms({0.1: 0, inf: 10}, 0.5) == 100
    assert percentile_ms({}, 0.5) is None
