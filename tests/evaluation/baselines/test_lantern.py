import json
from collections import defaultdict
from pathlib import Path

from palimpsest.core.archive.chunking import ASKS, TELLS, WISHES, tags
from palimpsest.evaluation.baselines.lantern import Lantern, LanternWithChunks
from palimpsest.evaluation.turns import hints

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


async def test_no_list_that_reads_the_question_is_worse_than_chance() -> None:
    talk = json.loads((Path(__file__).parents[2] / "everyday" / "english.json").read_text("utf-8"))["sets"]["en"]
    filler = talk["filler"]
    lines = []
    for at, fact in enumerate(talk["facts"]):
        lines += [f"user: {fact['fact']}", "assistant: Noted."]
        lines += [f"user: {filler[at % len(filler)]}", "assistant: There are several ways to look at it."]
    ahead = defaultdict[str, list[float]](list)  # share of all entries that a list puts before the one that answers
    async with Lantern(WordEmbedder()).opened(told(*lines)) as reader:
        for at, fact in enumerate(talk["facts"]):
            for name, values in (await reader.lists(fact["question"])).items():
                ahead[name].append(float((values > values[2 * at]).mean()))
    assert sum(ahead["meaning"]) / len(ahead["meaning"]) < 0.25
    assert sum(ahead["words"]) / len(ahead["words"]) < 0.25
    assert sum(ahead["hints"]) / len(ahead["hints"]) < 0.5


def test_our_own_judgements_of_a_text_are_no_hints() -> None:
    text = "Please always answer in German from now on. Which port does src/app.py use?"
    assert {ASKS, WISHES} & set(tags(text)) or any(tag.startswith(TELLS) for tag in tags(text))
    assert hints(text) == {"src/app.py"}
