"""Each request finds the upstream that is for its model and for its client's API."""

from __future__ import annotations

import pytest
from palimpsest.domain import Api
from palimpsest.settings.policy import Policy, UpstreamPolicy
from palimpsest.upstream.passthrough import _url
from palimpsest.upstream.routing import at_login, choose, needs_model, taking


def policy(url: str, **fields: object) -> UpstreamPolicy:
    return UpstreamPolicy.model_validate({"url": url, **fields})


def test_the_first_upstream_with_a_pattern_that_matches_is_chosen() -> None:
    gpt, rest = policy("http://a", models=["gpt-*", "o?"]), policy("http://b", models=["*"])
    assert choose([gpt, rest], "gpt-4o") is gpt
    assert choose([gpt, rest], "o3") is gpt
    assert choose([gpt, rest], "GPT-4o") is rest


def test_a_model_that_nobody_serves_goes_nowhere_and_an_unnamed_one_to_the_first() -> None:
    gpt, local = policy("http://a", models=["gpt-*"]), policy("http://b", models=["local"])
    assert choose([gpt, local], "claude") is None
    assert choose([gpt, local], "") is gpt


def test_a_request_without_a_model_goes_to_no_litellm_model_unless_there_is_nobody_else() -> None:
    claude, rest = policy("", litellm="anthropic/*", models=["claude-*"]), policy("http://b")
    assert choose([claude, rest], "") is rest
    assert choose([claude, rest], "claude-x") is claude
    assert choose([claude], "") is claude


def test_each_api_goes_to_its_own_upstream_and_any_serves_both() -> None:
    openai, anthropic = Policy().upstreams
    assert choose([openai, anthropic], "") is openai
    assert choose([openai, anthropic], "", Api.ANTHROPIC) is anthropic
    assert choose([openai, anthropic], "gpt-4o", Api.ANTHROPIC) is anthropic
    assert choose([openai], "", Api.ANTHROPIC) is None
    gateway = policy("http://a")
    assert choose([gateway], "m") is choose([gateway], "m", Api.ANTHROPIC) is gateway


def test_the_model_is_read_only_where_it_decides() -> None:
    assert not needs_model(Policy().upstreams)
    assert not needs_model([policy("http://a")])
    assert needs_model([policy("http://a", models=["gpt-*"])])
    assert needs_model([*Policy().upstreams, policy("http://a")])


def test_a_chatgpt_login_is_taken_by_openai_and_by_whoever_is_told_to_take_it() -> None:
    openai, anthropic = Policy().upstreams
    told = policy("http://a/v1", logins={"chatgpt-account-id": "http://b"})
    others = [policy("http://a/v1"), policy("https://api.openai.com.evil.example/v1"), anthropic]
    assert taking([*others, openai, told], "chatgpt-account-id") == [openai, told]
    held = policy("http://a", auth="held")  # it is shown a key of the proxy's
    assert taking([held], "chatgpt-account-id") == [held]


@pytest.mark.parametrize(
    ("url", "target", "goes"),
    [
        ("https://c/backend-api/codex", "/v1/responses", "https://c/backend-api/codex/responses"),
        (
            "https://c/backend-api/codex/",
            "/v1/models?client_version=1",
            "https://c/backend-api/codex/models?client_version=1",
        ),
        ("https://gateway/v1", "/v1/responses/compact", "https://gateway/v1/responses/compact"),
    ],
)
def test_the_url_of_a_login_stands_in_place_of_v1(url: str, target: str, goes: str) -> None:
    whom, below = at_login(policy("http://a/v1", logins={"x": url}), "x", target)
    assert str(_url(whom.url, below, whom.api)) == goes
    assert at_login(policy("http://a/v1"), "", target) == (policy("http://a/v1"), target)
