"""What a client may be told about the proxy's address depends on all upstreams that its requests may reach."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from palimpsest.commands.wrap import first_party_variables
from palimpsest.domain import Json
from palimpsest.settings.load import read_yaml, shipped
from palimpsest.settings.policy import Policy

FLAG, IDLE, SEARCH = "_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL", "CLAUDE_STREAM_IDLE_TIMEOUT_MS", "ENABLE_TOOL_SEARCH"
ANTHROPIC: Json = {"name": "anthropic", "url": "https://api.anthropic.com", "wire": "anthropic"}


def variables_for(*upstreams: Json, environment: Mapping[str, str] | None = None) -> dict[str, str]:
    policy = Policy.model_validate({"upstreams": upstreams}) if upstreams else Policy()
    return first_party_variables(read_yaml(shipped("wrap.yaml"))["first_party"], policy.upstreams, environment or {})


def test_the_default_upstreams_are_the_providers_own() -> None:
    assert variables_for() == {FLAG: "1", IDLE: "300000"}


@pytest.mark.parametrize(
    "url",
    [
        "https://gateway.example.com",
        "https://api.anthropic.com.example.com",
        "https://example.com/api.anthropic.com",
        "https://eu.api.anthropic.com",
    ],
)
def test_only_the_very_host_of_the_provider_is_the_provider(url: str) -> None:
    assert variables_for(ANTHROPIC | {"url": url}) == {SEARCH: "true"}


def test_one_upstream_elsewhere_for_some_models_is_enough_to_say_nothing_of_the_provider() -> None:
    elsewhere = {"name": "other", "url": "https://gateway.example.com", "wire": "any", "models": ["x-*"]}
    assert variables_for(elsewhere, ANTHROPIC) == {SEARCH: "true"}


def test_an_upstream_of_another_api_does_not_count() -> None:
    assert FLAG in variables_for({"name": "other", "url": "https://example.com", "wire": "openai"}, ANTHROPIC)
    assert variables_for({"name": "other", "url": "https://example.com", "wire": "openai"}) == {}


def test_where_requests_are_translated_nothing_is_asked_for_that_only_the_provider_knows() -> None:
    assert variables_for({"name": "other", "litellm": "bedrock/claude", "wire": "anthropic"}) == {}


@pytest.mark.parametrize("own", ["0", "false", ""])
def test_a_value_of_the_users_stays_whatever_it_is(own: str) -> None:
    assert variables_for(environment={FLAG: own}) == {IDLE: "300000"}
    assert variables_for(environment={FLAG: own, IDLE: own}) == {}
