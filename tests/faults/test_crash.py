"""kill -9 at any moment: no acknowledged turn is missing, and what was under way is finished after the restart."""

from __future__ import annotations

import threading

import pytest
from palimpsest.domain import Json
from palimpsest.evaluation.scripted import Reply, ScriptedUpstream

from tests.running import Conversation, Proxy, memory_in, rows, stored_texts, until

pytestmark = [pytest.mark.slow, pytest.mark.server]

SPEAKERS = 4


@pytest.fixture
def patient(own_proxy: Proxy) -> Proxy:
    """It waits for each commit as long as it takes: on any machine the end of an answer is an acknowledgement."""
    return own_proxy.start()


def said_back(body: Json) -> Reply:
    last = body["messages"][-1]["content"]
    return Reply(f"This is the answer to: {last}", pace_seconds=0.001)


def test_killed_between_many_streams_keeps_every_turn_that_was_acknowledged(
    patient: Proxy, upstream: ScriptedUpstream
) -> None:
    upstream.script = said_back
    acknowledged: list[str] = []

    def speak(name: int) -> None:
        talk = Conversation(patient, f"sk-speaker-{name}", extra={"stream": True})
        for turn in range(1000):
            asked = f"speaker {name} tells the number {turn} of a long row of stories"
            try:
                answered = talk.say(asked)
            except OSError:
                return  # the proxy is gone
            if answered.broken or not answered.body.endswith(b"data: [DONE]\n\n"):
                return
            acknowledged.extend((asked, answered.text))

    speakers = [threading.Thread(target=speak, args=(name,)) for name in range(SPEAKERS)]
    for speaker in speakers:
        speaker.start()
    until(lambda: len(acknowledged) > 40, "some turns to be acknowledged")
    patient.kill()
    for speaker in speakers:
        speaker.join()
    patient.start()
    patient.settle(vectors=False)
    assert not set(acknowledged) - stored_texts(patient.data)


def test_killed_in_mid_stream_continues_the_same_conversation(patient: Proxy, upstream: ScriptedUpstream) -> None:
    talk = Conversation(patient, "sk-one", extra={"stream": True})
    upstream.play("I will remember that the deployment key lives in the vault under path team/blue/17.")
    home = talk.say("The deployment key lives in the vault under team/blue/17, please remember that.").said(
        "conversation"
    )
    upstream.play(Reply("an answer that nobody will hear to its end", lockstep=True))
    broken: list[bool] = []

    def ask() -> None:
        try:
            broken.append(talk.ask("And who may read it?").broken)
        except OSError:  # killed even before the answer began
            broken.append(True)

    caller = threading.Thread(target=ask)
    caller.start()
    upstream.permit(2)
    until(lambda: len(upstream.received) == 2, "the request to reach the upstream")
    patient.kill()
    caller.join()
    assert broken == [True]
    patient.start()
    upstream.play("Only the release managers may read the key, and they rotate it every ninety days.")
    again = talk.say("And who may read it?")
    assert again.status == 200 and again.said("conversation") == home
    assert "The deployment key lives in the vault under team/blue/17, please remember that." in stored_texts(
        patient.data
    )


def test_killed_while_indexing_completes_the_index_after_the_restart(
    patient: Proxy, upstream: ScriptedUpstream
) -> None:
    upstream.script = said_back
    talk = Conversation(patient, "sk-one")
    talk.say("The secret ingredient of the sauce is smoked paprika from the blue tin.")
    for turn in range(8):
        talk.say(f"Chapter {turn}: " + f"some long prose about the river and the boats number {turn}. " * 60)
    assert patient.ready()["pending"] > 0, "nothing was left to index: the test proves nothing"
    patient.kill()
    patient.start()
    patient.settle()
    [(memories,)] = rows(patient.data, "SELECT count(*) FROM memory")
    [(vectors,)] = rows(patient.data, "SELECT count(*) FROM vector")
    assert memories == vectors > 8
    talk.keep_last(2)
    talk.ask("What was the secret ingredient of the sauce?")
    assert "smoked paprika" in memory_in(upstream.received[-1].json)


def test_stopped_in_mid_conversation_continues_as_if_nothing_had_been(
    patient: Proxy, upstream: ScriptedUpstream
) -> None:
    upstream.script = said_back
    talk = Conversation(patient, "sk-one")
    home = talk.say("We call the new release Marmalade, because of the colour of its logo.").said("conversation")
    talk.say("Its manual will be written by Tomas during the first two weeks of spring.")
    assert patient.stop() == 0
    patient.start()
    answered = talk.say("And the translation into Portuguese comes a month after the manual is done.")
    assert (answered.said("conversation"), answered.said("event")) == (home, "append")
    patient.settle()
    talk.keep_last(2)
    answered = talk.ask("What do we call the new release?")
    assert (answered.said("conversation"), answered.said("event")) == (home, "compaction:truncate")
    assert "Marmalade" in memory_in(upstream.received[-1].json)
