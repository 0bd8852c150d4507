"""CALMem's own experiments."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import pytest
from palimpsest.evaluation.baselines.dense import chunks_of
from palimpsest.evaluation.bench_calmem import FLOORS, KINDS, Five, dense, first_five, means, report
from palimpsest.evaluation.costs import Indexing, Search
from palimpsest.evaluation.datasets import Question
from palimpsest.evaluation.nearest import Nearest

from tests.evaluation.told import told
from tests.remembered import WordEmbedder

QUESTION = Question("1", "Which gate has the ferry to Naxos?", None, "one", ("m1",))
TALK = replace(
    told(
        "user: My favourite ferry is called Naxos Star.",
        "assistant: The ferry to Naxos has gate E2.",
        *(f"user: The weaver sold carpet number {at}." for at in range(8)),
    ),
    questions=(QUESTION,),
)


def test_the_first_five_are_told_as_shares() -> None:
    five = first_five([7, 3, 3, 9], {3, 4})
    assert five == Five(precision=0.5, recall=0.5, reciprocal_rank=0.5, returned=4, bound=0.4)
    assert first_five([], {3}) == Five(None, 0.0, 0.0, 0, 0.2)


def test_precision_is_told_of_answers_and_recall_of_questions() -> None:
    told_of = means([first_five([3], {3}), first_five([], {3})])
    assert (told_of["p_at_5"], told_of["noise"], told_of["r_at_5"], told_of["silent"]) == (1.0, 0.0, 0.5, 0.5)
    assert means([first_five([], {3})])["noise"] is None


async def test_a_higher_floor_lets_less_through_and_kinds_are_kept_apart() -> None:
    by_floor, by_kind = await dense(await Nearest.of(chunks_of(TALK), WordEmbedder()), TALK, QUESTION)
    returned = [by_floor[floor].returned for floor in FLOORS]
    assert returned == sorted(returned, reverse=True)
    assert by_kind["episodic"].recall == 1.0
    assert by_kind["semantic"].recall == 0.0, "what is called something stands in the semantic passage"
    assert by_kind["both"].returned >= by_kind["episodic"].returned


def test_ratios_of_time_are_told_beside_the_bound_of_precision() -> None:
    five = first_five([3], {3})
    told_of = report(
        Namespace(data=[Path("own")]),
        {"palimpsest": [five]},
        {floor: [five] for floor in FLOORS},
        {name: [five] for name in KINDS},
        [Search(5000, 12.0, 4.0)],
        [Indexing(200, 1.0, 0.1, 3.0, 1.0)],
    )
    assert told_of.tables[3].rows == [(5000, "12.0", "4.0", "3.0")]
    assert told_of.data["systems"]["palimpsest"]["p_at_5_bound"] == pytest.approx(0.2)
