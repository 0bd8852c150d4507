"""Does the running proxy see what real clients did? Their recorded requests, with labels; none written for this."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from proxy.domain import Json
from tests.running import SHARED, Proxy, free_port

TRACES = SHARED / "traces"
TOOL = SHARED / "tools" / "replay_traces.py"
OTHER_WIRES = ("claude-code", "codex-exec", "openai-agents-chain", "openai-agents-compaction")
AT_LEAST = {
    "role": 0.98,
    "event": 0.95,
    "conversation": 0.97,
    "compaction_recall": 0.97,
    "compaction_precision": 0.97,
    "bytes": 1.0,
    "reply": 1.0,
}
AT_MOST = {"main_taken_for_side": 0.005}

pytestmark = pytest.mark.skipif(
    not TOOL.exists(), reason="needs the labelled traces in ../shared, beside this repository"
)


def traces() -> list[Path]:
    every = sorted([*TRACES.glob("*.jsonl"), *TRACES.glob("*.jsonl.gz")])
    return [t for t in every if ".labels." not in t.name and t.name.partition(".")[0] not in OTHER_WIRES]


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


def test_every_chat_completions_trace_was_replayed(scores: Json) -> None:
    assert set(scores["files"]) == {trace.name for trace in traces()} and scores["all"]["requests"] > 200
