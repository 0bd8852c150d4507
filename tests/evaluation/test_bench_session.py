"""Rank of the session that holds the answer."""

from __future__ import annotations

import json
from dataclasses import replace
from math import log2

import pytest
from palimpsest.evaluation.bench_session import Placed, ask, placed, report
from palimpsest.evaluation.datasets import Conversation, Question
from palimpsest.evaluation.palimpsest import Palimpsest

from tests.evaluation.told import told
from tests.remembered import WordEmbedder


def test_scores_follow_from_the_places_of_the_gold_sessions() -> None:
    assert placed([4, 2], {4}) == Placed(1.0, 1.0, 1.0, 1.0)
    assert placed([2, 4], {4}) == Placed(0.0, 1.0, pytest.approx(1 / log2(3)), 0.5)
    assert placed([2, 4, 9], {2, 9}) == Placed(1.0, 1.0, pytest.approx(1.5 / (1 + 1 / log2(3))), 1.0)
    assert placed([0, 1, 2, 3, 4, 5], {5}) == Placed(0.0, 0.0, 0.0, pytest.approx(1 / 6))
    assert placed([], {5}) == Placed(0.0, 0.0, 0.0, 0.0)


def sessions() -> Conversation:
    talk = told(
        "user: The ferry to Brindle leaves at nine.",
        "assistant: Early enough.",
        "user: Clara plays the violin in Brindle.",
        "assistant: Since when?",
    )
    messages = tuple(replace(said, session=at // 2) for at, said in enumerate(talk.messages))
    questions = (
        Question("q1", "When does the ferry to Brindle leave?", None, "time", ("m0",)),
        Question("q2", "Does Clara play the violin?", None, "person", ("m2",)),
        Question("q3", "Who is Bob?", None, "person"),
    )
    return Conversation("talk", messages, questions, 2)


async def test_a_session_is_as_good_as_its_best_message() -> None:
    rows = await ask(Palimpsest(WordEmbedder()), [sessions()])
    assert [category for category, _ in rows] == ["time", "person"], "questions without evidence are not asked"
    assert all(held.hit_at_1 == 1.0 for _, held in rows)
    made = json.loads(report(["talk.jsonl"], {"palimpsest": rows, "other": rows}, 42).to_json())
    assert (made["n"], made["hit_at_1"], made["systems"]["other"]["mrr"]) == (2, 1.0, 1.0)
    assert made["comparisons"]["other"]["hit_at_1"]["p"] == 1.0
