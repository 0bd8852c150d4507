"""CALMem's two memories through the running proxy."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path

import pytest
from palimpsest.evaluation import bench_dual
from palimpsest.evaluation.bench_dual import BOTH, BY_AGENT, CONSISTENCY, EPISODIC, NONE, RECOVERY, SEMANTIC

from tests.evaluation.test_bench_answers import DATA

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("forked")]


@pytest.mark.usefixtures("model_folder")
async def test_what_is_asked_for_comes_from_the_archive_and_what_an_agent_wrote_is_always_there(tmp_path: Path) -> None:
    chat = tmp_path / "chat.json"
    chat.write_text(json.dumps(DATA))
    parser = ArgumentParser()
    bench_dual.add_arguments(parser)
    given = parser.parse_args([])
    given.data, given.limit, given.seed = [chat], 0, 42
    told = (await bench_dual.run(given)).data["systems"]
    assert told[NONE] == {RECOVERY: 0.0, CONSISTENCY: 0.0}
    assert told[EPISODIC] == {RECOVERY: 1.0, CONSISTENCY: 0.0}
    assert told[SEMANTIC + BY_AGENT][CONSISTENCY] == told[BOTH + BY_AGENT][CONSISTENCY] == 1.0
    assert told[BOTH][RECOVERY] == told[BOTH + BY_AGENT][RECOVERY] == 1.0
