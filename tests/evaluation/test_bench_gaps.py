"""Probes and questions side by side, in a small conversation."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from palimpsest.evaluation.bench_diagnose import Damage
from palimpsest.evaluation.bench_gaps import Stages, measure, report
from palimpsest.evaluation.datasets import Question

from tests.evaluation.told import told
from tests.features.gaps.test_probing import facts
from tests.remembered import WordEmbedder

LABELS = replace(
    told(*(line for text in facts(20) for line in (f"user: {text}", "assistant: Noted."))),
    id="labels",
    questions=(Question("q", "Which inventory label has the violin that we keep in Lisbon?", "7014", "c", ("m2",)),),
)
NONE = Damage("", 0.0)


async def stages_under(damage: Damage) -> Stages:
    stages = Stages()
    await measure(WordEmbedder(), LABELS, damage, 20, 42, stages)
    assert (len(stages.probed), len(stages.asked)) == (20, 1)
    return stages


@pytest.mark.parametrize(
    ("damage", "gap", "other"),
    [
        (Damage("write", 0.5), "probed_write", "probed_retrieval"),
        (Damage("retrieval", 0.25), "probed_retrieval", "probed_write"),
    ],
)
async def test_each_damage_moves_its_own_gap(damage: Damage, gap: str, other: str) -> None:
    found = {one: await stages_under(one) for one in (NONE, damage)}
    undamaged, damaged = json.loads(report(["x"], found).to_json())["damages"]
    assert damaged[gap] > undamaged[gap] + 0.2
    assert damaged[other] <= undamaged[other] + 0.02
    assert undamaged["asked_write"] == undamaged["asked_retrieval"] == 0
