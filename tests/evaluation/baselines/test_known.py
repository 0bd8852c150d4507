"""What every baseline must do, whichever it is."""

import json
from collections import defaultdict
from pathlib import Path

import pytest
from palimpsest.evaluation.baselines.known import BASELINES
from palimpsest.evaluation.baselines.lantern import Lantern

from tests.evaluation.told import told
from tests.remembered import WordEmbedder

CONVERSATION = told(
    "user: the lighthouse keeper is called Orsolya",
    "assistant: Orsolya, noted. " + "She rows to the island every morning. " * 10,
    "user: what about the ferry to Brindle?",
    "assistant: the ferry to Brindle leaves at nine",
    "user: and the fog horn?",
    "assistant: the fog horn was sold in 1961",
)


@pytest.mark.parametrize("name", BASELINES)
async def test_a_block_stays_in_its_budget_and_tells_of_messages_that_it_holds(name: str) -> None:
    async with BASELINES[name](WordEmbedder()).opened(CONVERSATION) as reader:
        for budget in (100, 300, 6000):
            pack = await reader.pack("When does the ferry to Brindle leave?", budget)
            assert len(pack.text) <= budget
            assert set(pack.messages) <= set(pack.ranked) <= set(range(6))
            assert bool(pack.messages) == bool(pack.text)
        assert "leaves at nine" in pack.text


@pytest.mark.parametrize("name", BASELINES)
async def test_what_is_still_seen_is_not_told(name: str) -> None:
    async with BASELINES[name](WordEmbedder()).opened(CONVERSATION) as reader:
        pack = await reader.pack("When does the ferry to Brindle leave? And who is Orsolya?", 6000, dropped=2)
        assert set(pack.ranked) <= {0, 1}
        assert "leaves at nine" not in pack.text


@pytest.mark.parametrize("name", BASELINES)
async def test_what_comes_back_was_stored(name: str) -> None:
    async with BASELINES[name](WordEmbedder()).opened(CONVERSATION) as reader:
        assert "leaves at nine" in "\n".join(await reader.stored())


TALK = json.loads((Path(__file__).parents[2] / "everyday" / "english.json").read_text("utf-8"))["sets"]["en"]
FACTS = [
    line
    for at, fact in enumerate(TALK["facts"])
    for line in (
        f"user: {fact['fact']}",
        "assistant: Noted.",
        f"user: {TALK['filler'][at % len(TALK['filler'])]}",
        "assistant: There are several ways to look at it.",
    )
]


@pytest.mark.parametrize("name", [name for name in BASELINES if name not in ("recent", "extractive")])
async def test_no_baseline_that_reads_the_question_is_worse_than_chance(name: str) -> None:
    ahead = []  # share of all messages that come before the one that answers; what does not come is as good as chance
    async with BASELINES[name](WordEmbedder()).opened(told(*FACTS)) as reader:
        for at, fact in enumerate(TALK["facts"]):
            ranked = (await reader.pack(fact["question"], 6000)).ranked
            ahead.append(ranked.index(4 * at) / len(FACTS) if 4 * at in ranked else 0.5)
    assert sum(ahead) / len(ahead) < 0.4


@pytest.mark.parametrize("name", [name for name in BASELINES if name.startswith("lantern")])
async def test_no_list_of_a_baseline_is_worse_than_chance(name: str) -> None:
    ahead = defaultdict[str, list[float]](list)  # share of all entries that a list puts before the one that answers
    reader_of = BASELINES[name](WordEmbedder())
    assert isinstance(reader_of, Lantern)
    async with reader_of.opened(told(*FACTS)) as reader:
        for at, fact in enumerate(TALK["facts"]):
            for listed, values in (await reader.lists(fact["question"])).items():
                own = values[2 * at]
                ahead[listed].append(float((values > own).mean() + (values == own).mean() / 2))
    means = {listed: sum(shares) / len(shares) for listed, shares in ahead.items()}
    assert max(means.values()) < 0.52 and max(means["meaning"], means["words"]) < 0.25, means
