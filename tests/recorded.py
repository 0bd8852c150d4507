"""Requests of real clients, recorded with labels, beside this repository; and what must be seen in them at least."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.running import SHARED

TOOL = SHARED / "tools" / "replay_traces.py"
TRACES = SHARED / "traces"
OTHER_WIRES = ("codex-exec", "openai-agents-chain", "openai-agents-compaction")
AT_LEAST = {
    "role": 0.98,
    "event": 0.95,
    "conversation": 0.97,
    "compaction_recall": 0.97,
    "compaction_precision": 0.97,
}
AT_MOST = {"main_taken_for_side": 0.005}

needed = pytest.mark.skipif(not TOOL.exists(), reason="needs the labelled traces in ../shared, beside this repository")


def traces() -> list[Path]:
    """Those of chat completions and Messages."""
    every = sorted([*TRACES.glob("*.jsonl"), *TRACES.glob("*.jsonl.gz")])
    return [t for t in every if ".labels." not in t.name and t.name.partition(".")[0] not in OTHER_WIRES]
