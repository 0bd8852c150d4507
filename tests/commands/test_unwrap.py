import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from palimpsest.commands.base_urls import settings_in
from palimpsest.commands.unwrap import BACKUP, without

from tests.running import ROOT, free_port

URL = "http://127.0.0.1:8484"
CODEX = f"""\
model = "gpt-4o"
model_provider = "palimpsest"

[model_providers.palimpsest]
name = "Palimpsest"
base_url = "{URL}/v1"
env_key = "OPENAI_API_KEY"

[tui]
theme = "dark"
"""


def taken_out(name: str, text: str) -> str | None:
    return without(name, text, list(settings_in(Path(name), text)))


def test_a_line_of_a_shell_file_becomes_a_comment_and_the_others_stay() -> None:
    text = f"alias ll='ls -l'\nif true; then\n  export OPENAI_BASE_URL={URL}/v1\nfi\nexport PATH=$PATH:/x\n"
    after = taken_out(".bashrc", text)
    assert after is not None
    told = subprocess.run(["sh", "-c", after + "echo [$OPENAI_BASE_URL] $PATH"], capture_output=True, text=True)
    assert "[]" in told.stdout and "/x" in told.stdout
    assert not list(settings_in(Path(".bashrc"), after))


@pytest.mark.parametrize(
    "text",
    [
        f'{{"env": {{"ANTHROPIC_BASE_URL": "{URL}"}}, "model": "opus"}}',
        f'{{\n  "env": {{\n    "A": "1",\n    "ANTHROPIC_BASE_URL": "{URL}"\n  }},\n  "model": "opus"\n}}\n',
        f'{{"model": "opus", "env": {{"ANTHROPIC_BASE_URL": "{URL}", "A": "1"}}}}',
    ],
)
def test_a_member_of_a_json_object_goes_and_the_rest_is_as_it_was(text: str) -> None:
    after = taken_out("settings.json", text)
    assert after is not None
    expected = json.loads(text)
    del expected["env"]["ANTHROPIC_BASE_URL"]
    assert json.loads(after) == expected


def test_codex_goes_back_to_its_own_provider() -> None:
    after = taken_out("config.toml", CODEX)
    assert after is not None
    assert tomllib.loads(after) == {"model": "gpt-4o", "tui": {"theme": "dark"}}


def test_aiders_settings_lose_their_line() -> None:
    after = taken_out(".aider.conf.yml", f"openai-api-base: {URL}/v1\nmodel: openai/gpt-4o\n")
    assert after is not None and yaml.safe_load(after) == {"model": "openai/gpt-4o"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("opencode.json", f'{{"provider": {{"p": {{"npm": "x", "options": {{"baseURL": "{URL}/v1"}}}}}}}}'),
        ("opencode.jsonc", f'{{ // mine\n"provider": {{"openai": {{"options": {{"baseURL": "{URL}/v1"}}}}}}}}'),
        (".bashrc", f"export OPENAI_BASE_URL={URL}/v1; export PATH=$PATH:/x\n"),
        ("config.yaml", f"models:\n  - apiBase: {URL}/v1\n    name: x\n"),
    ],
)
def test_what_would_leave_a_file_without_sense_is_left_to_its_owner(name: str, text: str) -> None:
    assert taken_out(name, text) is None


@pytest.mark.slow
def test_the_command_shows_and_changes_nothing_until_it_is_told_to(tmp_path: Path) -> None:
    port = free_port()
    rc, other = tmp_path / ".zshrc", tmp_path / ".bashrc"
    text = f"export ANTHROPIC_BASE_URL=http://localhost:{port}\n"
    rc.write_text(text)
    other.write_text(f"export OPENAI_BASE_URL=http://localhost:{free_port()}/v1\n")
    before = other.read_text()

    def unwrap(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "palimpsest", "unwrap", "--port", str(port), *words]
        environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "proxy")}
        return subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)

    shown = unwrap()
    assert shown.returncode == 0 and f"{rc}:1: ANTHROPIC_BASE_URL" in shown.stdout and "--yes" in shown.stdout
    assert rc.read_text() == text and not Path(f"{rc}{BACKUP}").exists()
    assert unwrap("--yes").returncode == 0
    assert not list(settings_in(rc, rc.read_text())) and Path(f"{rc}{BACKUP}").read_text() == text
    assert other.read_text() == before, "an address of somebody else's"
    assert "no shell file" in unwrap("--yes").stdout
