import socket
from pathlib import Path

import pytest
from palimpsest.commands.base_urls import BaseUrl, Listener, listener, search, settings_in
from palimpsest.evaluation.scripted import ScriptedUpstream

from tests.running import Proxy, free_port


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("export ANTHROPIC_BASE_URL=http://127.0.0.1:8484", "ANTHROPIC_BASE_URL"),
        ("  OPENAI_API_BASE='http://localhost:8484/v1'; export OPENAI_API_BASE", "OPENAI_API_BASE"),
        ("set -gx OPENAI_BASE_URL http://127.0.0.1:8484/v1", "OPENAI_BASE_URL"),
        ('{"env": {"ANTHROPIC_BASE_URL": "http://[::1]:8484"}}', "ANTHROPIC_BASE_URL"),
        ('base_url = "http://127.0.0.1:8484/v1"', "base_url"),
        ("openai-api-base: http://127.0.0.1:8484/v1", "openai-api-base"),
        ("    apiBase: http://127.0.0.1:8484/v1", "apiBase"),
        ('"options": {"baseURL": "http://127.0.0.1:8484/v1", "apiKey": "x"}', "baseURL"),
    ],
)
def test_a_base_url_of_this_machine_is_found_however_clients_write_it(line: str, name: str) -> None:
    (found,) = settings_in(Path("f"), line)
    assert (found.name, found.port, found.line) == (name, 8484, 1)


@pytest.mark.parametrize(
    "line",
    [
        "# export OPENAI_BASE_URL=http://127.0.0.1:8484/v1",
        "export OPENAI_BASE_URL=https://api.openai.com/v1",
        "export OPENAI_BASE_URL=http://localhost.example.com/v1",
        "export OPENAI_BASE_URL=http://127.0.0.1.example.com/v1",
        'url = "http://127.0.0.1:3000/mcp"',
        "alias open='xdg-open http://127.0.0.1:8484'",
    ],
)
def test_nothing_else_is_one(line: str) -> None:
    assert not list(settings_in(Path("f"), line))


def test_files_are_looked_for_where_variables_say(tmp_path: Path) -> None:
    home, zsh, codex, xdg = (tmp_path / name for name in ("home", "zsh", "codex", "xdg"))
    text = "base_url = 'http://127.0.0.1:1/v1'\n"
    written = [home / ".bashrc", zsh / ".zshrc", codex / "config.toml", xdg / "fish/config.fish"]
    for file in (*written, home / ".zshrc"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    told = {"HOME": str(home), "ZDOTDIR": str(zsh), "CODEX_HOME": str(codex), "XDG_CONFIG_HOME": str(xdg)}
    assert {one.file for one in search(told, tmp_path).base_urls} == set(written)


def test_the_environment_is_searched_too_and_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / ".bashrc").mkdir()
    loop = tmp_path / ".claude"
    loop.mkdir()
    (loop / "settings.json").symlink_to("settings.json")
    found = search({"HOME": str(tmp_path), "OPENAI_BASE_URL": "http://localhost:9/v1"}, tmp_path)
    assert found.base_urls == (BaseUrl("OPENAI_BASE_URL", "http://localhost:9/v1"),)
    assert found.unread == ()


def test_who_answers_is_nobody_another_program_or_a_proxy(upstream: ScriptedUpstream) -> None:
    def at(port: int) -> Listener:
        return listener(BaseUrl("X_BASE_URL", f"http://127.0.0.1:{port}/v1"))

    assert at(free_port()) is Listener.NOBODY
    assert at(int(upstream.url.split(":")[2].split("/")[0])) is Listener.OTHER


@pytest.mark.slow
def test_a_running_proxy_is_recognised(proxy: Proxy) -> None:
    assert listener(BaseUrl("X_BASE_URL", f"http://localhost:{proxy.port}/v1")) is Listener.PROXY


def test_a_port_that_cannot_be_is_nobodys() -> None:
    with socket.create_server(("127.0.0.1", 0)):
        assert listener(BaseUrl("X_BASE_URL", "http://127.0.0.1:99999/v1")) is Listener.NOBODY
