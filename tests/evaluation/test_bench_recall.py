from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import pytest
from palimpsest.domain import Json
from palimpsest.domain.errors import PolicyError
from palimpsest.evaluation import vectors
from palimpsest.evaluation.baselines.known import BASELINES
from palimpsest.evaluation.bench_recall import Row, ask, helped, report, summary
from palimpsest.evaluation.datasets import Question, read
from palimpsest.evaluation.palimpsest import Palimpsest
from palimpsest.evaluation.score import Evidence
from palimpsest.evaluation.scripted import ScriptedUpstream
from palimpsest.settings.policy import ModelPolicy

from tests.evaluation.told import told
from tests.remembered import WordEmbedder
from tests.running import SHARED

pytestmark = pytest.mark.slow

LOCOMO = SHARED / "data" / "locomo"
TALK = replace(
    told(
        "user: The ferry to Brindle leaves at nine in the morning from the old pier.",
        "assistant: Then we should have breakfast early.",
        "user: My sister Clara plays the violin in the town orchestra.",
        "assistant: Since when does she play?",
    ),
    questions=(
        Question("q1", "When does the ferry to Brindle leave?", "nine in the morning", "time", ("m0",)),
        Question("q2", "Who plays the violin in the orchestra?", "Clara", "person", ("m2",)),
        Question("q3", "What colour has the zeppelin?", "red", "person", ("m2",)),
        Question("q4", "Who likes breakfast?", "nobody", "person"),
    ),
)


async def test_every_question_is_asked_within_every_budget() -> None:
    rows = await ask(Palimpsest(WordEmbedder()), [TALK, replace(TALK, id="silent", questions=())], [6000, 300])
    assert {budget: len(some) for budget, some in rows.items()} == {6000: 4, 300: 4}
    assert all(row.chars <= budget for budget, some in rows.items() for row in some)
    first, second, foreign, unknown = rows[6000]
    assert first.evidence == second.evidence == Evidence(True, True, 1.0)
    assert (first.contains, second.contains) == (True, True)
    assert foreign.evidence == Evidence(False, False, 0.0) and foreign.contains is None and not foreign.admitted
    assert unknown.evidence is None


async def test_a_report_holds_what_is_promised() -> None:
    systems = [Palimpsest(WordEmbedder()), BASELINES["recent"](WordEmbedder())]
    told_by = {system.name: await ask(system, [TALK], [6000, 300]) for system in systems}
    made = json.loads(report(["talk.jsonl"], [TALK], told_by, 42).to_json())
    assert (made["data"], made["n"], made["questions"], made["without_evidence"]) == (["talk.jsonl"], 3, 4, 1)
    for result in (made, made["systems"]["recent"]):
        assert {"p50", "p95"} == result["latency_ms"].keys()
        for budget in ("6000", "300"):
            held = result["budgets"][budget]
            assert held.keys() >= {"any", "all", "fraction", "contains", "by_category"}
            assert held["by_category"].keys() == {"time", "person"}
    assert made["budgets"]["6000"]["all"] == round(2 / 3, 4)
    assert made["comparisons"]["recent"]["6000"]["all"].keys() >= {"p", "low", "high", "d", "difference"}


def test_means_are_over_the_questions_that_a_score_says_something_of() -> None:
    found, lost = Evidence(True, True, 1.0), Evidence(True, False, 0.5)
    rows = [Row("c", evidence, None, True, 10, 1.0) for evidence in (found, lost, None)]
    assert summary(rows) == {
        **{"n": 2, "any": 1.0, "all": 0.5, "fraction": 0.75, "contains": None, "n_contains": 0},
        **{"admitted": 1.0, "chars": 10.0},
    }


@pytest.mark.skipif(not LOCOMO.exists(), reason="needs LoCoMo in ../shared, beside this repository")
async def test_real_conversations_are_remembered(model_folder: Path, tmp_path: Path) -> None:
    whole = read(LOCOMO)[0]
    messages = whole.messages[:80]
    known = {said.id for said in messages}
    questions = tuple(q for q in whole.questions if q.evidence and known.issuperset(q.evidence))
    conversation = replace(whole, messages=messages, questions=questions)
    assert len(questions) > 20
    async with vectors.opened(ModelPolicy(folder=model_folder), tmp_path / "vectors.db") as embedder:
        rows = await ask(Palimpsest(embedder), [conversation], [3000])
    held = summary(rows[3000])
    assert held["any"] >= 0.9 and held["all"] >= 0.85


def flags(**given: str | None) -> argparse.Namespace:
    return argparse.Namespace(**{"model": None, "upstream": None, "controller": "off", "selector": "score"} | given)


def test_without_flags_nobody_helps_recall() -> None:
    assert helped(flags()) is None


def test_a_model_that_helps_must_be_named() -> None:
    with pytest.raises(PolicyError, match="--selector model: name the model with --model"):
        helped(flags(selector="model"))


async def test_a_model_helps_as_in_the_proxy_and_what_it_uses_is_told() -> None:
    def script(body: Json) -> str:
        form = body["response_format"]["json_schema"]["name"]
        plan = {"questions": [], "first_day": "", "last_day": "", "said_by": "anyone"}
        return json.dumps(plan if form == "query_plan" else {"passages": [2, 1]})

    async with ScriptedUpstream(script) as upstream:
        policy = helped(flags(selector="model", controller="model", model="tiny", upstream=upstream.url))
        system = Palimpsest(WordEmbedder(), policy)
        await ask(system, [TALK], [6000])
    asked = len(upstream.received)
    assert asked > len(TALK.questions) and system.used.calls == asked
    assert system.used.prompt_tokens == sum(got.tokens for got in upstream.received)


async def test_rules_help_without_a_model() -> None:
    system = Palimpsest(WordEmbedder(), helped(flags(controller="rules")))
    rows = await ask(system, [TALK], [6000])
    assert rows[6000][0].evidence == Evidence(True, True, 1.0) and system.used.calls == 0
