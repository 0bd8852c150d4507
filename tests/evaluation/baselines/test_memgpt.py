from palimpsest.evaluation.baselines.memgpt import BATCH_TURNS, MemGpt

from tests.evaluation.baselines.asking import asking
from tests.evaluation.told import told
from tests.remembered import WordEmbedder

TALK = told(*[line for at in range(7) for line in (f"user: what of {at}?", "assistant: " + f"{at} is fine. " * 100)])


def scripted(prompt: str) -> str:
    if "search queries" in prompt:
        return "1. ferry departure\n2. lighthouse keeper\n3. harbour master\n4. one too many"
    return "- the lighthouse keeper is Orsolya" if "what of 0?" in prompt else "* the soup was cold\n\n* ferry at nine"


async def test_facts_are_extracted_five_turns_at_a_time_and_the_best_of_three_queries_counts() -> None:
    async with asking(scripted) as (model, sent), MemGpt(WordEmbedder(), model).opened(TALK) as reader:
        assert len(sent) == 2
        assert "4 is fine" in sent[0]["messages"][0]["content"], f"{BATCH_TURNS} turns at a time"
        assert len(sent[1]["messages"][0]["content"]) < 2 * 600 + 500, "500 characters of each message"
        pack = await reader.pack("What is needed?", 6000)
        assert len(sent) == 3
        assert pack.text.splitlines()[:2] == ["the lighthouse keeper is Orsolya", "ferry at nine"]
        assert set((await reader.pack("What is needed?", 6000, dropped=10)).ranked) == set(range(10))
