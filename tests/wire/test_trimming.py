"""A body without some of its messages: the rest as the client wrote it."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given, settings
from palimpsest.domain import Omission, Trim
from palimpsest.domain.errors import WireError
from palimpsest.wire import chat, messages, responses
from palimpsest.wire.trimming import STUB, limited, stub_chars, trimmed

from tests.overflowing import CHAT, MESSAGES, RESPONSES, WIRES, Call, Exchange, body_of, talks

LONG = "x" * 500


def left(body: bytes, drops: set[int] = frozenset(), stubs: set[int] = frozenset(), wire=chat) -> bytes:  # type: ignore[no-untyped-def,assignment]
    return trimmed(Trim(wire.parse(body), Omission(frozenset(drops), frozenset(stubs))), wire).body


def test_what_stays_is_as_the_client_wrote_it() -> None:
    body = (
        b'{ "temperature":1.0e0, "messages" : [ {"role":"system","content":"s"} ,\n'
        b' {"role":"user","content":"\\u0061"},'
        b'{"role":"assistant","content":"b"},{"content":"c","role":"user","n":1.50}] ,"x":{}}'
    )
    assert left(body, {1, 2}) == (
        b'{ "temperature":1.0e0, "messages" : [ {"role":"system","content":"s"},{"content":"c","role":"user","n":1.50}]'
        b' ,"x":{}}'
    )


@pytest.mark.parametrize("path", [CHAT, MESSAGES, RESPONSES])
def test_results_become_a_few_words_and_calls_lose_their_arguments(path: str) -> None:
    body = body_of(path, (Exchange("Read it.", ((Call("a", 500, 500), Call("b", 5, 500)),)),))
    wire = WIRES[path]
    read = wire.parse(orjson.dumps(body))
    stubs = {at for at, message in enumerate(read.messages) if message.answers_call == "a" or message.calls}
    after = wire.parse(left(read.body, stubs=stubs, wire=wire))
    said = {message.answers_call: message.text for message in after.messages if message.role == "tool"}
    assert said == {"a": STUB, "b": "y" * 500}
    calls = [call for message in after.messages for call in message.calls]
    assert [(call.id, call.name) for call in calls] == [("a", "read"), ("b", "read")]
    assert calls[0].arguments == "{}" and orjson.loads(calls[1].arguments) == {"path": "xxxxx"}


@pytest.mark.parametrize("path", [CHAT, MESSAGES, RESPONSES])
def test_result_without_its_middle_keeps_both_ends_and_says_how_much_is_missing(path: str) -> None:
    wire = WIRES[path]
    talk = (Exchange("Read it.", ((Call("a", 500, 5000), Call("b", 5, 500)),)),)
    read = wire.parse(orjson.dumps(body_of(path, talk)))
    at = next(at for at, message in enumerate(read.messages) if message.answers_call == "a")
    after = trimmed(Trim(read, Omission(clips={at: 1001})), wire)
    changed = [(one.text, other.text) for one, other in zip(read.messages, after.messages, strict=True) if one != other]
    gap = "[3,999 characters of this tool result left out: it is longer than the context window]"
    assert changed == [("y" * 5000, f"{'y' * 501}\n{gap}\n{'y' * 500}")]


def test_items_that_are_no_messages_stay() -> None:
    items = [
        {"role": "user", "content": "a"},
        {"type": "configuration_update", "model": "m"},
        {"type": "reasoning", "id": "rs", "summary": []},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "b"}]},
        {"role": "user", "content": "c"},
    ]
    body = orjson.dumps({"input": items})
    assert orjson.loads(left(body, {0, 1}, wire=responses))["input"] == [items[1], items[4]]


def test_a_part_of_a_message_of_the_body_is_changed_alone() -> None:
    results = [{"type": "tool_result", "tool_use_id": id, "content": LONG, "is_error": False} for id in ("a", "b")]
    said = {"role": "user", "content": [*results, {"type": "text", "text": "stop"}]}
    calls = [{"type": "tool_use", "id": id, "name": "read", "input": {}} for id in ("a", "b")]
    listed = [{"role": "user", "content": "u"}, {"role": "assistant", "content": calls}, said]
    body = orjson.dumps({"messages": listed})
    after = orjson.loads(left(body, stubs={2}, wire=messages))["messages"]
    assert after[:2] == listed[:2]
    assert after[2]["content"] == [{**results[0], "content": STUB}, results[1], said["content"][2]]


@pytest.mark.parametrize(
    ("raw", "is_stubbed"),
    [
        ({"role": "tool", "content": LONG, "tool_call_id": "a"}, True),
        ({"role": "tool", "content": "short", "tool_call_id": "a"}, False),
        ({"role": "user", "content": LONG}, False),
        ({"role": "tool", "content": [{"type": "shell_call_output", "output": [{"stdout": LONG}]}]}, False),
        ({"role": "assistant", "tool_calls": [{"id": "a", "function": {"arguments": f"{{{LONG}}}"}}]}, True),
        ({"role": "assistant", "tool_calls": [{"id": "a", "custom": {"name": "f", "input": LONG}}]}, False),
    ],
)  # fmt: skip
def test_only_long_results_and_arguments_become_stubs(raw: dict[str, object], is_stubbed: bool) -> None:
    from palimpsest.wire.message import read_message

    assert bool(stub_chars(read_message(raw))) == is_stubbed


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens", "max_output_tokens"])
@pytest.mark.parametrize("where", ['%s,"messages":[]', '"messages":[1, "max_tokens"],%s'])
def test_limit_of_the_answer_is_the_only_thing_that_changes(name: str, where: str) -> None:
    body = ("{" + where + ',"temperature":0.10}') % f'"{name}" : 5000'
    assert limited(body.encode(), 70) == body.replace("5000", "70").encode()
    assert limited(body.encode(), 5000) == body.encode()


def test_body_that_names_no_limit_stays_as_it_is() -> None:
    body = b'{"messages":[],"max_tokens":null,"stop":["max_tokens"]}'
    assert limited(body, 70) == body


def test_doubtful_layout_is_left_alone() -> None:
    body = b'{"messages":[{"role":"user","content":"a"}],"messages":[{"role":"user","content":"b"}]}'
    with pytest.raises(WireError):
        left(body, {0})


@settings(deadline=None)
@given(talks())
def test_nothing_left_out_is_nothing_changed(talk: tuple[Exchange, ...]) -> None:
    for path, wire in WIRES.items():
        body = orjson.dumps(body_of(path, talk))
        assert left(body, wire=wire) == body
