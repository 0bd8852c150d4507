"""Settings of a client that do not fit the proxy's upstreams are named, with what to write instead."""

from __future__ import annotations

import socket
from pathlib import Path

import orjson
import pytest
from palimpsest.commands.doctor import clients
from palimpsest.commands.doctor.clients import claude_code, unreachable_urls
from palimpsest.commands.doctor.finding import Finding, State
from palimpsest.settings.policy import Policy

from tests.clients.recipes import ADDRESS, recipe
from tests.running import Proxy, free_port

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


def test_where_the_proxy_compacts_codex_may_have_it_done_behind_any_upstream(tmp_path: Path) -> None:
    policy = Policy.model_validate(ELSEWHERE | {"memory": {"compaction": "answer"}})
    own = recipe("Codex", "toml", ADDRESS)
    (asks,) = found(tmp_path, own.replace('"Palimpsest"', '"OpenAI"'), policy)
    (alone,) = found(tmp_path, own, policy)
    assert (asks.state, alone.state) == (State.OK, State.OK)
    assert "from the archive" in alone.found and "from the archive" not in asks.found


def test_an_account_needs_a_tenant_of_the_policys(tmp_path: Path) -> None:
    config, login = recipe("Codex with a ChatGPT login", "toml", ADDRESS), '{"tokens": {"access_token": "a.b.c"}}'
    (warning,) = found(tmp_path, config, Policy(), login)
    assert warning.state is State.WARNING and "--config personal" in warning.advice
    personal = Policy.model_validate({"tenants": {"static": "me"}})
    assert [one.state for one in found(tmp_path, config, personal, login)] == [State.OK]


def test_a_base_url_where_nobody_answers_is_named_with_file_line_and_remedy(tmp_path: Path) -> None:
    port = free_port()
    (tmp_path / ".zshrc").write_text(f"\nexport ANTHROPIC_BASE_URL=http://127.0.0.1:{port}\n")
    (found,) = unreachable_urls({"HOME": str(tmp_path)}, tmp_path)
    assert found.state is State.WARNING and f"{tmp_path}/.zshrc:2: ANTHROPIC_BASE_URL" in found.found
    assert f"unwrap --port {port} --yes" in found.advice
    (found,) = unreachable_urls({"HOME": "/nowhere", "OPENAI_BASE_URL": f"http://localhost:{port}/v1"}, tmp_path)
    assert "the environment" in found.found and "unset OPENAI_BASE_URL" in found.advice


def test_one_where_somebody_answers_is_fine_and_so_is_none(tmp_path: Path) -> None:
    assert unreachable_urls({"HOME": str(tmp_path)}, tmp_path)[0].state is State.OK
    with socket.create_server(("127.0.0.1", 0)) as other:
        told = {"HOME": str(tmp_path), "X_BASE_URL": f"http://127.0.0.1:{other.getsockname()[1]}"}
        assert unreachable_urls(told, tmp_path)[0].state is State.OK


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "path", "advice"),
    [
        ("OPENAI_BASE_URL", "", "must end in /v1"),
        ("OPENAI_BASE_URL", "/@shop/v1/", ""),
        ("ANTHROPIC_BASE_URL", "/v1", "must not end in /v1"),
        ("ANTHROPIC_BASE_URL", "/@shop", ""),
        ("X_BASE_URL", "", ""),
    ],
)
def test_a_base_url_on_whose_path_requests_would_pass_without_memory_is_named(
    name: str, path: str, advice: str, proxy: Proxy, tmp_path: Path
) -> None:
    (found,) = unreachable_urls({"HOME": "/nowhere", name: f"http://127.0.0.1:{proxy.port}{path}"}, tmp_path)
    assert advice in found.advice and (found.state is State.OK) == (not advice)


HERE = "http://127.0.0.1:8484"
FLAG, IDLE, SEARCH = "_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL", "CLAUDE_STREAM_IDLE_TIMEOUT_MS", "ENABLE_TOOL_SEARCH"


def examine(home: Path, *, elsewhere: bool = False, settings: dict[str, str] | None = None, **shell: str) -> Finding:
    if settings is not None:
        (home / ".claude").mkdir()
        (home / ".claude" / "settings.json").write_bytes(orjson.dumps({"env": settings}))
    upstreams = {"upstreams": [{"url": "https://gateway.example.com"}]} if elsewhere else {}
    return claude_code(Policy.model_validate(upstreams), {"HOME": str(home), **shell})


def test_without_an_address_it_asks_anthropic(tmp_path: Path) -> None:
    assert "asks Anthropic directly" in examine(tmp_path).found


def test_an_address_alone_makes_it_hold_back(tmp_path: Path) -> None:
    finding = examine(tmp_path, settings={"ANTHROPIC_BASE_URL": HERE})
    assert finding.state is State.WARNING
    assert "window 1M, in older versions 200k where the model has it, tool search on in newer versions" in finding.found
    assert finding.advice == f"set {FLAG}=1 and {IDLE}=300000"


def test_the_recipe_is_fine(tmp_path: Path) -> None:
    finding = examine(tmp_path, settings={"ANTHROPIC_BASE_URL": HERE, FLAG: "1"}, **{IDLE: "600000"})
    assert finding.state is State.OK
    assert "window 1M where the model has it, tool search on" in finding.found


def test_settings_go_before_the_shell(tmp_path: Path) -> None:
    finding = examine(tmp_path, settings={SEARCH: "false"}, ANTHROPIC_BASE_URL=HERE, **{SEARCH: "true", FLAG: "1"})
    assert "tool search off" in finding.found


def test_what_stands_for_anthropic_must_lead_to_it(tmp_path: Path) -> None:
    finding = examine(tmp_path, elsewhere=True, ANTHROPIC_BASE_URL=HERE, **{FLAG: "1"})
    assert (finding.state, finding.advice) == (State.WARNING, f"unset {FLAG}, and set {SEARCH}=true")


def test_behind_another_provider_the_search_of_tools_is_asked_for(tmp_path: Path) -> None:
    assert examine(tmp_path, elsewhere=True, ANTHROPIC_BASE_URL=HERE).advice == f"set {SEARCH}=true"
    assert examine(tmp_path, elsewhere=True, ANTHROPIC_BASE_URL=HERE, **{SEARCH: "true"}).state is State.OK


def test_an_address_of_somebody_else_is_no_fault(tmp_path: Path) -> None:
    finding = examine(tmp_path, ANTHROPIC_BASE_URL="https://me:secret@gateway.example.com/v1?key=secret")
    assert finding.state is State.OK
    assert "asks gateway.example.com, not this proxy" in finding.found and "secret" not in finding.found


@pytest.mark.parametrize("content", ["{", "[]", '{"env": []}'])
def test_settings_that_cannot_be_read_are_said_to_be(tmp_path: Path, content: str) -> None:
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text(content)
    finding = examine(tmp_path)
    assert finding.state is State.FAILED and "settings.json: it is not what Claude Code writes" in finding.found
