"""
Replayed requests of real clients, with labels, none of them written for this: what the running proxy makes of them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from palimpsest.domain import Json
from palimpsest.features.transfer.files import zstd

from tests import recorded
from tests.commands.test_cli import palimpsest
from tests.recorded import AT_MOST, TOOL, needed, traces
from tests.running import Proxy, free_port

AT_LEAST = recorded.AT_LEAST | {"bytes": 1.0, "reply": 1.0}

pytestmark = [pytest.mark.slow, needed]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("traces") / "data"


@pytest.fixture(scope="module")
def scores(data: Path) -> Iterator[Json]:
    port = free_port()
    with Proxy(data, f"http://127.0.0.1:{port}/v1") as proxy:
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


def test_replayed_conversations_are_exported_imported_and_exported_byte_for_byte(
    scores: Json, data: Path, tmp_path: Path
) -> None:
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl.zst"
    assert palimpsest("export", "--data", str(data), "--output", str(first)).returncode == 0
    for _ in range(2):  # the second time everything is there
        done = palimpsest("import", str(first), "--data", str(tmp_path / "data"))
        assert done.returncode == 0, done.stderr
    assert "here before" in done.stdout and "0 turns, 0 messages" in done.stdout
    palimpsest("export", "--data", str(tmp_path / "data"), "--output", str(second))
    assert first.read_bytes().count(b"\n") > scores["all"]["requests"] / 2
    assert zstd.decompress(second.read_bytes()) == first.read_bytes()
