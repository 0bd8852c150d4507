from __future__ import annotations

import json
from dataclasses import replace

from palimpsest.evaluation import palimpsest
from palimpsest.evaluation.bench_restraint import QuestionOutcome, ask, report
from palimpsest.evaluation.datasets import Question
from palimpsest.evaluation.score import Evidence

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
    assert own.evidence == Evidence(True, True, 1.0) and own.chars > 0
    assert (foreign.is_own, foreign.chars, foreign.evidence) == (False, 0, None)
    assert foreign.helps < own.helps


def test_the_curve_trades_silence_for_recall() -> None:
    found = Evidence(True, True, 1.0)
    own = [QuestionOutcome(True, helps, 300, found) for helps in (0.95, 0.55)] + [QuestionOutcome(True, 0.95, 300)]
    foreign = [QuestionOutcome(False, helps, chars) for helps, chars in ((0.05, 0), (0.25, 0), (0.25, 0), (0.95, 400))]
    made = json.loads(report(["x"], own + foreign, 0.42).to_json())
    curve = {point["least_help"]: point for point in made["curve"]}
    assert [*curve] == [0.1, 0.2, 0.3, 0.4, 0.42, 0.5, 0.6, 0.7, 0.8, 0.9]
    assert [curve[at]["silent"] for at in (0.1, 0.3, 0.9)] == [0.25, 0.75, 0.75]
    assert [curve[at]["all"] for at in (0.5, 0.6)] == [1.0, 0.5]
    assert (made["n"], made["n_own"], made["least_help"], made["silent"]) == (4, 3, 0.42, 0.75)
    assert (made["chars_on_others"], made["chars_on_own"]) == (100.0, 300.0)
