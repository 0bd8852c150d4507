"""Recall, time and memory as the store grows."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from palimpsest.core.recall.diagnosis import QUERY_CHARS
from palimpsest.evaluation.bench_growth import LOGS, Grown, long_texts, numbers, report
from palimpsest.evaluation.score import Evidence

from tests.evaluation.told import told

pytestmark = pytest.mark.slow

FOUND, LOST = Evidence(True, True, 1.0), Evidence(False, False, 0.0)
GIVEN = Namespace(data=[Path("own")], noise=[Path("noise")])


def grown(memories: int, *found: Evidence) -> Grown:
    by_question = {("c", str(at)): evidence for at, evidence in enumerate(found)}
    return Grown(memories, by_question, [1.0, 2.0, 3.0], [5.0], 100.0, 2_000_000)


def test_what_growth_loses_is_told_against_the_smallest_store_that_was_asked_everything() -> None:
    part, small, large = grown(10, LOST), grown(100, FOUND, FOUND), grown(1000, FOUND, LOST)
    data = report(GIVEN, [told("user: Hello")], [part, small, large]).data
    assert (data["n"], data["compared_with"]) == (2, 100)
    assert [held["lost"]["all"] for held in data["sizes"]] == [1.0, 0.0, 0.5]
    assert [held["all"] for held in data["sizes"]] == [0.0, 1.0, 0.5]
    assert data["sizes"][0]["latency_ms"] == {"p50": 2.0, "p95": 2.9}


def test_a_size_that_only_time_is_measured_of_tells_no_recall() -> None:
    measured = report(GIVEN, [told("user: Hello")], [grown(100, FOUND), grown(1000)])
    assert measured.data["sizes"][1]["all"] is None
    assert measured.data["sizes"][1]["lost"] is None
    assert measured.draw
    figure = Figure()
    measured.draw(figure)
    assert [len(line.get_xdata()) for line in figure.axes[0].lines] == [1, 1], "what was not scored is not drawn"  # type: ignore[arg-type]


def test_how_often_the_judge_speaks_is_told_of_the_questions_that_have_an_answer() -> None:
    awake, shy = (replace(grown(size, FOUND, FOUND), helps=(0.9, helps)) for size, helps in ((10, 0.8), (100, 0.1)))
    assert [
        held["speaks"] for held in report(GIVEN, [told("user: Hello")], [awake, shy, grown(1000)]).data["sizes"]
    ] == [*(1.0, 0.5, None)]


def test_logs_are_the_ends_of_long_messages_evenly_from_all() -> None:
    long = [f"user: {at} " + "x" * QUERY_CHARS + f" end {at}" for at in range(3 * LOGS)]
    texts = long_texts([told(*long, "user: short"), replace(told("user: short"), id="other")])
    assert len(texts) == LOGS
    assert {len(text) for text in texts} == {QUERY_CHARS}
    assert texts[0].endswith(" end 0")
    assert texts[-1].endswith(f" end {3 * (LOGS - 1)}")


def test_sizes_are_taken_from_small_to_large() -> None:
    assert numbers("1000,100") == [100, 1000]
    assert numbers("") == []
