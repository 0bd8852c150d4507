"""`palimpsest open` finds the page of a running proxy, and says why there is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from palimpsest.commands.open import path_of
from palimpsest.evaluation.scripted import ScriptedUpstream

from tests.commands.test_cli import palimpsest
from tests.running import Proxy, free_port


@pytest.mark.parametrize(
    ("named", "path"),
    [
        ("", "/memory/"),
        ("t-08a9", "/memory/turns/t-08a9"),
        ("c-5b0c", "/memory/conversations/c-5b0c"),
        ("my talk/1?x", "/memory/conversations/my%20talk%2F1%3Fx"),
    ],
)
def test_a_turn_a_conversation_or_the_first_page_is_opened(named: str, path: str) -> None:
    assert path_of(named) == path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "status", "why"), [("true", 1, "palimpsest serve"), ("false", 2, "page.enabled is false")]
)
def test_where_there_is_no_page_it_is_said_why(tmp_path: Path, setting: str, status: int, why: str) -> None:
    (tmp_path / "palimpsest.yaml").write_text(f"page: {{enabled: {setting}}}\n")
    words = ["--data", str(tmp_path / "data"), "--config", str(tmp_path / "palimpsest.yaml")]
    ended = palimpsest("open", "--port", str(free_port()), *words)
    assert (ended.returncode, ended.stdout) == (status, "")
    assert why in ended.stderr


@pytest.mark.slow
def test_the_page_of_a_proxy_that_was_given_its_upstream_at_the_start_is_found(
    own_proxy: Proxy, upstream: ScriptedUpstream
) -> None:
    upstream.script = lambda _: "hello to you"
    with own_proxy:
        turn = own_proxy.chat({"messages": [{"role": "user", "content": "hello"}]}).said("turn")
        own_proxy.settle(vectors=False)
        ended = palimpsest("open", "--port", str(own_proxy.port), "--data", str(own_proxy.data))
        port = {"PALIMPSEST_PORT": str(own_proxy.port)}
        elsewhere = palimpsest("open", "--port", str(own_proxy.port), "--data", str(own_proxy.data.with_name("other")))
        explained = palimpsest("explain", turn, "--data", str(own_proxy.data), env=port)
    assert f"http://127.0.0.1:{own_proxy.port}/memory/turns/{turn}" in explained.stdout, explained.stderr
    assert (ended.returncode, ended.stdout) == (0, f"http://127.0.0.1:{own_proxy.port}/memory/\n"), ended.stderr
    assert elsewhere.returncode == 1 and "--data" in elsewhere.stderr and "palimpsest serve" not in elsewhere.stderr
