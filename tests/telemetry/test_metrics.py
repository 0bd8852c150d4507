import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from palimpsest.telemetry.metrics import CONTENT_TYPE, COUNTERS, GAUGES, TENANTS_NAMED, Metrics


def lines(metrics: Metrics) -> list[str]:
    return metrics.render().decode().splitlines()


def test_a_request_is_counted_with_its_role_event_and_note_and_nothing_else() -> None:
    metrics = Metrics()
    metrics.request("main", "compaction:summary", "", added_tokens=120, own_tokens=900)
    metrics.request("main", "append", "calm")
    text = lines(metrics)
    assert 'palimpsest_requests_total{event="compaction:summary",note="",role="main"} 1.0' in text
    assert 'palimpsest_requests_total{event="append",note="calm",role="main"} 1.0' in text
    assert "palimpsest_added_tokens_total 120.0" in text
    assert "palimpsest_own_tokens_total 900.0" in text


def test_tokens_that_were_refused_are_counted_beside_those_that_were_added() -> None:
    metrics = Metrics()
    metrics.request("main", "append", "", added_tokens=120, own_tokens=900)
    metrics.too_long(120)
    text = lines(metrics)
    assert "palimpsest_too_long_total 1.0" in text and "palimpsest_too_long_tokens_total 120.0" in text


def test_faults_lost_turns_refusals_and_answers_are_counted() -> None:
    metrics = Metrics()
    metrics.fault("recall")
    metrics.add("turns_lost", 3)
    metrics.refused("origin")
    metrics.response(200)
    metrics.response(429)
    text = lines(metrics)
    assert 'palimpsest_faults_total{where="recall"} 1.0' in text
    assert "palimpsest_turns_lost_total 3.0" in text
    assert 'palimpsest_refused_total{kind="origin"} 1.0' in text
    assert 'palimpsest_upstream_responses_total{status_class="2xx"} 1.0' in text
    assert 'palimpsest_upstream_responses_total{status_class="4xx"} 1.0' in text


def test_calls_of_models_are_counted_by_role_and_how_they_ended() -> None:
    metrics = Metrics()
    assert not [line for line in lines(metrics) if line.startswith("palimpsest_assist")]
    metrics.assisted("writer", "answered", 0.3)
    metrics.assisted("writer", "capped", 0.0)
    metrics.assist_used("writer", 900, 100, 0.25)
    text = lines(metrics)
    assert 'palimpsest_assist_seconds_count{outcome="answered",role="writer"} 1.0' in text
    assert 'palimpsest_assist_seconds_count{outcome="capped",role="writer"} 1.0' in text
    assert 'palimpsest_assist_tokens_total{kind="prompt",role="writer"} 900.0' in text
    assert 'palimpsest_assist_tokens_total{kind="completion",role="writer"} 100.0' in text
    assert 'palimpsest_assist_dollars_total{role="writer"} 0.25' in text


def test_stages_have_an_edge_at_the_deadline() -> None:
    metrics = Metrics()
    metrics.observe("recall", 0.2)
    text = lines(metrics)
    assert 'palimpsest_stage_seconds_bucket{le="0.1",stage="recall"} 0.0' in text
    assert 'palimpsest_stage_seconds_bucket{le="0.25",stage="recall"} 1.0' in text


def shown(labels: Sequence[str]) -> str:
    """Labels whose values are their names, as Prometheus reads them."""
    return "{" + ",".join(f'{name}="{name}"' for name in sorted(labels)) + "}" if labels else ""


@pytest.mark.parametrize("name", GAUGES)
def test_every_gauge_shows_its_newest_value(name: str) -> None:
    metrics, (_, _, *labels) = Metrics(), GAUGES[name]
    metrics.gauge(name, 7, *labels)
    metrics.gauge(name, 1, *labels)
    assert f"palimpsest_{name}{shown(labels)} 1.0" in lines(metrics)


def test_two_apps_in_one_process_do_not_add_up() -> None:
    one, other = Metrics(), Metrics()
    one.fault("journal")
    assert 'palimpsest_faults_total{where="journal"} 1.0' not in lines(other)


def test_added_tokens_are_told_by_tenant_as_long_as_there_are_few() -> None:
    metrics = Metrics()
    for number in range(TENANTS_NAMED + 2):
        metrics.request("main", "append", added_tokens=10, tenant=f"t{number}")
        metrics.request("main", "append", tenant="silent")
    metrics.request("main", "append", added_tokens=5, tenant="t0")
    text = lines(metrics)
    assert 'palimpsest_tenant_added_tokens_total{tenant="t0"} 15.0' in text
    assert 'palimpsest_tenant_added_tokens_total{tenant="other"} 20.0' in text
    named = [line for line in text if line.startswith("palimpsest_tenant_added_tokens_total")]
    assert len(named) == TENANTS_NAMED + 1 and "silent" not in "".join(named)


@pytest.mark.parametrize("name", COUNTERS)
def test_every_counter_adds_up(name: str) -> None:
    metrics, (_, *labels) = Metrics(), COUNTERS[name]
    metrics.add(name, 2, *labels)
    metrics.add(name, 3, *labels)
    assert f"palimpsest_{name}_total{shown(labels)} 5.0" in lines(metrics)


def test_content_type_is_the_one_prometheus_scrapes() -> None:
    assert CONTENT_TYPE.startswith("text/plain; version=0.0.4")


def run(program: str, folder: Path) -> str:
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(folder)}
    return subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True, timeout=60
    ).stdout


WORKER = """
from palimpsest.telemetry.metrics import Metrics
metrics = Metrics()
metrics.fault("recall")
metrics.gauge("queued", 5)
metrics.gauge("pending", 9)
metrics.gauge("archive_lag_seconds", 9)
metrics.add("blocks", 2)
metrics.request("main", "append", added_tokens=7, tenant="one")
"""

READER = """
import sys
from palimpsest.telemetry.metrics import Metrics
metrics = Metrics()
metrics.gauge("queued", 2)
metrics.request("main", "append", added_tokens=7, tenant="one")
sys.stdout.write(metrics.render().decode())
"""


def test_any_worker_answers_for_all_and_the_dead_keep_counts_but_no_states(tmp_path: Path) -> None:
    run(WORKER, tmp_path)
    run(WORKER, tmp_path)
    text = run(READER, tmp_path).splitlines()
    assert 'palimpsest_faults_total{where="recall"} 2.0' in text
    assert "palimpsest_queued 2.0" in text
    assert "palimpsest_blocks_total 4.0" in text and "palimpsest_archive_lag_seconds 0.0" in text
    assert 'palimpsest_tenant_added_tokens_total{tenant="one"} 21.0' in text
    assert 'palimpsest_build_info{version="' in "".join(text)
    assert not any(line.startswith("palimpsest_pending") and line.endswith("9.0") for line in text)
