"""Claude Code is examined as it is told: by its settings first, then by the shell."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from palimpsest.commands.doctor.claude_code import claude_code
from palimpsest.commands.doctor.finding import Finding, State
from palimpsest.settings.policy import Policy

HERE = "http://127.0.0.1:8484"
FLAG, IDLE, SEARCH = "_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL", "CLAUDE_STREAM_IDLE_TIMEOUT_MS", "ENABLE_TOOL_SEARCH"


def examine(home: Path, *, elsewhere: bool = False, settings: dict[str, str] | None = None, **shell: str) -> Finding:
    if settings is not None:
        (home / ".claude").mkdir()
        (home / ".claude" / "settings.json").write_bytes(orjson.dumps({"env": settings}))
    upstreams = {"upstreams": [{"url": "https://gateway.example.com"}]} if elsewhere else {}
    return claude_code(Policy.model_validate(upstreams), {"HOME": str(home), **shell})


def test_without_an_address_it_asks_anthropic(tmp_path: Path) -> None:
    assert "asks Anthropic itself" in examine(tmp_path).found


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
