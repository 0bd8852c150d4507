"""Several workers: one scrape shows the sums of all of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from palimpsest.evaluation.scripted import ScriptedUpstream

from tests.running import Conversation, Proxy, until

pytestmark = pytest.mark.slow

REQUESTS = 24
LOG_LINE = re.compile(r'"event": ?"request"')


def test_each_scrape_counts_the_requests_of_all_workers_once(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    settings = {"listen": {"workers": 2}, "log": {"format": "json"}}
    upstream.script = lambda body: f"I read {len(body['messages'])} messages."
    with Proxy(tmp_path / "data", upstream.url, settings) as proxy:
        for number in range(REQUESTS):
            assert Conversation(proxy, f"sk-{number}").say(f"Good morning number {number}.").status == 200
        until(lambda: len(LOG_LINE.findall(proxy.log.read_text())) == REQUESTS, "all requests to be logged")
        for _ in range(6):  # whichever worker answers
            assert proxy.metric("palimpsest_requests_total", role="main", event="start") == REQUESTS
            assert proxy.metric("palimpsest_upstream_responses_total", status_class="2xx") == REQUESTS
            assert proxy.metric("palimpsest_stage_seconds_count", stage="memory") == REQUESTS
            assert proxy.metric("palimpsest_build_info") == 1
        proxy.settle(vectors=False)
        assert proxy.metric("palimpsest_archive_lag_seconds") == 0
