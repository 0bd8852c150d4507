"""An upstream that is not there, refuses the credential or lives in another hour is found before a request is."""

from __future__ import annotations

import time
from collections.abc import Mapping
from email.utils import formatdate

import orjson
import pytest
from palimpsest.commands.doctor.finding import Finding, State
from palimpsest.commands.doctor.providers import check_upstreams
from palimpsest.domain import Json
from palimpsest.settings.policy import Policy, UpstreamPolicy

from tests.running import free_port
from tests.wirelevel import Headers, HttpMessage, Line, RawUpstream, answer

LIST = b'{"object":"list","data":[{"id":"a"},{"id":"b"}]}'
KEY = {"OPENAI_API_KEY": "sk-secret"}


class Provider:
    """Answers the question for its models; says what time it is, so many seconds late."""

    def __init__(self, status: bytes, body: bytes = b"{}", late_seconds: float = 0.0) -> None:
        self.status, self.body, self.late_seconds = status, body, late_seconds
        self.keys: set[bytes] = set()  # without any, everybody is answered

    async def __call__(self, request: HttpMessage, line: Line) -> None:
        headers: Headers = [(b"Date", formatdate(time.time() - self.late_seconds, usegmt=True).encode())]
        shown = {*request.values(b"authorization"), *request.values(b"x-api-key")}
        if self.keys and not self.keys & shown:
            await line.send(answer(b'{"error":"no such key sk-secret"}', b"401 Unauthorized", headers))
        else:
            await line.send(answer(self.body, self.status, headers))


async def asked(
    provider: Provider, environment: Mapping[str, str] = KEY, **fields: object
) -> tuple[Finding, Finding, list[HttpMessage]]:
    """What is found of the upstream and of the clock, and what reached the upstream."""
    async with RawUpstream(provider) as upstream:
        policy = UpstreamPolicy.model_validate({"url": upstream.url, **fields})
        found, clock = await check_upstreams(Policy(upstreams=(policy,)), environment, time.time)
        return found, clock, upstream.requests


async def test_a_key_that_is_accepted_is_told_and_not_shown() -> None:
    provider = Provider(b"200 OK", LIST)
    provider.keys = {b"Bearer sk-secret"}
    found, clock, requests = await asked(provider)
    assert found.state is State.OK
    assert found.found.endswith("answers /v1/models with 2 models, and takes OPENAI_API_KEY")
    assert clock.state is State.OK
    assert [request.first for request in requests] == [b"GET /v1/models HTTP/1.1"] * 2


@pytest.mark.parametrize(
    ("listed", "fields", "warns"),
    [
        ([{"id": "qwen3:8b"}, {"id": "gpt-4o"}], {"overflow": "trim"}, True),
        ([{"id": "qwen3:8b"}], {}, False),
        ([{"id": "dall-e-3"}, {"id": "openai/whisper-1"}, {"id": "tts-1"}], {"overflow": "trim"}, False),
        ([{"id": "qwen3:8b", "max_model_len": 8192}, {"id": "gpt-4o"}], {"overflow": "trim"}, False),
        ([{"id": "qwen3:8b"}], {"overflow": "trim", "pressure": {"window_tokens": {"qwen3*": 8192}}}, False),
    ],
)
async def test_window_that_trimming_would_have_to_guess_is_warned_of(
    listed: list[Json], fields: Json, warns: bool
) -> None:
    async with RawUpstream(Provider(b"200 OK", orjson.dumps({"object": "list", "data": listed}))) as upstream:
        policy = Policy.model_validate({"upstreams": [{"url": upstream.url}], **fields})
        found = [one for one in await check_upstreams(policy, {}, time.time) if one.check == "overflow"]
    assert len(found) == warns and all(one.state is State.WARNING for one in found)
    assert not warns or ("1 of 2 models" in found[0].found and "(qwen3:8b): 128,000" in found[0].found)


async def test_a_list_that_everybody_may_see_says_nothing_about_a_key() -> None:
    found, _, _ = await asked(Provider(b"200 OK", LIST))
    assert found.state is State.OK and "so none could be tried" in found.found


@pytest.mark.parametrize("environment", [{}, KEY])
async def test_a_refused_key_fails_and_a_missing_one_does_not(environment: Mapping[str, str]) -> None:
    provider = Provider(b"200 OK", LIST)
    provider.keys = {b"Bearer another"}
    found, _, _ = await asked(provider, environment)
    assert found.state is (State.FAILED if environment else State.OK)
    assert "sk-secret" not in str(found)


async def test_anthropic_is_asked_in_its_own_way() -> None:
    provider = Provider(b"200 OK", LIST)
    provider.keys = {b"sk-ant"}
    found, _, requests = await asked(provider, {"ANTHROPIC_API_KEY": "sk-ant"}, wire="anthropic")
    assert found.found.endswith("takes ANTHROPIC_API_KEY")
    assert all(request.values(b"anthropic-version") for request in requests)


async def test_a_held_key_is_the_one_that_is_tried() -> None:
    provider = Provider(b"200 OK", LIST)
    provider.keys = {b"Bearer sk-held"}
    held = {"HELD": "sk-held", **KEY}
    found, _, requests = await asked(provider, held, auth="held", key_env="HELD")
    assert found.found.endswith("takes HELD")
    assert all(b"Bearer sk-secret" not in request.values(b"authorization") for request in requests)
    provider.keys = {b"Bearer another"}
    assert (await asked(provider, held, auth="held", key_env="HELD"))[0].state is State.FAILED


async def test_a_key_that_is_another_providers_is_not_shown() -> None:
    provider = Provider(b"200 OK", LIST)
    provider.keys = {b"Bearer sk-secret"}
    elsewhere = {"OPENAI_BASE_URL": "http://another.example/v1", **KEY}
    found, _, requests = await asked(provider, elsewhere, wire="openai")
    assert found.state is State.OK and "has none for it" in found.found
    assert not any(request.values(b"authorization") for request in requests)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (b"404 Not Found", b"{}"),
        (b"200 OK", b"<html>a page</html>"),
        (b"200 OK", b"[]"),
        (b"301 Moved Permanently", b""),
        (b"429 Too Many Requests", b"{}"),
        (b"503 Service Unavailable", b"{}"),
        (b"599 Odd", b"{}"),
    ],
)
async def test_what_is_no_list_is_worth_a_look(status: bytes, body: bytes) -> None:
    found, _, _ = await asked(Provider(status, body))
    assert (found.state, bool(found.advice)) == (State.WARNING, True)


@pytest.mark.parametrize("status", [b"405 Method Not Allowed", b"501 Not Implemented"])
async def test_a_provider_that_lists_no_models_is_fine(status: bytes) -> None:
    found, _, _ = await asked(Provider(status, b"{}"))
    assert found.state is State.OK and "lists no models" in found.found


async def test_an_upstream_that_is_not_there_fails_and_the_others_are_asked() -> None:
    async with RawUpstream(Provider(b"200 OK", LIST)) as upstream:
        gone = UpstreamPolicy(name="gone", models=("gone-*",), url=f"http://127.0.0.1:{free_port()}")
        there = UpstreamPolicy(name="there", url=upstream.url)
        first, second, clock = await check_upstreams(Policy(upstreams=(gone, there)), {}, time.time)
    assert (first.check, first.state) == ("upstream gone", State.FAILED)
    assert first.found == f"{gone.url}: it refused the connection"
    assert (second.state, clock.state) == (State.OK, State.OK)


@pytest.mark.parametrize(
    ("late_seconds", "state", "words"),
    [(120, State.WARNING, "s ahead of"), (-7200, State.FAILED, "s behind"), (0, State.OK, "agrees")],
)
async def test_a_clock_that_is_wrong_is_told(late_seconds: float, state: State, words: str) -> None:
    async with RawUpstream(Provider(b"200 OK", LIST)) as upstream:
        started = time.time()
        policy = Policy(upstreams=(UpstreamPolicy(url=upstream.url),))
        _, clock = await check_upstreams(policy, {}, lambda: started + late_seconds)
    assert clock.state is state
    assert words in clock.found


async def test_without_a_date_the_clock_is_not_compared() -> None:
    async with RawUpstream() as upstream:
        _, clock = await check_upstreams(Policy(upstreams=(UpstreamPolicy(url=upstream.url),)), {}, time.time)
    assert clock.state is State.WARNING


async def test_a_litellm_model_is_not_asked_as_that_would_cost() -> None:
    policy = Policy.model_validate({"upstreams": [{"litellm": "gemini/x", "key_env": "GEMINI_KEY"}]})
    found, _ = await check_upstreams(policy, {"GEMINI_KEY": "sk-secret"}, time.time)
    assert found.state is State.OK and "with GEMINI_KEY" in found.found and "sk-secret" not in str(found)


@pytest.mark.parametrize(
    ("first", "second", "warned"),
    [
        ({}, {}, True),
        ({"models": ["gpt-*"]}, {"models": ["gpt-4o"]}, True),
        ({"models": ["gpt-4o"]}, {"models": ["gpt-*"]}, False),
        ({"wire": "openai"}, {"wire": "anthropic"}, False),
        ({"wire": "anthropic"}, {}, False),
    ],
)
async def test_an_upstream_whose_models_all_go_to_another_is_told(first: Json, second: Json, warned: bool) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}"
    both = [{"name": "a", "url": nowhere, **first}, {"name": "b", "url": nowhere, **second}]
    upstreams = tuple(map(UpstreamPolicy.model_validate, both))
    found = await check_upstreams(Policy(upstreams=upstreams), {}, time.time)
    assert [one.check for one in found if "gets no request" in one.found] == ["upstream b"] * warned
