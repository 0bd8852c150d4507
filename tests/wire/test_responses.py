"""Items are read as the messages that they make, added to without touching the rest, and answers are put together."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from palimpsest.domain import Chat, Completion, Insertion, Json, ToolCall
from palimpsest.domain.errors import WireError
from palimpsest.wire.fingerprint import normalise
from palimpsest.wire.message import inline_reference, parts_by_id, read_message, with_referred
from palimpsest.wire.responses import parse, render, reply
from palimpsest.wire.sse import SSETap
from palimpsest.wire.storage_codec import from_stored, to_stored

THOUGHT: Json = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2VjcmV0"}
SAID: Json = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "I will look.", "annotations": []}],
}
CALL: Json = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "read", "arguments": '{"path": "a"}'}
RESULT: Json = {"type": "function_call_output", "call_id": "c1", "output": "the file"}
COMPACTION: Json = {"type": "compaction", "id": "cmp_1", "encrypted_content": "b3BhcXVl"}
LIMIT_BYTES = 1_000_000

FIELDS = st.sampled_from(
    ("role", "content", "type", "text", "call_id", "name", "arguments", "output", "id", "encrypted_content", "summary")
) | st.sampled_from(("input", "action", "image_url", "instructions", "tools", "previous_response_id", "conversation"))
WORDS = st.sampled_from(
    ("user", "assistant", "system", "developer", "message", "reasoning", "function_call", "function_call_output")
) | st.sampled_from(
    (
        "compaction",
        "compaction_trigger",
        "configuration_update",
        "item_reference",
        "input_text",
        "output_text",
        "input_image",
    )
)
VALUES = st.recursive(
    WORDS | st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(FIELDS, inner, max_size=5),
    max_leaves=20,
)


def chat(*items: Any, **fields: Any) -> Chat:
    return parse(orjson.dumps({"model": "m", "input": list(items), **fields}))


def user(content: Any) -> Json:
    return {"role": "user", "content": content}


def event(kind: str, **said: Any) -> bytes:
    return orjson.dumps({"type": kind, **said})


def stream(*items: Json, upto: str = "response.completed") -> list[bytes]:
    """The events of an answer, item by item as a provider sends them."""
    payloads = [event("response.created", response={"id": "resp_1", "output": []})]
    for index, item in enumerate(items):
        where = {"output_index": index, "item_id": item["id"]}
        payloads.append(event("response.output_item.added", **where, item=item | {"content": [], "arguments": ""}))
        for at, part in enumerate(item.get("content", ())):
            for piece in part["text"].split(" "):
                delta = {"content_index": at, "delta": f"{piece} "}
                payloads.append(event("response.output_text.delta", **where, **delta))
        if "arguments" in item:
            payloads.append(event("response.function_call_arguments.delta", **where, delta=item["arguments"]))
        payloads.append(event("response.output_item.done", **where, item=item))
    response = {"id": "resp_1", "output": list(items), "usage": {"input_tokens": 42, "output_tokens": 7}}
    return [*payloads, event(upto, response=response)]


# --- parse ---------------------------------------------------------------------------------------


def test_a_request_is_read() -> None:
    read = chat(
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "no jokes"}]},
        user("hello"),
        instructions="be brief",
        user="ann",
        stream=True,
        max_output_tokens=100,
        tools=[
            {"type": "function", "name": "read_file"},
            {"type": "custom", "name": "shell"},
            {"type": "namespace", "name": "fs", "tools": [{"type": "function", "name": "list"}]},
            {"type": "web_search"},
            "no tool",
            {"description": "no name"},
        ],
    )
    assert (read.model, read.user, read.stream, read.max_reply_tokens) == ("m", "ann", True, 100)
    assert read.tool_names == ("read_file", "shell", "list", "web_search")
    assert [(m.role, m.text) for m in read.messages] == [
        ("system", "be brief"),
        ("developer", "no jokes"),
        ("user", "hello"),
    ]
    assert read.places == (-1, 0, 1)


def test_a_text_stands_for_one_message_of_the_users() -> None:
    read = parse(b'{"model": "m", "input": "hello"}')
    assert [(m.role, m.text) for m in read.messages] == [("user", "hello")]


def test_what_a_model_said_in_one_go_is_one_message() -> None:
    read = chat(user("look"), THOUGHT, SAID, CALL, RESULT, {**SAID, "id": "msg_2"}, user("thanks"))
    assert [m.role for m in read.messages] == ["user", "assistant", "tool", "assistant", "user"]
    assert read.places == (0, 1, 4, 5, 6)
    said, result = read.messages[1:3]
    assert (said.text, said.calls) == ("I will look.", (ToolCall("c1", "read", '{"path": "a"}'),))
    assert said.raw["content"] == [THOUGHT, SAID, CALL]
    assert (result.text, result.answers_call) == ("the file", "c1")


def test_thoughts_are_kept_and_not_said() -> None:
    with_thought, without = chat(THOUGHT, SAID).messages, chat(SAID).messages
    assert normalise(with_thought[0]) == normalise(without[0])
    assert with_thought[0].raw["content"][0] is not None


def test_assistant_messages_need_no_type() -> None:
    assert normalise(chat({"role": "assistant", "content": "hi"}).messages[0]) == "assistant\nhi"


@pytest.mark.parametrize(
    ("item", "role", "text", "answers"),
    [
        ({"type": "custom_tool_call_output", "call_id": "c2", "output": "ok"}, "tool", "ok", "c2"),
        (
            {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "a"}]},
            "tool",
            "a",
            "c",
        ),
        ({"type": "computer_call_output", "call_id": "c", "output": {"type": "input_image"}}, "tool", "", "c"),
        ({"type": "mcp_approval_response", "approve": True}, "tool", "", ""),
        ({"type": "web_search_call", "id": "ws_1", "action": {"query": "x"}}, "assistant", "", ""),
        ({"type": "something_new", "text": "?"}, "assistant", "", ""),
        ({}, "assistant", "", ""),
    ],
)
def test_other_items_are_kept_with_whoever_they_come_from(item: Json, role: str, text: str, answers: str) -> None:
    message = chat(item).messages[0]
    assert (message.role, message.text, message.answers_call) == (role, text, answers)
    assert message.raw == {"role": role, "content": [item]} and message.calls == ()


def test_custom_calls_are_calls() -> None:
    item = {"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": "*** Begin"}
    assert chat(item).messages[0].calls == (ToolCall("c2", "patch", "*** Begin"),)


def test_media_are_read_by_reference() -> None:
    parts = [{"type": "input_image", "image_url": "https://x/y.png"}, {"type": "input_file", "file_id": "file-1"}]
    assert chat(user(parts)).messages[0].media == ("https://x/y.png", "file-1")


def test_a_compaction_is_a_message_of_its_own() -> None:
    read = chat(user("a"), COMPACTION, SAID, user("b"))
    assert [m.role for m in read.messages] == ["user", "assistant", "assistant", "user"]
    assert [m.opaque for m in read.messages] == [(), (inline_reference("b3BhcXVl"),), (), ()]
    assert normalise(chat(COMPACTION).messages[0]) != normalise(
        chat({**COMPACTION, "encrypted_content": "eA=="}).messages[0]
    )


def test_an_answer_that_was_compacted_on_its_way_is_known_with_and_without_the_compaction() -> None:
    heard = reply([orjson.dumps({"id": "resp_1", "output": [COMPACTION, SAID]})], False).message
    assert heard is not None and heard.opaque == (inline_reference("b3BhcXVl"),)
    assert normalise(heard) == normalise(chat(user("a"), COMPACTION, SAID).messages[2])


def test_what_is_only_named_is_read_where_it_is_known() -> None:
    named = [{"type": "item_reference", "id": "rs_1"}, {"id": "msg_1"}, CALL]
    message = chat(user("a"), *named).messages[1]
    assert (message.refers, message.text) == (("rs_1", "msg_1"), "")
    known = parts_by_id(chat(THOUGHT, SAID).messages[0])
    assert with_referred(message, known) == chat(THOUGHT, SAID, CALL).messages[0]
    assert with_referred(message, {"msg_2": SAID}) is message
    half = with_referred(message, {"msg_1": SAID})
    assert (half.text, half.refers) == ("I will look.", ("rs_1",))
    alone = [chat({"type": "item_reference", "id": id}).messages[0] for id in ("msg_1", "msg_2")]
    assert normalise(alone[0]) != normalise(alone[1])


def test_a_trigger_says_nothing() -> None:
    assert [m.role for m in chat(user("a"), {"type": "compaction_trigger"}).messages] == ["user"]
    assert [m.role for m in chat(user("a"), {"type": "configuration_update", "reasoning": {}}).messages] == ["user"]


def test_instructions_may_be_items() -> None:
    read = chat(user("x"), instructions=[{"type": "message", "role": "developer", "content": "be brief"}])
    assert [(m.role, m.text) for m in read.messages] == [("developer", "be brief"), ("user", "x")]
    assert read.places == (-1, 0)


@pytest.mark.parametrize("body", [b"{}", b'{"input": null}', b'{"input": []}', b'{"prompt": {"id": "pmpt_1"}}'])
def test_a_request_may_leave_its_input_to_the_provider(body: bytes) -> None:
    assert parse(body).messages == ()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'{"input": 7}',
        b'{"input": {}}',
        b'{"input": ["x"]}',
        b'{"input": [{"role": 7, "content": "x"}]}',
        b'{"input": [{"role": "user", "content": 7}]}',
        b'{"input": [{"role": "user", "content": ["x"]}]}',
        b'{"instructions": [7]}',
    ],
)
def test_what_is_no_request_is_said_to_be_none(body: bytes) -> None:
    with pytest.raises(WireError):
        parse(body)


@given(st.dictionaries(FIELDS, VALUES) | st.fixed_dictionaries({"input": st.lists(VALUES)}) | VALUES)
def test_whatever_comes_goes_on_as_it_came(value: Any) -> None:
    body = json.dumps(value).encode()
    try:
        read = parse(body)
    except WireError:
        return
    assert render(read, []) == body
    for message in read.messages:
        assert read_message(message.raw) == message


@given(st.lists(VALUES, max_size=4), st.booleans())
def test_whatever_is_answered_is_heard_without_complaint(values: list[Any], streamed: bool) -> None:
    assert isinstance(reply([json.dumps(value).encode() for value in values], streamed), Completion)


# --- stored --------------------------------------------------------------------------------------


@pytest.mark.parametrize("items", [[SAID], [THOUGHT, SAID, CALL], [RESULT], [COMPACTION], [user("hi")]])
def test_what_is_stored_is_read_back_alike(items: list[Json]) -> None:
    message = chat(*items).messages[0]
    again = read_message(from_stored(*to_stored(message, str)))
    assert normalise(again) == normalise(message) and again.opaque == message.opaque


def test_what_only_the_provider_can_read_is_not_stored() -> None:
    drawn = {"type": "image_generation_call", "id": "ig_1", "result": "cGl4ZWxz"}
    for secret, item in (("c2VjcmV0", THOUGHT), ("b3BhcXVl", COMPACTION), ("cGl4ZWxz", drawn)):
        assert secret not in "".join(to_stored(chat(item).messages[0], str))


# --- render --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("hello", "block\n\nhello"),
        (
            [{"type": "input_text", "text": "hello"}],
            [{"type": "input_text", "text": "block"}, {"type": "input_text", "text": "hello"}],
        ),
    ],
)
def test_text_is_added_to_the_item_that_says_the_message(content: Any, expected: Any) -> None:
    before = chat(SAID, CALL, RESULT, user(content), instructions="be brief")
    assert before.messages[-1].role == "user"
    after = orjson.loads(render(before, [Insertion(len(before.messages) - 1, "block")]))
    assert after == before.raw | {"input": [SAID, CALL, RESULT, user(expected)]}
    assert parse(orjson.dumps(after)).messages[-1].role == "user"


def test_a_text_stays_a_text() -> None:
    after = render(parse(b'{"input" : "hello", "n": 1.0}'), [Insertion(0, "block")])
    assert after == b'{"input" : "block\\n\\nhello", "n": 1.0}'


def test_a_text_becomes_a_message_where_one_of_its_own_stands_in_front_of_it() -> None:
    before = parse(b'{"input" : "say \\"hello\\"", "n": 1.0}')
    insertions = [Insertion(0, "block", role="developer"), Insertion(0, "note")]
    after = render(before, insertions)
    assert orjson.loads(after)["input"] == [
        {"role": "developer", "content": "block"},
        {"role": "user", "content": 'note\n\nsay "hello"'},
    ]
    assert after.startswith(b'{"input" : [') and after.endswith(b', "n": 1.0}')


def test_a_message_of_its_own_stands_in_front_of_its_item() -> None:
    before = chat(THOUGHT, SAID, user("x"), instructions="be brief")
    after = orjson.loads(render(before, [Insertion(1, "block", role="system")]))["input"]
    assert after == [{"role": "system", "content": "block"}, *before.raw["input"]]


def test_nothing_can_be_added_to_what_stands_outside_of_the_items() -> None:
    with pytest.raises(WireError):
        render(chat(user("x"), instructions="be brief"), [Insertion(0, "block")])
    with pytest.raises(WireError):
        render(chat(instructions="be brief"), [Insertion(0, "block", role="system")])


# --- reply ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("upto", ["response.completed", "response.incomplete"])
def test_a_stream_and_a_body_say_the_same(upto: str) -> None:
    body = {"id": "resp_1", "output": [THOUGHT, SAID, CALL], "usage": {"input_tokens": 42}}
    whole = reply([orjson.dumps(body)[:30], orjson.dumps(body)[30:]], False)
    assert reply(stream(THOUGHT, SAID, CALL, upto=upto), True) == whole
    assert (whole.prompt_tokens, whole.id) == (42, "resp_1")
    assert whole.message is not None and whole.message == chat(THOUGHT, SAID, CALL).messages[0]


def test_a_stream_that_breaks_off_leaves_what_was_heard() -> None:
    payloads = stream(THOUGHT, SAID, CALL)
    texts = []
    for heard in range(len(payloads)):
        completion = reply(payloads[:heard], True)
        assert completion.id == ("resp_1" if heard else "")
        texts.append(completion.message.text.strip() if completion.message else "")
    assert texts == sorted(texts, key=len) and "I will" in texts and texts[-1] == "I will look."
    assert reply(payloads[:-2], True).message == chat(THOUGHT, SAID, CALL | {"content": []}).messages[0]


def test_a_stream_cut_at_every_byte_says_no_less_than_its_whole_events() -> None:
    payloads = stream(SAID, CALL)
    sent = b"".join(b"event: x\ndata: " + payload + b"\n\n" for payload in payloads)
    whole = reply(payloads, True)
    for cut in range(0, len(sent), 7):
        tap = SSETap(LIMIT_BYTES)
        heard = tap.feed(sent[:cut]) + tap.feed(sent[cut:])
        assert reply([*heard, *tap.close()], True) == whole
        broken = SSETap(LIMIT_BYTES)
        assert isinstance(reply([*broken.feed(sent[:cut]), *broken.close()], True), Completion)


def test_the_parts_of_an_answer_have_names_where_the_provider_keeps_them() -> None:
    body = {"id": "resp_1", "output": [THOUGHT, SAID, {"type": "no id"}]}
    assert reply([orjson.dumps(body)], False).part_ids == ("rs_1", "msg_1")
    assert reply([orjson.dumps(body | {"store": False})], False).part_ids == ()


def test_a_compaction_is_answered_with_items_too() -> None:
    body = {"id": "resp_2", "object": "response.compaction", "output": [user("kept"), COMPACTION]}
    message = reply([orjson.dumps(body)], False).message
    assert message is not None and message.text == "" and message.opaque == (inline_reference("b3BhcXVl"),)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no json",
        b'{"error": {"message": "no"}}',
        b'{"output": [7]}',
        b'{"output": [{"role": "assistant", "content": 7}]}',
    ],
)
def test_what_is_no_answer_says_nothing(body: bytes) -> None:
    assert reply([body], False) == Completion()


def test_an_answer_that_is_still_to_come_is_known_by_its_id() -> None:
    assert reply([b'{"id": "resp_9", "status": "queued", "output": []}'], False) == Completion(id="resp_9")
