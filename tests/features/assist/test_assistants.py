"""The models of a policy."""

from __future__ import annotations

import asyncio
import sys
from typing import get_args

import pytest
from palimpsest.domain import AssistRole
from palimpsest.domain.errors import AssistFault
from palimpsest.evaluation.scripted import Reply, ScriptedUpstream
from palimpsest.settings.load import validated
from palimpsest.store.engine.sqlite.database import Database

from tests.features.assist.helping import BLUE, PROMPT, TENANT, AssistTally, assistants_of, policy_of


async def test_without_a_model_there_is_no_assistant_in_any_role(database: Database) -> None:
    async with assistants_of(validated({}), database) as assistants:
        assert {assistants.of(role) for role in get_args(AssistRole)} == {None}
        assert assistants.trouble == ""
    assert await database.read("SELECT * FROM assist_usage") == []


@pytest.mark.slow
async def test_a_litellm_model_is_asked_by_litellm(database: Database) -> None:
    counts = AssistTally()
    async with ScriptedUpstream() as upstream:
        upstream.play(Reply(BLUE, prompt_tokens=100))
        model = {"model": "openai/gpt-4o-mini", "url": upstream.url, "key_env": "WRITER_KEY"}
        policy = validated({"models": {"writer": model}})
        async with assistants_of(policy, database, counts, environment={"WRITER_KEY": "sk-writer"}) as assistants:
            writer = assistants.of("writer")
            assert writer is not None and assistants.of("selector") is None
            assert await writer.answer(PROMPT, TENANT) == {"colour": "blue"}
        (got,) = upstream.received
    headers = {name.lower(): value for name, value in got.headers.items()}
    assert (headers["authorization"], headers["x-palimpsest-memory"]) == ("Bearer sk-writer", "off")
    assert got.json["model"] == "gpt-4o-mini" and got.json["response_format"]["type"] == "json_schema"
    assert counts.dollars > 0  # by LiteLLM's own table
    assert "litellm" in sys.modules


async def test_what_asking_takes_is_loaded_ahead_or_by_the_first_call(database: Database) -> None:
    async with ScriptedUpstream(lambda body: BLUE) as upstream:
        for is_ahead in (True, False):
            async with assistants_of(policy_of(upstream.url), database) as assistants:
                if is_ahead:
                    await asyncio.gather(assistants.open(), assistants.open())
                writer = assistants.of("writer")
                assert writer is not None
                both = await asyncio.gather(*(writer.answer(PROMPT, TENANT) for _ in range(2)))
                assert both == [{"colour": "blue"}] * 2


async def test_another_policy_replaces_the_models_and_disturbs_no_call(database: Database) -> None:
    async with ScriptedUpstream() as first, ScriptedUpstream() as second:
        first.play(Reply(BLUE, wait_seconds=0.3))
        second.script = lambda body: '{"colour": "red"}'
        async with assistants_of(policy_of(first.url), database) as assistants:
            before = assistants.of("writer")
            assert before is not None
            calling = asyncio.create_task(before.answer(PROMPT, TENANT))
            while not first.received:  # noqa: ASYNC110  # the upstream tells nobody what it received
                await asyncio.sleep(0.01)
            await assistants.apply(policy_of(second.url))
            after = assistants.of("writer")
            assert after is not None and after is not before
            assert await after.answer(PROMPT, TENANT) == {"colour": "red"}
            assert await calling == {"colour": "blue"}
            await assistants.apply(policy_of(second.url))
            assert assistants.of("writer") is after
            await assistants.apply(validated({}))
            assert assistants.of("writer") is None


async def test_a_cap_that_is_reached_is_a_trouble_that_names_it(database: Database) -> None:
    async with (
        ScriptedUpstream() as upstream,
        assistants_of(policy_of(upstream.url, tokens_a_day=1), database) as assistants,
    ):
        writer = assistants.of("writer")
        assert writer is not None
        with pytest.raises(AssistFault) as caught:
            await writer.answer(PROMPT, TENANT)
        assert str(caught.value) == assistants.trouble
        assert "models.writer: tokens_a_day (1)" in assistants.trouble
        assert upstream.received == []
