from argparse import ArgumentParser, Namespace
from pathlib import Path

import pytest
from palimpsest.domain.errors import MemoryFault, UpstreamUnreachable
from palimpsest.evaluation import model as models
from palimpsest.evaluation.scripted import Reply, ScriptedUpstream


def given(*arguments: str) -> Namespace:
    parser = ArgumentParser()
    models.add_arguments(parser)
    return parser.parse_args(arguments)


async def test_without_a_name_there_is_no_model() -> None:
    async with models.opened(given()) as model:
        assert model is None


async def test_a_prompt_is_one_chat_completion_and_is_asked_once() -> None:
    async with (
        ScriptedUpstream(lambda _: "Orsolya") as upstream,
        models.opened(given("--model", "m-1", "--upstream", upstream.url), {"OPENAI_API_KEY": "sk-own"}) as model,
    ):
        assert model is not None
        assert [await model.complete("Who?", 7), await model.complete("Who?", 7)] == ["Orsolya", "Orsolya"]
        (request,) = upstream.received
    assert request.path == "/v1/chat/completions"
    assert {name.lower(): value for name, value in request.headers.items()}["authorization"] == "Bearer sk-own"
    assert request.json == {
        "model": "m-1",
        "messages": [{"role": "user", "content": "Who?"}],
        "temperature": 0,
        "max_tokens": 7,
    }


async def test_without_a_key_none_is_sent() -> None:
    async with (
        ScriptedUpstream(lambda _: "x") as upstream,
        models.opened(given("--model", "m", "--upstream", upstream.url), {}) as model,
    ):
        assert model is not None
        await model.complete("x")
        assert "authorization" not in {name.lower() for name in upstream.received[0].headers}


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply(status=401, body=b"{}"), "status 401; check the name and OPENAI_API_KEY"),
        (Reply(body=b"<html>"), "not a chat completion; check --upstream"),
    ],
)
async def test_what_is_no_answer_says_what_to_check(reply: Reply, words: str) -> None:
    async with (
        ScriptedUpstream(lambda _: reply) as upstream,
        models.opened(given("--model", "m", "--upstream", upstream.url), {}) as model,
    ):
        assert model is not None
        with pytest.raises(UpstreamUnreachable, match=words):
            await model.complete("x")


async def test_answers_that_are_kept_are_not_asked_again(tmp_path: Path) -> None:
    async with ScriptedUpstream(lambda _: "Orsolya") as upstream:
        for name in ("m", "m", "other"):
            asked = given("--model", name, "--upstream", upstream.url)
            async with models.opened(asked, {}, tmp_path / "cache" / "answers.db") as model:
                assert model is not None and await model.complete("Who?") == "Orsolya"
        assert [request.model for request in upstream.received] == ["m", "other"]


async def test_a_file_that_keeps_no_answers_is_named(tmp_path: Path) -> None:
    (tmp_path / "answers.db").write_text("no database, and longer than the head of one")
    with pytest.raises(MemoryFault, match=r"answers\.db; it may be deleted"):
        async with models.opened(given("--model", "m"), {}, tmp_path / "answers.db"):
            pass


async def test_a_connection_that_closes_at_once_is_tried_again() -> None:
    replies = iter([Reply("x", cut_after=0), "Orsolya"])
    async with (
        ScriptedUpstream(lambda _: next(replies)) as upstream,
        models.opened(given("--model", "m", "--upstream", upstream.url), {}) as model,
    ):
        assert model is not None and await model.complete("Who?") == "Orsolya"
