"""The papers' experiments around writers."""

from argparse import ArgumentParser
from dataclasses import replace

import numpy as np
from palimpsest.core.writing.entries import PAPER
from palimpsest.core.writing.lightmem3 import Buffers
from palimpsest.evaluation import bench_writing
from palimpsest.evaluation.bench_diagnose import answerable
from palimpsest.evaluation.bench_writing import by_buffers, by_epc, cost_of, report, turns_of
from palimpsest.evaluation.datasets import Question
from palimpsest.evaluation.segmentation import Found

from tests.evaluation.told import told

TALK = replace(
    told(
        *(
            line
            for at in range(30)
            for line in (
                f"user: The keeper of harbour{at} is Orsolya{at}, and she needs {100 + at} litres of paint.",
                "assistant: I will keep that in mind for later, it is good to know.",
            )
        )
    ),
    questions=tuple(
        Question(f"q{at}", f"Who keeps harbour{at}?", f"Orsolya{at}", "x", (f"m{2 * at}",)) for at in range(30)
    ),
)
ASKED = [(TALK, answerable(TALK))]
NEAR = {TALK.id: np.eye(30)}  # no turn is like another


def test_a_larger_budget_keeps_more() -> None:
    few, many = by_epc(ASKED, 200, PAPER), by_epc(ASKED, 2000, PAPER)
    assert few is not None and many is not None
    assert 0 < few < many == 1.0


def test_a_larger_buffer_takes_fewer_calls() -> None:
    small, large = (by_buffers(ASKED, 500, Buffers(short_term_tokens=size), NEAR) for size in (64, 512))
    assert small[0] > large[0] > 0


async def test_calls_are_counted_by_writer() -> None:
    spent = {name: await cost_of([TALK], name, NEAR) for name in ("epc", "lightmem3", "lightmem-slm")}
    assert spent["epc"].calls == 2
    assert spent["lightmem-slm"].calls == len(turns_of(TALK)) == 30
    assert spent["lightmem3"].calls * 10 <= 30
    assert all(one.prompt_tokens > 0 for one in spent.values())


async def test_the_report_has_a_table_for_each_experiment() -> None:
    parser = ArgumentParser()
    bench_writing.add_arguments(parser)
    given = parser.parse_args([])
    given.data = []
    spent = {"epc": await cost_of([TALK], "epc", NEAR)}
    found = report(given, 30, {"as in the paper": 0.5}, {(0.6, 512): (3, 0.7)}, spent, {"words": Found(4, 2, 2, 1)})
    costs, components, buffers, boundaries = found.tables
    assert costs.rows[0] == ["any, by rule", 0, 0, None]
    assert costs.rows[1][:2] == ["epc by model", 67]
    assert components.rows == [["as in the paper", 0.5]]
    assert buffers.rows == [["0.6", 512, 100, 0.7]]
    assert boundaries.rows[0][1:3] == [0.5, 0.5]
    assert found.data["costs"]["epc"]["calls"] == 2


def test_without_questions_nothing_is_scored() -> None:
    assert by_epc([(TALK, [])], 500, PAPER) is None
