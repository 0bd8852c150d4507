"""What was said before several compactions is asked for behind the last one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from palimpsest.evaluation import running
from palimpsest.evaluation.bench_compactions import ITEM, MODEL, SETTINGS, WITH, measure
from palimpsest.evaluation.datasets import Question

from tests.evaluation.told import told

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("forked")]

TALK = replace(
    told(
        "user: The ferry to Brindle leaves at nine in the morning from the old pier.",
        "assistant: Then we should have breakfast early.",
        "user: Which of the two pans is better for eggs, the iron one or the one of steel?",
        "assistant: The iron one, once it is seasoned.",
        "user: My sister Clara plays the violin in the town orchestra.",
        "assistant: Since when does she play?",
    ),
    questions=(
        Question("q1", "When does the ferry to Brindle leave?", "nine in the morning", "time", ("m0",)),
        Question("q2", "Who plays the violin in the orchestra?", "Clara", "person", ("m4",)),
    ),
)


@pytest.mark.usefixtures("model_folder")
async def test_only_what_was_said_before_the_first_compaction_is_asked_about() -> None:
    async with running.opened(MODEL, SETTINGS) as proxy:
        measured = await measure(proxy, TALK, compactions=3)
    assert len(measured.seconds) == len(measured.chars) == 3
    assert measured.found[f"{WITH}, all"] == [1.0]
    assert len(measured.found[f"{ITEM}, all"]) == 1
