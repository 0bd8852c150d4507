"""Errors are injected as they are described, and recall without any is as it was."""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from palimpsest.evaluation.bench_inject import FLOOD_TIMES, GROUPS, Group, Outcome, ask, damaged, report, run
from palimpsest.evaluation.datasets import Conversation, DatasetError, Question
from palimpsest.evaluation.score import Evidence

from tests.evaluation.told import told
from tests.remembered import WordEmbedder

FERRY = replace(
    told("user: The ferry to Brindle leaves at nine.", "assistant: Early enough.", "user: Tea is at the harbour."),
    id="ferry",
    questions=(Question("q1", "When does the ferry to Brindle leave?", None, "c", ("m0",)),),
)
OTHERS = [
    replace(
        told("user: Clara plays the violin.", "assistant: She plays the cello, too."),
        id="violin",
        questions=(Question("q2", "Which planets have rings?", None, "c", ("m0",)),),
    )
]
NAMED = {group.name: group for group in GROUPS}
AS_IT_IS = NAMED["as it is"]
PLAIN, LOST = Evidence(True, True, 1.0), Evidence(False, False, 0.0)


def hurt(group: Group, seed: int = 1) -> Conversation:
    return damaged(FERRY, group, OTHERS, (), Random(seed))


def test_junk_stands_beside_in_place_of_or_behind_what_was_said() -> None:
    own = [said.id for said in FERRY.messages]
    beside, instead = (
        hurt(NAMED["half of what is stored is junk"]),
        hurt(NAMED["half of what was said is lost to junk"]),
    )
    flood = hurt(NAMED["flood of recent junk"])
    assert [said.id for said in beside.messages if said.id in own] == own
    assert len(beside.messages) == 2 * len(own)
    assert len(instead.messages) == len(own)
    assert sum(said.id in own for said in instead.messages) == len(own) - len(own) // 2
    assert [said.id for said in flood.messages[: len(own)]] == own
    assert len(flood.messages) == (1 + FLOOD_TIMES) * len(own)
    assert {said.text for said in flood.messages[len(own) :]} <= {said.text for said in OTHERS[0].messages}
    assert hurt(AS_IT_IS) == FERRY


def test_the_seed_decides_what_is_junk() -> None:
    group = NAMED["half of what is stored is junk"]
    assert hurt(group) == hurt(group)
    assert any(hurt(group, 1) != hurt(group, seed) for seed in range(2, 6))


def test_chatter_floods_where_there_is_some() -> None:
    chatter = told("user: Lovely weather.").messages
    flood = damaged(FERRY, NAMED["flood of recent junk"], OTHERS, chatter, Random(1))
    assert {said.text for said in flood.messages[3:]} == {"Lovely weather."}


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name.replace(" ", "-"))
async def test_every_group_asks_all_questions(group: Group) -> None:
    (outcome,) = await ask(WordEmbedder(), hurt(group), FERRY, group, OTHERS, Random(1))
    assert outcome.category == "c" and outcome.evidence is not None
    assert (0 < outcome.tokens < 200) is (outcome.evidence.any or outcome.tokens > 0)
    if group is AS_IT_IS:
        assert outcome.evidence == PLAIN and outcome.helps > outcome.helps_stranger


def test_a_fall_is_told_in_points_paired_by_question() -> None:
    well, badly = Outcome("c", PLAIN, 10, 0.9, 0.1), Outcome("c", LOST, 30, 0.1, 0.9)
    found = {GROUPS[0]: [well, well], GROUPS[1]: [well, badly]}
    groups = json.loads(report(["x"], found, 42).to_json())["groups"]
    assert groups["as it is"]["difference"]["difference"] == 0
    fallen = groups[GROUPS[1].name]
    assert (fallen["all"], fallen["difference"]["difference"], fallen["tokens"]) == (0.5, -0.5, 20)
    assert (fallen["speaks"], fallen["silent"], fallen["by_category"]["c"]["n"]) == (0.5, 0.5, 2)


async def test_junk_and_strangers_take_three_conversations(tmp_path: Path) -> None:
    line = {"id": "c", "sessions": [{"messages": [{"id": "m", "role": "user", "content": "hello"}]}], "questions": []}
    file = tmp_path / "two.jsonl"
    file.write_text("\n".join(json.dumps(line) for _ in range(2)))
    with pytest.raises(DatasetError, match="three conversations"):
        await run(Namespace(data=[file], noise=[], limit=0, seed=42))
