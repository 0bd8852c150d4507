import pytest
from palimpsest.evaluation.assistant import BenchAssistant
from palimpsest.evaluation.baselines.summary import MIN_ENTRY_TOKENS
from palimpsest.evaluation.writing import chunks, token_count, writers

from tests.evaluation.baselines.asking import asking
from tests.evaluation.told import told
from tests.remembered import WordEmbedder

LINE = "{}: In spring {} the ferry was painted anew. It shone. Everybody came."
TALK = told(*[LINE.format(("user", "assistant")[at % 2], 1900 + at) for at in range(120)])


RULES = ["epc by rule", "lightmem3 by rule", "lightmem-slm by rule"]


@pytest.mark.parametrize("name", ["chunks", "extractive", "memorybank", *RULES])
@pytest.mark.parametrize("tokens", [400, 2000])
async def test_no_writer_keeps_more_than_its_budget(name: str, tokens: int) -> None:
    entries = await writers(WordEmbedder(), None)[name](TALK, tokens)
    assert 0.5 * tokens < sum(token_count(entry.text) for entry in entries) <= tokens + MIN_ENTRY_TOKENS


async def test_chunks_lose_the_oldest_first() -> None:
    kept = "".join(entry.text for entry in await chunks(TALK, 400))
    assert "2019" in kept
    assert "1900" not in kept


async def test_extracts_hold_the_first_sentences_of_all_turns_before_the_second_of_any() -> None:
    (entry,) = [*await writers(WordEmbedder(), None)["extractive"](told(*["user: One. Two."] * 30), 80)]
    assert entry.text.count("One.") > entry.text.count("Two.")
    assert (
        "One. Two."
        not in (await writers(WordEmbedder(), None)["extractive"](told(*["user: One. Two."] * 30), 50))[0].text
    )


async def test_with_a_model_those_that_need_one_write_too() -> None:
    talk = told("user: the ferry leaves at nine", "assistant: noted")

    def answer(prompt: str) -> str:
        if "likely future questions" in prompt:
            return "1. When does it leave?"
        if "[E]" in prompt:
            return "[Q] When?\n[E] The ferry leaves at nine.\n[S] session_0_turn_0"
        return "Denser: ferry at nine." if "Current compressed memory" in prompt else "Ferry at nine."

    async with asking(answer) as (model, sent):
        found = {name: await writer(talk, 500) for name, writer in writers(WordEmbedder(), model).items()}
    assert [*found] == ["random", "chunks", "extractive", "memorybank", *RULES, "summary", "summary-2", "epc"]
    assert "Ferry at nine." in found["summary"][0].text
    assert "Denser: ferry at nine." in found["summary-2"][0].text
    assert found["epc"][0].messages == (0,)
    assert len(sent) == 1 + 1 + 2, "the first pass of both summaries is one prompt"


async def test_the_proxys_writers_ask_a_model_where_there_is_one() -> None:
    talk = told("user: I moved to Lisbon in May 2021.", "assistant: noted")

    def answer(prompt: str) -> str:
        return '{"items": [{"text": "I moved to Lisbon", "messages": [0]}]}' if "one turn" in prompt else "no"

    async with asking(answer) as (model, _):
        assistant = BenchAssistant(model)
        found = writers(WordEmbedder(), model, assistant)
        (entry,) = await found["lightmem-slm by model"](talk, 500)
        (rule,) = await found["epc by model"](talk, 500)
    assert "I moved to Lisbon" in entry.text
    assert entry.messages == (0,)
    assert "May 2021" in rule.text, "where the model fails, rules write"
