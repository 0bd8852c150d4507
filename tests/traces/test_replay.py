"""
Replayed requests of real clients, with labels, none of them written for this: what the running proxy makes of them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from proxy.domain import Json
from tests import recorded
from tests.recorded import AT_MOST, TOOL, needed, traces
from tests.running import Proxy, free_port

AT_LEAST = recorded.AT_LEAST | {"bytes": 1.0, "reply": 1.0}

pytestmark = [pytest.mark.slow, needed]


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Json]:
    port = free_port()
    with Proxy(tmp_path_factory.mktemp("traces") / "data", f"http://127.0.0.1:{port}/v1") as proxy:
        command = [sys.executable, str(TOOL), "--json", "--proxy", f"http://127.0.0.1:{proxy.port}"]
        command += ["--upstream-port", str(port), *map(str, traces())]
        ended = subprocess.run(command, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stderr
        yield json.loads(ended.stdout)


@pytest.mark.parametrize("name", AT_LEAST)
def test_real_traffic_scores_at_least(scores: Json, name: str) -> None:
    per_trace = {trace: score[name] for trace, score in scores["files"].items()}
    assert scores["all"][name] >= AT_LEAST[name], per_trace


@pytest.mark.parametrize("name", AT_MOST)
def test_real_traffic_scores_at_most(scores: Json, name: str) -> None:
    per_trace = {trace: score[name] for trace, score in scores["files"].items()}
    assert scores["all"][name] <= AT_MOST[name], per_trace


def test_every_trace_was_replayed(scores: Json) -> None:
    assert set(scores["files"]) == {trace.name for trace in traces()} and scores["all"]["requests"] > 200
