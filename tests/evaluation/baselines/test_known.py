"""What every baseline must do, whichever it is."""

import pytest
from palimpsest.evaluation.baselines.known import BASELINES

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
