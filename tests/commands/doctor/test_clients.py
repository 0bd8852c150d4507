"""Settings of a client that do not fit the proxy's upstreams are named, with what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest
from palimpsest.commands.doctor import clients
from palimpsest.commands.doctor.finding import Finding, State
from palimpsest.settings.policy import Policy

from tests.clients.recipes import ADDRESS, recipe

ELSEWHERE = {"upstreams": [{"name": "local", "url": "http://127.0.0.1:11434/v1"}]}


def found(home: Path, config: str, policy: Policy, login: str = "{}") -> list[Finding]:
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(config)
    (home / "auth.json").write_text(login)
    return clients.codex(policy, {"CODEX_HOME": str(home)})


@pytest.mark.parametrize("config", ["", "model_provider = 3", "no toml", "[model_providers]\nx = 1"])
def test_codex_that_is_not_set_up_for_this_proxy_is_no_matter(tmp_path: Path, config: str) -> None:
    assert found(tmp_path, config, Policy()) == []
    assert clients.codex(Policy(), {"CODEX_HOME": str(tmp_path / "nowhere")}) == []
    assert found(tmp_path, recipe("Codex", "toml", "http://127.0.0.1:1/v1"), Policy()) == []


def test_the_name_openai_is_for_openai(tmp_path: Path) -> None:
    own = recipe("Codex", "toml", ADDRESS)
    openai = own.replace('"Palimpsest"', '"OpenAI"')
    assert [one.state for one in found(tmp_path, own, Policy.model_validate(ELSEWHERE))] == [State.OK]
    assert [one.state for one in found(tmp_path, openai, Policy())] == [State.OK]
    (warning,) = found(tmp_path, openai, Policy.model_validate(ELSEWHERE))
    assert warning.state is State.WARNING and "upstream local" in warning.found
    assert 'name = "Palimpsest"' in warning.advice and str(tmp_path) in warning.advice


def test_an_account_needs_a_tenant_of_the_policys(tmp_path: Path) -> None:
    config, login = recipe("Codex with a ChatGPT login", "toml", ADDRESS), '{"tokens": {"access_token": "a.b.c"}}'
    (warning,) = found(tmp_path, config, Policy(), login)
    assert warning.state is State.WARNING and "--config personal" in warning.advice
    personal = Policy.model_validate({"tenants": {"static": "me"}})
    assert [one.state for one in found(tmp_path, config, personal, login)] == [State.OK]
