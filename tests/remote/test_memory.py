"""Two machines, one memory: what the box keeps comes in, and nothing is lost or stored twice where it is away."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest
from palimpsest.evaluation.scripted import ScriptedUpstream

from tests.commands.test_cli import palimpsest
from tests.remote.boxes import behind_tls, box, key_of, laptop, root_of, settle
from tests.running import Conversation, Proxy, memory_in, rows, stored_texts

pytestmark = [pytest.mark.slow, pytest.mark.sqlite]

FACT = "The staging database listens on port 7431 and its owner is the harbour team."
QUESTION = "On which port does the staging database listen?"
SMALL_TALK = (
    "Please write a haiku about snow.",
    "And another one about rain in the hills.",
    "Which of both do you like better, and for what reason?",
    "Now translate the better one into French.",
)


ASK = f"""
import json, os, urllib.request
assert "PALIMPSEST_SERVER_KEY" not in os.environ
body = json.dumps({{"model": "m", "messages": [{{"role": "user", "content": {FACT!r}}}]}}).encode()
url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
answer = urllib.request.urlopen(urllib.request.Request(url, body, {{"authorization": "Bearer sk-x"}}))
print(answer.headers["x-palimpsest-event"])
"""


def talk(proxy: Proxy, *lines: str) -> Conversation:
    conversation = Conversation(proxy, "sk-provider")
    for line in lines:
        assert conversation.say(line).status == 200
    return conversation


def answer(body: object) -> str:
    return f"Noted, thing number {len(str(body))}."


def said_once(box: Proxy, *texts: str) -> None:
    """Each of these was archived, and none twice."""
    stored = Counter(
        text for (text,) in rows(box.data, "SELECT content.text FROM occurrence JOIN content ON content.id = content")
    )
    assert {text: stored[text] for text in texts} == dict.fromkeys(texts, 1)


def test_what_was_said_on_one_laptop_comes_back_on_it_and_lies_on_the_box(
    upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    upstream.script = answer
    with box(tmp_path) as far:
        with laptop(tmp_path, upstream.url, root_of(far), key_of(far)) as near:
            conversation = talk(near, FACT, *SMALL_TALK)
            settle(near, far)
            conversation.keep_last(2, "They talked about poems. " * 6)
            asked = conversation.ask(QUESTION)
            assert asked.said("event").startswith("compaction:") and int(asked.said("recalled")) > 0
            sent = upstream.received[-1]
            assert "7431" in memory_in(sent.json)
            assert sent.headers["Authorization"] == "Bearer sk-provider"
            settle(near, far)
            said_once(far, FACT, *SMALL_TALK)
            assert {name for (name,) in rows(far.data, "SELECT name FROM tenant")} == {"key:ada"}
        assert not (near.data / "palimpsest.db").exists()


def test_a_second_laptop_with_the_key_remembers_what_the_first_was_told(
    upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    upstream.script = answer
    (tmp_path / "two").mkdir()
    with box(tmp_path) as far:
        key = key_of(far)
        with laptop(tmp_path, upstream.url, root_of(far), key) as one:
            first = Conversation(one, "sk-one", headers={"x_palimpsest_user": "ada"})
            for line in (FACT, *SMALL_TALK):
                first.say(line)
            settle(one, far)
        with laptop(tmp_path / "two", upstream.url, root_of(far), key) as two:
            Conversation(two, "sk-two", headers={"x_palimpsest_user": "ada"}).say(f"What did we say? {QUESTION}")
            assert "7431" in memory_in(upstream.received[-1].json)


def test_while_the_box_is_away_requests_pass_and_their_turns_follow_in_order_and_once(
    upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    upstream.script = answer
    far = box(tmp_path)
    far.start()
    with laptop(tmp_path, upstream.url, root_of(far), key_of(far)) as near:
        conversation = talk(near, FACT)
        settle(near, far)
        far.kill()
        for line in SMALL_TALK[:2]:
            passed = conversation.say(line)
            assert (passed.status, passed.said("note")) == (200, "away")
        ready = near.ready()
        assert (ready["ready"], ready["pending"]) == (False, 2) and "is away" in ready["reasons"][0]
        near.kill()  # what waits survives that
        near.start()
        assert conversation.say(SMALL_TALK[2]).said("note") == "away"
        far.start()
        settle(near, far)
        assert conversation.say(SMALL_TALK[3]).said("event") == "append"
        settle(near, far)
        said_once(far, FACT, *SMALL_TALK)
        assert len(rows(far.data, "SELECT id FROM conversation")) == 1
        order = (
            "SELECT text FROM occurrence JOIN content ON content.id = content WHERE text IN ({}) ORDER BY occurrence.id"
        )
        marks = ", ".join(f"'{text}'" for text in (FACT, *SMALL_TALK))
        assert [text for (text,) in rows(far.data, order.format(marks))] == [FACT, *SMALL_TALK]
    far.close()


def test_a_stream_that_began_before_the_box_went_is_archived_whole_when_it_is_back(
    upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    far = box(tmp_path)
    far.start()
    with laptop(tmp_path, upstream.url, root_of(far), key_of(far)) as near:

        def leave(_body: object) -> str:
            far.kill()  # the request is prepared, and may be written
            return "an answer that nobody on the box has heard"

        upstream.script = leave
        conversation = Conversation(near, "sk-provider", extra={"stream": True})
        assert conversation.say(FACT).status == 200
        far.start()
        settle(near, far)
        said_once(far, FACT, "an answer that nobody on the box has heard")
        assert rows(far.data, "SELECT ending FROM turn") == [("complete",)]
    far.close()


def test_a_key_that_the_box_does_not_know_is_named_and_no_request_is_lost(
    upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    upstream.script = answer
    with box(tmp_path) as far, laptop(tmp_path, upstream.url, root_of(far), "plm_wrong") as near:
        passed = Conversation(near, "sk-provider").say(FACT)
        assert (passed.status, passed.said("note")) == (200, "away")
        reason = near.ready()["reasons"][0]
        assert "does not accept this key" in reason and "palimpsest key create" in reason
        assert "plm_wrong" not in near.log.read_text() + reason
        done = palimpsest("doctor", "--data", str(near.data), "--config", str(near.config))
        assert "does not accept this key" in done.stdout and "1 turns wait here" in done.stdout


def test_a_box_behind_tls_is_trusted_by_its_certificate_alone(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    upstream.script = answer
    with box(tmp_path) as far, behind_tls(far.port, tmp_path) as (url, certificate):
        near = laptop(tmp_path, upstream.url, url, key_of(far))
        with near:
            assert Conversation(near, "sk-provider").say(FACT).said("note") == "away"
            assert "certificate is not trusted" in near.ready()["reasons"][0]
        near.env["NODE_EXTRA_CA_CERTS"] = str(certificate)
        with near:
            settle(near, far)
            assert FACT in stored_texts(far.data)
            assert Conversation(near, "sk-provider").say("hello again").said("event") == "start"


def test_a_wrapped_command_keeps_its_memory_on_the_box_and_never_sees_the_key(
    upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    upstream.script = answer
    with box(tmp_path) as far:
        for key, status in ((key_of(far), 0), ("plm_wrong", 2)):
            words = ["--server", root_of(far), "--port", "0", "--data", str(tmp_path / "own"), "--key", key]
            words += ["--upstream", upstream.url, "--", sys.executable, "-c", ASK]
            done = palimpsest("wrap", *words)
            assert done.returncode == status, done.stderr
            if status:
                assert "does not accept this key" in done.stderr and key not in done.stderr
            else:
                assert done.stdout == "start\n"
        said_once(far, FACT)


def test_a_server_in_the_clear_is_refused_unless_the_network_is_said_to_be_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "clear.yaml"
    file.write_text("server: {url: 'http://box.example'}")
    refused = palimpsest("check-config", str(file))
    assert refused.returncode == 2 and "in the clear" in refused.stderr
    file.write_text("server: {url: 'http://box.example', insecure: true}")
    assert palimpsest("check-config", str(file)).returncode == 0
