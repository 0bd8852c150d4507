from palimpsest.evaluation.baselines.lantern import Lantern, LanternWithChunks

from tests.evaluation.told import told
from tests.remembered import WordEmbedder

FILLER = [line for at in range(20) for line in (f"user: topic {at} please", f"assistant: here is topic {at}")]


async def test_what_several_lists_agree_on_comes_first() -> None:
    conversation = told(*FILLER[:20], "user: which port?", "assistant: `collect_metrics` listens on 9102", *FILLER[20:])
    async with Lantern(WordEmbedder()).opened(conversation) as reader:
        pack = await reader.pack("On which port does collect_metrics listen?", 6000)
    assert pack.ranked[:2] == (20, 21)


async def test_what_lies_behind_the_summary_comes_only_with_chunks() -> None:
    told_late = "assistant: " + "It is a long story. " * 80 + "The password hint is marmalade."
    conversation = told("user: tell me", told_late, *FILLER)
    question = "What is the password hint?"
    async with Lantern(WordEmbedder()).opened(conversation) as reader:
        assert "marmalade" not in "\n".join(await reader.stored())
        assert "marmalade" not in (await reader.pack(question, 6000)).text
    async with LanternWithChunks(WordEmbedder()).opened(conversation) as reader:
        assert "marmalade" in (await reader.pack(question, 6000)).text


async def test_words_that_full_text_search_would_obey_are_only_words() -> None:
    async with Lantern(WordEmbedder()).opened(told("user: quote", "assistant: unquote")) as reader:
        assert (await reader.pack('NEAR( "quote" OR ) AND * -x:', 6000)).messages == (0, 1)
