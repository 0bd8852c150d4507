"""Recorded requests of real clients, judged by the core alone; with labels, and none written for this."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from palimpsest.domain import Json
from palimpsest.wire.registry import wire_of

from tests.core.driving import Core, assistant
from tests.recorded import AT_LEAST, AT_MOST, TOOL, needed, traces

pytestmark = [needed, pytest.mark.repeats]


def replayer() -> ModuleType:
    """The scoring of the traces' own tool."""
    spec = importlib.util.spec_from_file_location("replay_traces", TOOL)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def judged(tool: ModuleType, trace: Path) -> list[Json]:
    """One row for each request, as the tool makes them of a proxy's headers."""
    requests, labels = tool.read(trace)
    core, rows = Core(), []
    for request, label, answer in zip(requests, labels, tool.answers(requests), strict=True):
        wire = wire_of(request["method"], request["path"].partition("?")[0])
        if wire is None:  # memory has nothing to do with it
            continue
        refused = (answer.get("status") or 200) != 200
        calls = [{"id": c["id"], "function": c} for c in answer.get("calls") or []]
        opaque = [{"type": "compaction", "encrypted_content": answer["opaque"]}] if "opaque" in answer else None
        said = assistant(answer.get("text") or "") | {"tool_calls": calls, "id": answer.get("id")}
        said |= {"content": opaque} if opaque else {}
        verdict = core.hear(request["body"], None if refused else said, request["headers"], wire)
        head = {"role": verdict.role.value, "event": verdict.event.value, "conversation": verdict.conversation}
        rows.append({"file": trace.name, "label": label, "head": head, "bytes": True, "reply": True, "status": 200})
    return rows


@pytest.fixture(scope="module")
def scores() -> Json:
    tool = replayer()
    scored: Json = tool.score([row for trace in traces() for row in judged(tool, trace)])
    return scored


@pytest.mark.parametrize("name", AT_LEAST)
def test_core_alone_scores_at_least(scores: Json, name: str):
    assert scores[name] >= AT_LEAST[name]


@pytest.mark.parametrize("name", AT_MOST)
def test_core_alone_scores_at_most(scores: Json, name: str):
    assert scores[name] <= AT_MOST[name]
