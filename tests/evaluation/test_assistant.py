"""The model of a benchmark in a role of memory."""

import pytest
from palimpsest.domain.errors import AssistFault
from palimpsest.domain.ports import Prompt
from palimpsest.evaluation.assistant import BenchAssistant, SilentAssistant

from tests.evaluation.baselines.asking import asking

SCHEMA = {"type": "object", "properties": {"items": {"type": "array"}}, "required": ["items"]}
PROMPT = Prompt("p", "List the colours.", "red, blue", SCHEMA, 50)


async def test_the_model_is_asked_as_the_proxy_asks_and_every_call_is_counted() -> None:
    async with asking(lambda prompt: '{"items": ["red"]}' if "List the colours." in prompt else "?") as (model, sent):
        assistant = BenchAssistant(model)
        for _ in range(2):
            assert await assistant.answer(PROMPT, "bench") == {"items": ["red"]}
    assert len(sent) == 1, "a known answer is not asked for again"
    assert sent[0]["response_format"]["json_schema"]["name"] == "p"
    assert "red, blue" in sent[0]["messages"][1]["content"]
    assert (assistant.spent.calls, assistant.spent.failed) == (2, 0)
    assert assistant.spent.prompt_tokens > assistant.spent.answer_tokens > 0


async def test_an_answer_that_is_none_is_a_fault() -> None:
    async with asking(lambda prompt: "colours are nice") as (model, _):
        assistant = BenchAssistant(model)
        with pytest.raises(AssistFault):
            await assistant.answer(PROMPT, "bench")
    assert assistant.spent.failed == 1


async def test_a_silent_model_keeps_nothing_and_asks_five_questions() -> None:
    silent = SilentAssistant()
    assert await silent.answer(PROMPT, "bench") == {"items": []}
    asked = Prompt("q", "", "", {"properties": {"questions": {}}})
    assert await silent.answer(asked, "bench") == {"questions": ["What?"] * 5}
    assert silent.spent.calls == 2
