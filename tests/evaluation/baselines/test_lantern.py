from palimpsest.core.archive.chunking import ASKS, TELLS, WISHES, tags
from palimpsest.evaluation.baselines.lantern import Lantern, LanternWithChunks, RerankedLantern, UnweightedLantern
from palimpsest.evaluation.turns import hints

from tests.evaluation.baselines.asking import asking
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


async def test_without_weights_what_was_said_last_does_not_come_before_what_was_asked_for() -> None:
    old = told(
        *FILLER[:2],
        "user: which port?",
        "assistant: the collector listens on 9102",
        *FILLER[2:],
        apart_seconds=86_400.0,
    )
    question = "On which port does the collector listen?"
    async with Lantern(WordEmbedder()).opened(old) as reader:
        assert set(await reader.lists(question)) == {"meaning", "words", "hints", "importance"}
        dated = (await reader.pack(question, 6000)).ranked
    async with UnweightedLantern(WordEmbedder()).opened(old) as reader:
        assert set(await reader.lists(question)) == {"meaning", "words", "hints"}
        assert (await reader.pack(question, 6000)).ranked.index(3) <= dated.index(3)


async def test_a_model_orders_the_first_candidates_in_one_call() -> None:
    talk = told(*FILLER)
    async with Lantern(WordEmbedder()).opened(talk) as reader:
        usual = (await reader.pack("topic 7", 6000)).ranked
    async with (
        asking(lambda _: "3, 1, 99, 3") as (model, sent),
        RerankedLantern(WordEmbedder(), model).opened(talk) as reader,
    ):
        ranked = (await reader.pack("topic 7", 6000)).ranked
    assert len(sent) == 1 and "[20] " in sent[0]["messages"][0]["content"]
    assert ranked[:6] == (*usual[4:6], *usual[0:2], *usual[2:4]), "those that it leaves out come behind"
    assert ranked[6:] == usual[6:]


def test_our_own_judgements_of_a_text_are_no_hints() -> None:
    text = "Please always answer in German from now on. Which port does src/app.py use?"
    assert {ASKS, WISHES} & set(tags(text)) or any(tag.startswith(TELLS) for tag in tags(text))
    assert hints(text) == {"src/app.py"}
