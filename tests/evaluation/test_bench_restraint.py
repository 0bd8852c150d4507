"""How often is nothing said where nothing is known?"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from proxy.evaluation import palimpsest
from proxy.evaluation.bench_restraint import Asked, ask, report
from proxy.evaluation.datasets import Question
from proxy.evaluation.score import Evidence
from tests.evaluation.told import told
from tests.remembered import WordEmbedder

FERRY = replace(
    told("user: The ferry to Brindle leaves at nine.", "assistant: Early enough."),
    id="ferry",
    questions=(Question("q1", "When does the ferry to Brindle leave?", None, "c", ("m0",)),),
)
VIOLIN = replace(
    told("user: Clara plays the violin.", "assistant: Since when does she play the violin?"),
    id="violin",
    questions=(Question("q2", "Which planets have rings?", None, "c", ("m0",)),),
)


async def test_own_questions_are_answered_and_others_are_not() -> None:
    async with palimpsest.opened(WordEmbedder()) as store:
        await store.write([FERRY])
        (own,), (foreign,) = await ask(store, FERRY, FERRY), await ask(store, FERRY, VIOLIN)
    assert own == Asked(True, 8, ".. rare terms in one passage", Evidence(True, True, 1.0))
    assert (foreign.is_own, foreign.admitting, foreign.evidence) == (False, 0, None)


def test_the_curve_trades_silence_for_recall() -> None:
    found = Evidence(True, True, 1.0)
    own = [Asked(True, count, "a", found) for count in (8, 5)] + [Asked(True, 8, "a")]
    foreign = [Asked(False, count, "b") for count in (0, 2, 2, 8)]
    made = json.loads(report(["x"], own + foreign, 0.44).to_json())
    curve = {point["gate_cosine"]: point for point in made["curve"]}
    assert [*curve] == [0.30, 0.35, 0.40, 0.44, 0.45, 0.50, 0.55, 0.60]
    assert [curve[at]["silent"] for at in (0.30, 0.40, 0.60)] == [0.25, 0.75, 0.75]
    assert [curve[at]["all"] for at in (0.45, 0.50)] == [1.0, 0.5]
    assert (made["n"], made["n_own"], made["gate_cosine"], made["silent"]) == (4, 3, 0.44, 0.75)
    assert made["admitted"] == pytest.approx(1.0) and made["let_through"] == {"b": 0.25}
