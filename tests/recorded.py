"""Requests of real clients, recorded with labels, beside this repository; and what must be seen in them at least."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.running import SHARED

TOOL = SHARED / "tools" / "replay_traces.py"
TRACES = SHARED / "traces"
AT_LEAST = {
    "role": 0.98,
    "event": 0.96,
    "conversation": 0.97,
    "compaction_recall": 0.97,
    "compaction_precision": 0.97,
    "side_found": 0.97,
}
AT_MOST = {"main_taken_for_side": 0.005}

needed = pytest.mark.skipif(not TOOL.exists(), reason="needs the labelled traces in ../shared, beside this repository")


def traces() -> list[Path]:
    """All of them, on every wire."""
    every = sorted([*TRACES.glob("*.jsonl"), *TRACES.glob("*.jsonl.gz")])
    return [trace for trace in every if ".labels." not in trace.name]
