"""What a client must see, whatever is wrong with memory, and what memory must still know when it is well again."""

from __future__ import annotations

import orjson
from palimpsest.evaluation.scripted import ScriptedUpstream

from tests.running import Conversation, Proxy, memory_in, until

IMPATIENT = {"memory": {"deadline_ms": 1000.0}}  # a disk that does not answer would hold up each request for long
FACT = "The archive room is number 3172, and its door opens to the left."
QUESTION = "What is the number of the archive room?"


def assert_flows(talk: Conversation, upstream: ScriptedUpstream, text: str) -> str:
    """The request reaches the upstream as the client made it, and its answer the client; what the proxy notes."""
    sent = talk.body({"role": "user", "content": text})
    answered = talk.say(text)
    assert answered.status == 200 and not answered.broken
    assert upstream.received[-1].body == orjson.dumps(sent)
    assert answered.text == f"I have read all of your {len(sent['messages'])} messages, including the last one."
    return answered.said("note")


def assert_restores(talk: Conversation, upstream: ScriptedUpstream, *, vectors: bool = True) -> None:
    """What the client drops comes back when it asks for that."""
    talk.proxy.settle(vectors=vectors)
    talk.keep_last(2)
    talk.ask(QUESTION)
    assert "3172" in memory_in(upstream.received[-1].json)


def says(proxy: Proxy, words: str) -> None:
    """Wait until these words stand in the log."""
    until(lambda: words.encode() in proxy.log.read_bytes(), f"the log to say {words!r}")
