"""A database server that goes away loses no turn: they wait here, also over a kill, and follow in order and once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from palimpsest.evaluation.scripted import ScriptedUpstream

from tests.commands.test_cli import palimpsest
from tests.remote.boxes import box, is_linked, key_of, laptop, root_of
from tests.running import Conversation, Proxy, until
from tests.servers import Server, running_server

pytestmark = [pytest.mark.slow, pytest.mark.sqlite, pytest.mark.usefixtures("words_only")]

SAID = [f"Line {number}: the ferry leaves from pier {number * 7}." for number in range(6)]
IN_ORDER = (
    "SELECT text FROM occurrence JOIN content ON content.id = content WHERE text LIKE 'Line %' ORDER BY occurrence.id"
)


@pytest.fixture
def own_server() -> Iterator[Server]:
    with running_server() as server:
        yield server


def has_all(proxy: Proxy) -> bool:
    ready = proxy.ready()
    return ready["store"] == "ready" and not any("wait" in reason for reason in ready["reasons"])


@pytest.mark.parametrize("is_killed", [False, True], ids=["running on", "killed meanwhile"])
def test_turns_of_an_outage_follow_in_order_and_once(
    own_server: Server, upstream: ScriptedUpstream, tmp_path: Path, is_killed: bool
) -> None:
    upstream.script = lambda body: f"Noted, thing number {len(str(body))}."
    url = own_server.new_database()
    proxy = Proxy(tmp_path / "data", upstream.url, PALIMPSEST_STORE__URL=url)
    with proxy:
        talk = Conversation(proxy, "sk-one")
        for line in SAID[:2]:
            assert talk.say(line).said("event") in ("start", "append")
        proxy.settle(vectors=False)
        own_server.stop()
        for line in SAID[2:4]:
            passed = talk.say(line)
            assert (passed.status, passed.said("note")) == (200, "fault")
            talk.keep_last(
                2, "They spoke of the ferry and of its piers. " * 6
            )  # what it goes on from is found late, too
        if is_killed:
            proxy.kill()
            proxy.start()
            assert talk.say(SAID[4]).status == 200
        own_server.start()
        until(lambda: has_all(proxy), "the turns to be archived")
        for line in SAID[4 + is_killed :]:
            until(lambda: has_all(proxy), "the turns to be archived")
            assert talk.say(line).said("conversation")
        until(lambda: has_all(proxy), "the turns to be archived")
        proxy.settle(vectors=False)
        assert own_server.rows(url, IN_ORDER) == [(line,) for line in SAID]
        assert own_server.rows(url, "SELECT count(*) FROM conversation") == [(1,)]
        answers = Counter(own_server.rows(url, "SELECT id FROM occurrence WHERE role = 'assistant'"))
        assert len(answers) == len(SAID)
        assert {ending for (ending,) in own_server.rows(url, "SELECT ending FROM turn")} == {"complete"}
        checked = palimpsest("check", "--data", str(proxy.data), env={"PALIMPSEST_STORE__URL": url})
        assert checked.returncode == 0 and "1 conversations, 6 turns" in checked.stdout, checked.stdout + checked.stderr


def test_turns_of_several_tenants_follow_each_in_their_order_and_once(
    own_server: Server, upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    upstream.script = lambda body: f"Noted, thing number {len(str(body))}."
    url, lines = own_server.new_database(), range(12)
    with Proxy(tmp_path / "data", upstream.url, PALIMPSEST_STORE__URL=url) as proxy:
        talks = {name: Conversation(proxy, f"sk-{name}") for name in ("one", "two", "three")}
        for name, talk in talks.items():
            assert talk.say(f"Line 0 of {name}").said("event") == "start"
        proxy.settle(vectors=False)
        own_server.stop()
        for line in lines[1:]:
            assert [talk.say(f"Line {line} of {name}").status for name, talk in talks.items()] == [200] * 3
        own_server.start()
        until(lambda: has_all(proxy), "the turns to be archived")
        stored = [text for (text,) in own_server.rows(url, IN_ORDER)]
        for name in talks:
            assert [text for text in stored if text.endswith(f" {name}")] == [
                f"Line {line} of {name}" for line in lines
            ]
        assert own_server.rows(url, "SELECT count(*) FROM conversation") == [(3,)]
        assert own_server.rows(url, "SELECT count(*) FROM turn") == [(3 * len(lines),)]


def test_a_tenant_has_its_memory_back_while_many_turns_of_another_wait(
    own_server: Server, upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    upstream.script = lambda body: f"Noted, thing number {len(str(body))}."
    url, many = own_server.new_database(), range(400)  # ten seconds' work
    with Proxy(tmp_path / "data", upstream.url, PALIMPSEST_STORE__URL=url) as proxy:
        busy, calm, silent = (Conversation(proxy, f"sk-{name}") for name in ("busy", "calm", "silent"))
        assert [talk.say("Line 0").said("event") for talk in (busy, calm, silent)] == ["start"] * 3
        proxy.settle(vectors=False)
        own_server.stop()
        assert {busy.ask(f"Line {number} of many").status for number in many} == {200}
        assert calm.say("Line 1").said("note") == "fault"
        own_server.start()
        for talk in (silent, calm):
            until(partial(is_remembered, talk), "its memory to be back")
        assert not has_all(proxy), "the other's turns still wait"
        until(lambda: has_all(proxy), "the turns to be archived")
        proxy.settle(vectors=False)
        stored = [text for (text,) in own_server.rows(url, IN_ORDER) if text.endswith("of many")]
        assert stored == [f"Line {number} of many" for number in many]


def is_remembered(talk: Conversation) -> bool:
    """Whether a request is read."""
    return bool(talk.ask("Line 2").said("conversation"))


def test_a_proxy_that_stops_while_turns_are_brought_says_of_no_failure_and_brings_the_rest_at_its_next_start(
    own_server: Server, upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    upstream.script = lambda body: f"Noted, thing number {len(str(body))}."
    url, many = own_server.new_database(), range(200)
    with Proxy(tmp_path / "data", upstream.url, PALIMPSEST_STORE__URL=url) as proxy:
        Conversation(proxy, "sk-one").say("Line 0")
        proxy.settle(vectors=False)
        own_server.stop()
        talk = Conversation(proxy, "sk-two")
        assert {talk.ask(f"Line {number} of many").status for number in many} == {200}
        own_server.start()
        until(lambda: own_server.rows(url, IN_ORDER)[1:], "the first turn to be brought")
        before = proxy.log.stat().st_size
        assert proxy.stop() == 0
        said = proxy.log.read_bytes()[before:].decode()
        assert "background task" not in said and "cannot be brought" not in said, said
        assert len(own_server.rows(url, IN_ORDER)) < 1 + len(many)
        proxy.start()
        until(lambda: has_all(proxy), "the turns to be archived")
        stored = [text for (text,) in own_server.rows(url, IN_ORDER)]
        assert stored == ["Line 0", *(f"Line {number} of many" for number in many)]


def test_a_box_whose_own_database_is_away_gets_the_turns_of_a_laptop_afterwards(
    own_server: Server, upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    upstream.script = lambda body: f"Noted, thing number {len(str(body))}."
    url = own_server.new_database()
    far = box(tmp_path)
    far.env["PALIMPSEST_STORE__URL"] = url
    with far, laptop(tmp_path, upstream.url, root_of(far), key_of(far)) as near:
        talk = Conversation(near, "sk-one")
        talk.say(SAID[0])
        far.settle(vectors=False)
        own_server.stop()
        assert [talk.say(line).status for line in SAID[1:3]] == [200, 200]
        own_server.start()
        until(lambda: is_linked(near), "the box to have all")
        talk.say(SAID[3])
        until(lambda: is_linked(near), "the box to have all")
        far.settle(vectors=False)
        assert own_server.rows(url, IN_ORDER) == [(line,) for line in SAID[:4]]
        assert own_server.rows(url, "SELECT count(*) FROM conversation") == [(1,)]
