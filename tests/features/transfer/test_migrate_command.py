"""The whole archive moves from SQLite to PostgreSQL and back, with every row, and says the same afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest
from palimpsest.evaluation.scripted import ScriptedUpstream

from tests.commands.test_cli import palimpsest
from tests.running import Conversation, Proxy, memory_in
from tests.servers import Server

pytestmark = [pytest.mark.slow, pytest.mark.sqlite]

FACT = "The staging database listens on port 7431 and its owner is the harbour team."
SMALL_TALK = ("Please write a haiku about snow.", "And another one about rain.", "Which of both is better?")


def block(proxy: Proxy, upstream: ScriptedUpstream, talk: Conversation) -> str:
    """What memory adds to one question; nothing is archived by asking it."""
    talk.proxy = proxy
    talk.ask("On which port does the staging database listen?", x_palimpsest_memory="read-only")
    return memory_in(upstream.received[-1].json)


def test_blocks_are_the_same_on_either_engine_and_neither_is_taken_while_it_is_used(
    upstream: ScriptedUpstream, server: Server, tmp_path: Path
) -> None:
    upstream.script = lambda body: f"Noted, thing number {len(str(body))}."
    url, back = server.new_database(), tmp_path / "back"
    own_proxy = Proxy(tmp_path / "data", upstream.url)
    move = ("migrate", "--from", str(own_proxy.data), "--to", url)
    with own_proxy as on_file:
        talk = Conversation(on_file, "sk-provider")
        for line in (FACT, *SMALL_TALK):
            talk.say(line)
        on_file.settle()
        talk.keep_last(2, "They talked about poems. " * 6)
        before = block(on_file, upstream, talk)
        assert "7431" in before
        used = palimpsest(*move)
        assert used.returncode == 1 and f"a process is using {own_proxy.data}; stop it first" in used.stderr
    done = palimpsest(*move)
    assert done.returncode == 0 and "rows are the same in" in done.stdout, done.stderr
    filled = palimpsest(*move)
    assert filled.returncode == 1 and "it is not empty" in filled.stderr
    with Proxy(own_proxy.data, upstream.url, PALIMPSEST_STORE__URL=url) as on_server:
        assert block(on_server, upstream, talk) == before
        used = palimpsest("migrate", "--from", url, "--to", str(back), "--data", str(own_proxy.data))
        assert used.returncode == 1 and "a process is using postgresql" in used.stderr
        talk.say("What is the tallest tree?")
        on_server.settle()
        later = block(on_server, upstream, talk)
    astray = palimpsest("migrate", "--from", url, "--to", str(back), "--data", str(tmp_path))
    assert astray.returncode == 1 and "it was written with another secret" in astray.stderr
    assert not back.exists()
    done = palimpsest("migrate", "--from", url, "--to", str(back), "--data", str(own_proxy.data))
    assert done.returncode == 0, done.stderr
    with Proxy(back, upstream.url) as again:
        assert "7431" in later and block(again, upstream, talk) == later
        assert talk.say("And the smallest?").said("event") == "append"
