"""Each request finds the upstream that is for its model and for its client's API."""

from __future__ import annotations

from palimpsest.settings.policy import Policy, UpstreamPolicy
from palimpsest.upstream.routing import choose, needs_model


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
    assert choose([openai, anthropic], "", is_anthropic=True) is anthropic
    assert choose([openai, anthropic], "gpt-4o", is_anthropic=True) is anthropic
    assert choose([openai], "", is_anthropic=True) is None
    gateway = policy("http://a")
    assert choose([gateway], "m") is choose([gateway], "m", is_anthropic=True) is gateway


def test_the_model_is_read_only_where_it_decides() -> None:
    assert not needs_model(Policy().upstreams)
    assert not needs_model([policy("http://a")])
    assert needs_model([policy("http://a", models=["gpt-*"])])
    assert needs_model([*Policy().upstreams, policy("http://a")])
