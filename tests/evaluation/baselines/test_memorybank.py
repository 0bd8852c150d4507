from palimpsest.evaluation.baselines.memorybank import MemoryBank

from tests.evaluation.told import told
from tests.remembered import WordEmbedder

WEEK_SECONDS = 7 * 86_400.0


async def test_of_two_that_are_as_close_the_newer_comes_first() -> None:
    conversation = told("assistant: we ate soup", "assistant: we ate soup", apart_seconds=WEEK_SECONDS)
    async with MemoryBank(WordEmbedder()).opened(conversation) as reader:
        assert (await reader.pack("soup", 6000)).ranked == (1, 0)


async def test_what_names_more_is_forgotten_later() -> None:
    named = "assistant: we ate soup, src/a.py src/b.py src/c.py src/d.py"
    conversation = told(named, "assistant: we ate soup soup", "assistant: bye", apart_seconds=WEEK_SECONDS)
    async with MemoryBank(WordEmbedder()).opened(conversation) as reader:
        weights = reader._weights
    assert weights[0] < weights[2] == 1.0
    plain = told("assistant: we ate soup", "assistant: bye", "assistant: bye", apart_seconds=WEEK_SECONDS)
    async with MemoryBank(WordEmbedder()).opened(plain) as reader:
        assert reader._weights[0] < weights[0]
