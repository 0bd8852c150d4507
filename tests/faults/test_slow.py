"""A text that takes long to archive, of one tenant, is no reason for another's turn to wait."""

from __future__ import annotations

import threading

import pytest
from palimpsest.evaluation.scripted import Reply, ScriptedUpstream

from tests.running import Conversation, Proxy, rows, stored_texts, until

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("words_only")]

LONG_CHARS = 24_000_000  # seconds of work, far from the limit of a request
TURNS = "SELECT count(*) FROM turn JOIN conversation ON conversation.id = turn.conversation WHERE turn.tenant = {}"


def test_turns_are_on_the_disk_while_another_tenants_text_is_still_being_read(
    own_proxy: Proxy, upstream: ScriptedUpstream
) -> None:
    upstream.script = lambda body: Reply(f"I have read all of your {len(body['messages'])} messages.")
    own_proxy.start()
    victim, evil = Conversation(own_proxy, "sk-victim"), Conversation(own_proxy, "sk-evil")
    victim.say("The archive room is number 3172.")
    own_proxy.settle(vectors=False)
    words = "The quick brown fox, on its way to lazy dog no. "
    long = "".join(f"{words}{number}\n" for number in range(LONG_CHARS // len(words)))
    sending = threading.Thread(target=evil.say, args=(long,))
    sending.start()
    until(lambda: own_proxy.metric("palimpsest_queued") > 0, "the long text to be taken")
    answered = victim.say("We counted the boxes of shelf 1.")
    stored, others = stored_texts(own_proxy.data), rows(own_proxy.data, TURNS.format(2))
    assert answered.status == 200 and answered.said("note") != "fault"
    assert {"We counted the boxes of shelf 1.", answered.text} <= stored
    assert others == [(0,)], "the long text was stored first: the test proves nothing"
    sending.join()
    own_proxy.settle(vectors=False)
    assert rows(own_proxy.data, TURNS.format(2)) == [(1,)]
