"""Requests whose history the provider holds, or has compacted so that only it can read it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest
from palimpsest.domain import Json, ToolCall
from palimpsest.evaluation.scripted import Reply, ScriptedUpstream

from tests.running import BLOCK_CLOSES, BLOCK_OPENS, Answered, Conversation, Proxy, as_headers, request

FERRY = "The ferry to the northern islands leaves from the old pier at a quarter past nine."
BOAT = "When does the ferry to the northern islands leave, and from where?"
PATH = "/v1/responses"
READ = {"type": "function", "name": "read", "parameters": {"type": "object"}}


def user(text: str) -> Json:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def filler(number: int) -> str:
    return f"Chapter {number} of the handbook explains how to fold sail number {number} before the winter comes."


@dataclass
class Caller:
    """A plain client of the Responses API."""

    proxy: Proxy
    key: str
    body: Json = field(default_factory=lambda: {"model": "gpt-4o"})

    def send(self, input: Any = None, *, path: str = PATH, **more: Any) -> Answered:
        body = self.body | ({} if input is None else {"input": input}) | more
        answered = request(self.proxy.port, "POST", path, orjson.dumps(body), as_headers(self.key, {}))
        assert answered.status == 200, answered.body
        return answered


def seen(answered: Answered) -> tuple[str, str]:
    return answered.said("role"), answered.said("event")


def memory_in(sent: bytes) -> str:
    """What stands inside the memory blocks of a request."""
    pieces = sent.decode().split(BLOCK_OPENS)[1:]
    return "\n".join(piece.partition(BLOCK_CLOSES)[0] for piece in pieces)


@pytest.fixture
def caller(proxy: Proxy, upstream: ScriptedUpstream, key: str) -> Caller:
    upstream.script = lambda body: (
        f"That is noted, as answer {len(orjson.dumps(body))} of mine, and will be kept in mind."
    )
    return Caller(proxy, key)


# --- chains --------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
def test_a_chain_of_answers_is_one_conversation(caller: Caller, upstream: ScriptedUpstream, stream: bool) -> None:
    upstream.play(
        Reply("Hello."), Reply(calls=(ToolCall("call-1", "read", "{}"),)), Reply("It says so."), Reply("Bye.")
    )

    def step(input: Any, previous: str = "") -> tuple[str, str, str]:
        follows = {"previous_response_id": previous} if previous else {}
        answered = caller.send(input, stream=stream, tools=[READ], **follows)
        last = answered.body.splitlines()[-2].removeprefix(b"data: ") if stream else answered.body
        said = orjson.loads(last)
        response = said["response"] if stream else said
        return response["id"], answered.said("conversation"), answered.said("event")

    first, conversation, event = step("Hi.", "")
    assert event == "start"
    second, *rest = step([user("Read it.")], first)
    assert rest == [conversation, "append"]
    third, *rest = step([{"type": "function_call_output", "call_id": "call-1", "output": "text"}], second)
    assert rest == [conversation, "tool"]
    assert step("Thanks.", third)[1:] == (conversation, "append")


def test_an_answer_may_be_continued_twice(caller: Caller) -> None:
    root = caller.send("Where shall we begin?")
    named = {"previous_response_id": root.json["id"]}
    one = caller.send("Begin with the sails.", **named)
    caller.send("And then?", previous_response_id=one.json["id"])
    other = caller.send("Begin with the anchor.", **named)
    again = caller.send("Begin with the anchor.", **named)
    onward = caller.send("And the chain?", previous_response_id=other.json["id"])
    assert {a.said("conversation") for a in (root, one, other, again, onward)} == {root.said("conversation")}
    assert [seen(a)[1] for a in (other, again, onward)] == ["edit", "retry", "append"]


def test_an_answer_that_never_passed_here_starts_a_conversation(caller: Caller, upstream: ScriptedUpstream) -> None:
    foreign = Caller(caller.proxy, f"{caller.key}-other").send("I am somebody else.")
    answered = caller.send("Go on.", previous_response_id=foreign.json["id"])
    assert seen(answered) == ("main", "start")
    assert answered.said("conversation") != foreign.said("conversation")


@pytest.mark.parametrize("named", ["text", "object"])
def test_a_conversation_that_the_provider_holds_goes_on_at_its_newest_turn(
    caller: Caller, upstream: ScriptedUpstream, named: str
) -> None:
    opened = request(caller.proxy.port, "POST", "/v1/conversations", b"{}", as_headers(caller.key, {})).json["id"]
    caller.body["conversation"] = opened if named == "text" else {"id": opened}
    answers = [caller.send(text) for text in ("One.", "Two.", "Three.")]
    assert [seen(a)[1] for a in answers] == ["start", "append", "append"]
    assert len({a.said("conversation") for a in answers}) == 1


def test_a_history_that_was_held_and_is_sent_again_is_the_same(caller: Caller) -> None:
    first = caller.send("Where shall we begin?")
    second = caller.send("With the sails, I think.", previous_response_id=first.json["id"])
    sent = [
        user("Where shall we begin?"),
        *first.json["output"],
        user("With the sails, I think."),
        *second.json["output"],
    ]
    answered = caller.send([*sent, user("And then?")])
    assert (answered.said("conversation"), seen(answered)[1]) == (first.said("conversation"), "append")


def test_what_a_client_only_names_is_known(caller: Caller, upstream: ScriptedUpstream) -> None:
    def named(answered: Answered) -> list[Json]:
        return [{"type": "item_reference", "id": item["id"]} for item in answered.json["output"]]

    caller.body["user"] = "ann"
    upstream.play(Reply("Hm.", reasoning="hm"), Reply(FERRY, reasoning="so"), Reply("Yes."), Reply("No."), Reply("Oh."))
    history = [user("Hello.")]
    first = caller.send(history)
    history += [*named(first), user("What do you know?")]
    second = caller.send(history)
    history += [*named(second), user("Is that all?")]
    third = caller.send(history)
    assert upstream.received[-1].json["input"] == history
    window = [*history[-1:], *named(third), user("And then?")]
    fourth = caller.send(window)
    onward = caller.send([*window, *named(fourth), user(BOAT)])
    everything = (first, second, third, fourth, onward)
    assert len({a.said("conversation") for a in everything}) == 1
    assert [seen(a)[1] for a in everything[1:]] == ["append", "append", "compaction:truncate", "append"]
    assert "quarter past nine" in memory_in(upstream.received[-1].body)


def test_what_is_asked_otherwise_behind_a_summary_is_answered_alike_and_once_in_each_chain(
    caller: Caller, upstream: ScriptedUpstream
) -> None:
    def block() -> str:
        return memory_in(upstream.received[-1].body)

    history: list[Json] = [user(FERRY)]
    for number in range(4):
        answered = caller.send(history).json["output"]
        history += [*answered, user(filler(number))]
    caller.proxy.settle()
    compacted = [user("Summary of the conversation so far: islands and sails were talked about. " * 4), *history[-3:-1]]
    first = caller.send([*compacted, user(BOAT)])
    other = caller.send([*compacted, user("From which pier does one get to the northern islands?")])
    assert (first.said("event"), other.said("event")) == ("compaction:summary", "edit")
    assert FERRY in block() and "restore" in block()
    onward = [caller.send(words, previous_response_id=other.json["id"]) for words in (BOAT, f"Tell me. {BOAT}")]
    assert [each.said("event") for each in onward] == ["append", "edit"]
    assert "restore" not in block(), "the provider holds it"


def test_what_the_provider_holds_counts_as_pressure(caller: Caller, upstream: ScriptedUpstream) -> None:
    upstream.play(Reply("Noted.", prompt_tokens=64_000), Reply("Noted."))
    first = caller.send("A very long story.")
    second = caller.send("And?", previous_response_id=first.json["id"])
    assert float(first.said("pressure")) < 0.01 and float(second.said("pressure")) >= 0.5


def test_an_answer_that_was_not_given_is_tried_again(caller: Caller, upstream: ScriptedUpstream) -> None:
    first = caller.send("Where shall we begin?")
    upstream.play(Reply("overloaded", status=503), Reply("With the sails."))
    body = orjson.dumps(caller.body | {"input": "Tell me.", "previous_response_id": first.json["id"]})
    events = []
    for retry in ("0", "1"):
        headers = as_headers(caller.key, {"x_stainless_retry_count": retry})
        events.append(request(caller.proxy.port, "POST", PATH, body, headers).said("event"))
    assert events == ["append", "retry"]


def test_what_was_said_in_a_chain_is_not_said_again(caller: Caller, upstream: ScriptedUpstream) -> None:
    caller.body["user"] = "ann"
    caller.send(FERRY)
    caller.proxy.settle()
    first = caller.send(BOAT)
    assert "quarter past nine" in memory_in(upstream.received[-1].body)
    second = caller.send(BOAT.replace("When", "Tell me again: when"), previous_response_id=first.json["id"])
    assert seen(second) == ("main", "append")
    assert memory_in(upstream.received[-1].body) == ""


# --- compaction ----------------------------------------------------------------------------------


def talk(caller: Caller, turns: int) -> list[Json]:
    """A client that sends its whole history: a fact first, and then so many other things."""
    history: list[Json] = []
    for text in ("What do you know of the islands?", *map(filler, range(turns))):
        history += [user(text), *caller.send([*history, user(text)]).json["output"]]
    return history


def compacted_by_endpoint(caller: Caller, history: list[Json]) -> Answered:
    return caller.send(history, path=f"{PATH}/compact")


def compacted_by_trigger(caller: Caller, history: list[Json]) -> Answered:
    return caller.send([*history, {"type": "compaction_trigger"}], tools=[READ])


@pytest.mark.parametrize("compact", [compacted_by_endpoint, compacted_by_trigger])
def test_what_a_provider_compacted_is_restored(caller: Caller, upstream: ScriptedUpstream, compact: Any) -> None:
    upstream.script = lambda body: FERRY if len(body["input"]) == 1 else "That is noted and will be kept in mind."
    caller.body["tools"] = [READ]
    history = talk(caller, 4)
    home = caller.send([*history, user("Go on.")]).said("conversation")
    compaction = compact(caller, history)
    assert seen(compaction) == ("side", "start") and compaction.said("conversation") == home
    assert upstream.received[-1].json["input"][: len(history)] == history
    caller.proxy.settle()
    kept = [item for item in history if item.get("role") == "user"][-1:]
    opaque = [item for item in compaction.json["output"] if item["type"] == "compaction"]
    answered = caller.send([*kept, *opaque, user(BOAT)])
    assert seen(answered) == ("main", "compaction:summary") and answered.said("conversation") == home
    sent = upstream.received[-1].json["input"]
    assert sent[:-1] == [*kept, *opaque]
    assert "quarter past nine" in memory_in(orjson.dumps(sent[-1]))
    onward = caller.send([*kept, *opaque, user(BOAT), *answered.json["output"], user("Thank you.")])
    assert (seen(onward)[1], onward.said("conversation")) == ("append", home)


def test_a_chain_that_is_compacted_by_name_is_restored(caller: Caller, upstream: ScriptedUpstream) -> None:
    upstream.script = lambda body: FERRY if "previous_response_id" not in body else "That is noted, and kept in mind."
    answered = caller.send("What do you know of the islands?")
    home = answered.said("conversation")
    for number in range(4):
        answered = caller.send(filler(number), previous_response_id=answered.json["id"])
    compaction = caller.send(path=f"{PATH}/compact", previous_response_id=answered.json["id"])
    assert seen(compaction) == ("side", "start") and compaction.said("conversation") == home
    caller.proxy.settle()
    answered = caller.send([*compaction.json["output"], user(BOAT)])
    assert seen(answered) == ("main", "compaction:summary") and answered.said("conversation") == home
    assert "quarter past nine" in memory_in(orjson.dumps(upstream.received[-1].json["input"][-1]))


def test_what_the_provider_compacts_on_its_way_is_restored(caller: Caller, upstream: ScriptedUpstream) -> None:
    opened = request(caller.proxy.port, "POST", "/v1/conversations", b"{}", as_headers(caller.key, {})).json["id"]
    caller.body["conversation"] = opened
    upstream.play(FERRY)
    home = caller.send("What do you know of the ferry?").said("conversation")
    window = {"type": "compaction", "id": "cmp_1", "encrypted_content": "b3BhcXVl"}
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Noted."}]}
    upstream.play(Reply(body=orjson.dumps({"id": "resp_a", "output": [window, said]})), "From the pier.", "Welcome.")
    assert seen(caller.send(filler(1)))[1] == "append"
    caller.proxy.settle()
    after = caller.send(BOAT)
    assert (after.said("conversation"), seen(after)[1]) == (home, "compaction:summary")
    assert "quarter past nine" in memory_in(upstream.received[-1].body)
    assert seen(caller.send("Thank you."))[1] == "append"


def test_a_compaction_that_is_continued_by_its_name_is_restored(caller: Caller, upstream: ScriptedUpstream) -> None:
    upstream.play(FERRY, "", "Noted.")
    first = caller.send("What do you know of the ferry?")
    trigger = [{"type": "compaction_trigger"}]
    compaction = caller.send(trigger, previous_response_id=first.json["id"])
    assert seen(compaction)[0] == "side" and compaction.json["output"][0]["type"] == "compaction"
    caller.proxy.settle()
    after = caller.send(BOAT, previous_response_id=compaction.json["id"])
    assert (after.said("conversation"), seen(after)[1]) == (first.said("conversation"), "compaction:summary")
    assert "quarter past nine" in memory_in(upstream.received[-1].body)


def test_two_users_who_say_the_same_are_told_apart_by_what_only_the_provider_can_read(
    caller: Caller, upstream: ScriptedUpstream
) -> None:
    upstream.script = lambda _: (
        f"This is answer {len(upstream.received)} of mine, and it will be kept in mind for long."
    )
    histories = [talk(caller, 3), talk(caller, 3)]
    homes, compactions = [], []
    for history in histories:
        homes.append(caller.send([*history, user("Go on.")]).said("conversation"))
        compactions.append(compacted_by_endpoint(caller, history))
    for home, compaction in zip(homes, compactions, strict=True):
        answered = caller.send([*compaction.json["output"], user("Where were we?")])
        assert (answered.said("conversation"), seen(answered)[1]) == (home, "compaction:summary")


# --- other requests, other wires -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/responses/{}"),
        ("GET", "/v1/responses/{}/input_items"),
        ("POST", "/v1/responses/{}/cancel"),
        ("DELETE", "/v1/responses/{}"),
    ],
)
def test_requests_about_answers_pass(caller: Caller, upstream: ScriptedUpstream, method: str, path: str) -> None:
    id = caller.send("Hello.").json["id"]
    answered = request(caller.proxy.port, method, path.format(id), headers=as_headers(caller.key, {}))
    assert answered.status == 200 and not [name for name in answered.headers if name.startswith("x-palimpsest")]
    assert (upstream.received[-1].method, upstream.received[-1].path) == (method, path.format(id))


def test_what_is_said_on_one_wire_is_recalled_on_another(proxy: Proxy, upstream: ScriptedUpstream, key: str) -> None:
    upstream.script = lambda _: "That is noted and will be kept in mind for what comes next."
    Conversation(proxy, key, extra={"user": "ann"}).say(FERRY)
    proxy.settle()
    Caller(proxy, key, {"model": "gpt-4o", "user": "ann"}).send(BOAT)
    assert "quarter past nine" in memory_in(upstream.received[-1].body)
    Caller(proxy, f"{key}-other", {"model": "gpt-4o", "user": "ann"}).send(BOAT)
    assert memory_in(upstream.received[-1].body) == ""
