"""Requests are read without loss, added to without touching the rest, and answers are put together."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from palimpsest.domain import Chat, Completion, Insertion, Message, ToolCall
from palimpsest.domain.errors import WireError
from palimpsest.wire.chat import FORM, parse, render, reply
from palimpsest.wire.message import read_message
from palimpsest.wire.splice import splice

BLOCK = '<palimpsest-memory kind="recall">\nQuotes.\n[2026-03-05]\nuser: a fact\n</palimpsest-memory>'

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
FIELDS = st.sampled_from(
    ("role", "content", "name", "tool_calls", "function_call", "tool_call_id", "refusal", "type", "text", "function")
) | st.sampled_from(("arguments", "image_url", "url", "input_audio", "data", "custom", "input", "id", "source"))
WORDS = st.sampled_from(
    ["user", "assistant", "tool", "system", "text", "image_url", "input_audio", "function", "hello"]
)
MESSAGES = st.lists(
    st.dictionaries(
        FIELDS,
        st.recursive(
            WORDS | JSON, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=4)
        ),
        max_size=5,
    )
    | JSON,
    max_size=4,
)
WIRE_MESSAGES = st.lists(
    st.fixed_dictionaries(
        {"role": WORDS, "content": WORDS | st.text() | st.none() | st.just([{"type": "text", "text": "a part"}])},
        optional={"extra": JSON, "tool_call_id": st.text()},
    ),
    min_size=1,
    max_size=4,
)


def chat(*messages: Any, **fields: Any) -> Chat:
    return parse(orjson.dumps({"model": "m", "messages": list(messages), **fields}))


def heard(payloads: list[bytes], streamed: bool) -> tuple[Message | None, int | None]:
    completion = reply(payloads, streamed)
    return completion.message, completion.prompt_tokens


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


# --- parse ---------------------------------------------------------------------------------------


def test_a_request_is_read() -> None:
    read = chat(
        {"role": "system", "content": "be brief"},
        user("hello"),
        model="gpt-4o",
        user="ann",
        stream=True,
        max_tokens=100,
        tools=[
            {"type": "function", "function": {"name": "read_file"}},
            {"type": "custom", "custom": {"name": "shell"}},
            "no tool",
            {"type": "function", "function": {"name": 7}},
        ],
        functions=[{"name": "old"}, {"name": 7}],
    )
    assert (read.model, read.user, read.stream, read.max_reply_tokens) == ("gpt-4o", "ann", True, 100)
    assert read.tool_names == ("read_file", "shell", "old")
    assert [(m.role, m.text) for m in read.messages] == [("system", "be brief"), ("user", "hello")]
    assert [m.text for m in read.history] == ["hello"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"max_completion_tokens": 7, "max_tokens": 9}, 7),
        ({"max_completion_tokens": None, "max_tokens": 9}, 9),
        ({"max_tokens": -1}, None),
        ({"max_tokens": True}, None),
        ({"max_tokens": "9"}, None),
    ],
)
def test_the_newer_name_of_the_reply_limit_counts_and_nonsense_does_not(fields: dict[str, Any], expected: Any) -> None:
    assert chat(user("x"), **fields).max_reply_tokens == expected


def test_fields_of_the_wrong_type_that_we_do_not_need_are_read_as_absent() -> None:
    read = chat(user("x"), model=None, user=7, stream="yes", tools={"a": 1})
    assert (read.model, read.user, read.stream, read.tool_names) == ("", "", False, ())


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not json",
        b"\xff\xfe",
        b"[]",
        b"{}",
        b'{"messages": {}}',
        b'{"messages": []}',
        b'{"messages": ["x"]}',
        b'{"messages": [{"content": "no role"}]}',
        b'{"messages": [{"role": 7, "content": "x"}]}',
        b'{"messages": [{"role": "user", "content": 7}]}',
        b'{"messages": [{"role": "user", "content": {"a": 1}}]}',
        b'{"messages": [{"role": "user", "content": ["x"]}]}',
        b'{"messages": [{"role": "user", "content": "x", "tool_calls": {"a": 1}}]}',
        b'{"messages": [{"role": "user", "content": "x", "tool_calls": [7]}]}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_chat_request_is_said_to_be_none(body: bytes) -> None:
    with pytest.raises(WireError):
        parse(body)


def test_arguments_nested_by_the_hundred_are_read() -> None:
    arguments = "[" * 500 + "]" * 500
    call = f'{{"function": {{"name": "f", "arguments": {arguments}}}}}'
    body = f'{{"messages": [{{"role": "assistant", "content": null, "tool_calls": [{call}]}}]}}'
    assert parse(body.encode()).messages[0].calls[0].arguments == arguments


# --- render --------------------------------------------------------------------------------------


def test_nothing_to_add_gives_the_very_same_bytes() -> None:
    body = b' {"messages" : [ {"role":"user", "content":"a\\u0062", "n": 1.0e2} ], "messages2": 1}\n'
    assert render(parse(body), []) is body or render(parse(body), []) == body


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("hello", "block\n\nhello"),
        ("", "block\n\n"),
        (None, "block"),
        ([], [{"type": "text", "text": "block"}]),
        ([{"type": "text", "text": "a"}], [{"type": "text", "text": "block"}, {"type": "text", "text": "a"}]),
    ],
)
def test_text_is_added_in_the_form_that_the_content_has(content: Any, expected: Any) -> None:
    before = chat({"role": "system", "content": "s"}, user(content), temperature=1)
    after = orjson.loads(render(before, [Insertion(1, "block")]))
    assert after == {**before.raw, "messages": [before.raw["messages"][0], user(expected)]}


def test_a_message_without_content_gets_one() -> None:
    after = orjson.loads(render(chat({"role": "user"}), [Insertion(0, "block")]))
    assert after["messages"] == [{"content": "block", "role": "user"}]


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_message_of_its_own_stands_in_front_of_its_index(at: int) -> None:
    before = chat(user("one"), user("two"))
    after = orjson.loads(render(before, [Insertion(at, "block", role="system")]))["messages"]
    assert after == [*before.raw["messages"][:at], {"role": "system", "content": "block"}, *before.raw["messages"][at:]]


def test_several_insertions_keep_their_order() -> None:
    insertions = [Insertion(1, "b"), Insertion(0, "a"), Insertion(1, "c"), Insertion(1, "d", role="system")]
    after = orjson.loads(render(chat(user("one"), user(None)), insertions))["messages"]
    assert after == [user("a\n\none"), {"role": "system", "content": "d"}, user("b\n\nc")]


def test_every_byte_of_the_client_stays() -> None:
    body = (
        b'{ "big": 123456789012345678901234567890, "f": 1.0e+2, "dup": 1, "dup": 2, "esc": "\\u00e9\\/",\n'
        b'\t"messages" :'
        b' [ {"role" : "user", "n": 1e40, "content" : "\\u0061\xc3\xa9" , "x": -0} , {"role":"user","content": [ ] } ]'
        b' , "tail": [1,2 ] }\r\n'
    )
    made = render(parse(body), [Insertion(0, 'say "hi"\n'), Insertion(1, "b")])
    added = b'say \\"hi\\"\\n\\n\\n', b'{"type":"text","text":"b"}'
    assert made == body.replace(b'"\\u0061', b'"' + added[0] + b"\\u0061").replace(b"[ ] }", b"[" + added[1] + b" ] }")


@pytest.mark.parametrize(
    "body",
    [
        b'{"messages":[{"role":"user","content":"a"}],"messages":[{"role":"user","content":"b"}]}',
        b'{"messages":[{"role":"user","content":"a"}],"message\\u0073":[{"role":"user","content":"b"}]}',
        b'{"messages":[{"role":"user","content":"a","content":"b"}]}',
        b'{"messages":[{"role":"user","content":"a"}],"x":%s}' % (b"[" * 1000 + b"]" * 1000),
    ],
)
def test_where_it_is_doubtful_what_the_body_means_nothing_is_added(body: bytes) -> None:
    with pytest.raises(WireError):
        render(parse(body), [Insertion(0, "block")])


@pytest.mark.parametrize("insertion", [Insertion(2, "x"), Insertion(-1, "x"), Insertion(3, "x", role="user")])
def test_an_insertion_into_no_message_is_refused(insertion: Insertion) -> None:
    with pytest.raises(WireError, match="no message"):
        render(chat(user("a"), user("b")), [insertion])


def test_a_body_without_messages_cannot_be_added_to() -> None:
    with pytest.raises(WireError, match="no messages"):
        splice(b"{}", [Insertion(0, "x")], FORM)


def test_a_text_that_is_no_unicode_is_refused() -> None:
    with pytest.raises(WireError):
        render(chat(user("a")), [Insertion(0, "\ud800")])


def test_what_is_added_is_taken_out_again_by_reading() -> None:
    before = chat(user("hello"), user([{"type": "text", "text": "hello"}]))
    after = parse(render(before, [Insertion(0, BLOCK), Insertion(1, BLOCK)]))
    assert [m.text for m in after.messages] == [m.text for m in before.messages]


@given(st.one_of(st.binary(max_size=64), JSON.map(json.dumps).map(str.encode)))
def test_any_body_is_read_or_refused(body: bytes) -> None:
    _same_bytes_or_refused(body)


@given(MESSAGES, st.dictionaries(st.text(max_size=4), JSON, max_size=3))
def test_any_messages_are_read_or_refused(messages: list[Any], rest: dict[str, Any]) -> None:
    _same_bytes_or_refused(_dumps({**rest, "messages": messages}))


@given(WIRE_MESSAGES, st.dictionaries(st.text(max_size=4), JSON, max_size=3), st.data())
def test_an_addition_changes_one_message_and_nothing_else(
    messages: list[Any], rest: dict[str, Any], data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(messages) - 1))
    text = data.draw(st.text())
    body = _dumps({**rest, "messages": messages})
    before = orjson.loads(body)
    after = orjson.loads(render(parse(body), [Insertion(at, text)]))
    content = messages[at].get("content")
    if isinstance(content, str):
        before["messages"][at]["content"] = f"{text}\n\n{content}"
    elif content is None:
        before["messages"][at]["content"] = text
    else:
        before["messages"][at]["content"] = [{"type": "text", "text": text}, *content]
    assert after == before


def _dumps(value: Any) -> bytes:
    return json.dumps(value).encode()  # unlike orjson it writes integers beyond 64 bit


def _same_bytes_or_refused(body: bytes) -> None:
    try:
        read = parse(body)
    except WireError:
        return
    assert render(read, []) == body
    for message in read.messages:
        assert read_message(message.raw) == message


# --- reply ---------------------------------------------------------------------------------------


def delta(index: int = 0, **fields: Any) -> bytes:
    return orjson.dumps({"choices": [{"index": index, "delta": fields}]})


def test_an_unstreamed_answer_is_read() -> None:
    raw: dict[str, Any] = {"role": "assistant", "content": "hello", "annotations": [], "audio": None}
    body = orjson.dumps({"choices": [{"index": 0, "message": raw}], "usage": {"prompt_tokens": 12}})
    for pieces in ([body], [body[:9], body[9:]]):
        message, tokens = heard(pieces, streamed=False)
        assert message == Message("assistant", "hello", raw)
        assert tokens == 12


def test_a_streamed_answer_is_put_together() -> None:
    message, tokens = heard(
        [
            delta(role="assistant", content="", refusal=None),
            delta(content="Hel"),
            delta(content="lo", reasoning_content="hm"),
            delta(reasoning_content="m"),
            delta(index=1, content="another choice"),
            b'{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}',
            b'{"choices":[],"usage":{"prompt_tokens":34}}',
            b"[DONE]",
        ],
        streamed=True,
    )
    assert message is not None
    assert (message.role, message.text, tokens) == ("assistant", "Hello", 34)
    assert message.raw["reasoning_content"] == "hmm"


def test_streamed_calls_are_put_together_by_index() -> None:
    def call(index: int | None, **fields: Any) -> bytes:
        return delta(tool_calls=[fields if index is None else {"index": index, **fields}])

    message, _ = heard(
        [
            delta(role="assistant", content=None),
            call(0, id="c0", type="function", function={"name": "read", "arguments": ""}),
            call(1, id="c1", type="function", function={"name": "write", "arguments": '{"b"'}),
            call(0, id="c0", type="function", function={"name": "read", "arguments": '{"a"'}),
            call(0, function={"arguments": ":1}"}),
            call(1, function={"arguments": ":2}"}),
            call(None, id="c2", function={"name": "whole", "arguments": "{}"}),
        ],
        streamed=True,
    )
    assert message is not None
    calls = (ToolCall("c0", "read", '{"a":1}'), ToolCall("c1", "write", '{"b":2}'), ToolCall("c2", "whole", "{}"))
    assert message.calls == calls
    assert message.raw["content"] is None
    function = {"name": "read", "arguments": '{"a":1}'}
    assert message.raw["tool_calls"][0] == {"id": "c0", "type": "function", "function": function}


def test_streamed_refusals_and_legacy_calls_are_heard() -> None:
    assert _heard(delta(refusal="I will "), delta(refusal="not")).text == "I will not"
    legacy = delta(function_call={"name": "f", "arguments": "{"}), delta(function_call={"arguments": "}"})
    assert _heard(*legacy).calls == (ToolCall("", "f", "{}"),)


def test_an_interrupted_stream_leaves_what_was_heard() -> None:
    assert _heard(delta(role="assistant", content="half a sen")).text == "half a sen"


def test_the_message_put_together_is_the_one_that_clients_send_back() -> None:
    heard = _heard(delta(role="assistant", content=f"{BLOCK}\n\nas I"), delta(content=" said"))
    assert heard.text == read_message({"role": "assistant", "content": f"{BLOCK}\n\nas I said"}).text


@pytest.mark.parametrize(
    "payloads",
    [
        [],
        [b"garbage"],
        [b"\xff"],
        [b"[1]"],
        [b'{"choices": 7}'],
        [b'{"choices": [7]}'],
        [b'{"error": {"message": "no"}}'],
    ],
)
def test_garbage_says_nothing(payloads: list[bytes]) -> None:
    assert reply(payloads, streamed=True) == Completion()
    assert reply(payloads, streamed=False) == Completion()


def test_a_message_that_is_none_leaves_the_usage() -> None:
    body = b'{"choices":[{"message":{"content":7}}],"usage":{"prompt_tokens":5}}'
    assert reply([body], streamed=False) == Completion(prompt_tokens=5)


def test_nesting_without_end_says_nothing() -> None:
    body = b'{"choices":[{"delta":' + b'{"a":' * 1000 + b"1" + b"}" * 1000 + b"}]}"
    assert reply([body], streamed=True) == Completion()


@given(st.lists(MESSAGES.map(lambda messages: _dumps({"choices": [{"delta": m} for m in messages]})), max_size=4))
def test_no_answer_makes_the_reader_fail(payloads: list[bytes]) -> None:
    reply(payloads, streamed=True)
    reply(payloads, streamed=False)


def _heard(*payloads: bytes) -> Message:
    message, _ = heard(payloads, streamed=True)
    assert message is not None
    return message
