"""Whatever becomes of the process that archives, each turn is on the disk once, and answers say where it is not yet."""

from __future__ import annotations

from collections import Counter

import psutil
import pytest
from palimpsest.evaluation.scripted import ScriptedUpstream
from palimpsest.memory.recording.archive_process import MODULE

from tests.ledger import damage
from tests.running import Conversation, Proxy, rows, until

pytestmark = pytest.mark.slow

DEADLINE_MS = 50  # so that answers wait for no commit that cannot come
QUIET = ("", "calm", "nothing-relevant", "tool-loop", "no-question", "pressure")


@pytest.fixture
def impatient(upstream: ScriptedUpstream, own_proxy: Proxy, unforked: None) -> Proxy:
    upstream.script = lambda body: f"I have read message {len(body['messages'])} of this conversation."
    own_proxy.config.write_text(f"memory: {{deadline_ms: {DEADLINE_MS}}}\n")
    return own_proxy.start()


def archive_process(proxy: Proxy) -> psutil.Process:
    assert proxy.process is not None
    started = psutil.Process(proxy.process.pid).children(recursive=True)
    return next(one for one in started if MODULE in " ".join(one.cmdline()))


def test_conversation_that_goes_on_while_its_turns_wait_is_stored_once_and_as_one(impatient: Proxy) -> None:
    talk = Conversation(impatient, "sk-one")
    talk.say("The harbour opens at seven, please remember that well.")
    impatient.settle(vectors=False)
    process = archive_process(impatient)
    process.suspend()
    for number in range(12):
        talk.say(f"And this is what happened on day {number} of the long voyage.")
    process.kill()
    impatient.settle(vectors=False)
    stored = Counter(
        text for (text,) in rows(impatient.data, "SELECT text FROM occurrence JOIN content ON content = content.id")
    )
    told = Counter(message["content"] for message in talk.messages)
    assert {text: stored[text] for text in told} == dict.fromkeys(told, 1)
    assert rows(impatient.data, "SELECT count(*) FROM conversation") == [(1,)]
    assert impatient.metric("palimpsest_turns_lost_total") == 0 and not damage(impatient.data)


def test_answer_is_not_quiet_while_earlier_turns_of_its_tenant_are_not_on_the_disk(impatient: Proxy) -> None:
    process = archive_process(impatient)
    process.suspend()

    def note() -> str:
        return Conversation(impatient, "sk-one").say("What is this about?").said("note")

    until(lambda: note() == "fault", "the answer to say that turns wait")
    process.resume()
    impatient.settle(vectors=False)
    until(lambda: note() in QUIET, "an answer whose own turn is on the disk within the deadline, with none before it")
