"""Requests of Anthropic's Messages API are read as the other wires' are, and added to behind every cache mark."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from palimpsest.domain import Chat, Completion, Insertion, Json, Message
from palimpsest.domain.errors import WireError
from palimpsest.wire.message import read_message
from palimpsest.wire.messages import of_events, parse, render, reply
from palimpsest.wire.sse import SSETap

BLOCK = '<palimpsest-memory kind="recall">\nQuotes.\n[2026-03-05]\nuser: a fact\n</palimpsest-memory>'
MARK = {"cache_control": {"type": "ephemeral"}}

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
FIELDS = st.sampled_from(
    ("role", "content", "type", "text", "id", "name", "input", "tool_use_id", "source", "data", "thinking", "signature")
)
KINDS = st.sampled_from(
    ("user", "assistant", "system", "text", "tool_use", "tool_result", "image", "document", "thinking", "compaction")
)
MESSAGES = st.lists(
    st.dictionaries(
        FIELDS,
        st.recursive(
            KINDS | JSON, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=4)
        ),
        max_size=5,
    )
    | JSON,
    max_size=4,
)


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": said, **more}


def use(id: str, name: str = "read", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def result(id: str, said: Any, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": said, **more}


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "content": parts[0] if len(parts) == 1 and isinstance(parts[0], str) else list(parts)}


def assistant(*parts: Any) -> dict[str, Any]:
    return user(*parts) | {"role": "assistant"}


def request(*messages: Any, **fields: Any) -> Chat:
    return parse(orjson.dumps({"model": "m", "max_tokens": 100, "messages": list(messages), **fields}))


def said(chat: Chat) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in chat.messages]


# --- parse ---------------------------------------------------------------------------------------


def test_a_request_is_read() -> None:
    tools = [{"name": "read", "input_schema": {}}, {"type": "bash_20250124", "name": "bash"}, {"name": 7}, "no tool"]
    read = request(user("hello"), system="be brief", stream=True, max_tokens=64, tools=tools)
    assert (read.model, read.stream, read.max_reply_tokens, read.tool_names) == ("m", True, 64, ("read", "bash"))
    assert said(read) == [("system", "be brief"), ("user", "hello")]
    assert read.places == (-1, 0)


@pytest.mark.parametrize("system", [None, "", []])
def test_without_instructions_there_is_no_system_message(system: Any) -> None:
    assert said(request(user("hello"), system=system)) == [("user", "hello")]


def test_blocks_of_instructions_are_one_message() -> None:
    read = request(user("hello"), system=[text("be brief"), text("be kind", **MARK)])
    assert said(read)[0] == ("system", "be brief\nbe kind")


def test_instructions_among_the_messages_stand_outside_the_history() -> None:
    read = request(user("hello"), {"role": "system", "content": "the date has changed"})
    assert [message.text for message in read.history] == ["hello"]


def test_each_tool_result_is_a_message_and_so_is_what_a_person_says_beside_them() -> None:
    read = request(
        user("look"),
        assistant(text("I look."), use("t1", path="a.py"), use("t2", path="b.py")),
        user(result("t1", "one"), result("t2", [text("two"), text("more")], is_error=True), text("now go on")),
    )
    assert said(read)[2:] == [("tool", "one"), ("tool", "two\nmore"), ("user", "now go on")]
    assert [message.answers_call for message in read.messages] == ["", "", "t1", "t2", ""]
    assert [call.arguments for call in read.messages[1].calls] == ['{"path":"a.py"}', '{"path":"b.py"}']
    assert read.places == (0, 1, 2, 2, 2)


def test_a_reminder_between_tags_beside_tool_results_is_an_instruction() -> None:
    reminder = "<reminder kind='tasks'>\nuse the task list\n</reminder>\n"
    read = request(user("look"), assistant(use("t1")), user(result("t1", "one"), text(reminder)))
    assert [message.role for message in read.messages] == ["user", "assistant", "tool", "system"]
    assert [message.role for message in request(user(text(reminder))).messages] == ["user"]


def test_an_image_beside_tool_results_belongs_to_them() -> None:
    image = {"type": "image", "source": {"type": "url", "url": "https://x.y/z.png"}}
    read = request(user("look"), assistant(use("t1")), user(result("t1", "one"), image))
    assert said(read)[-1] == ("tool", "one")
    assert read.messages[-1].media == ("https://x.y/z.png",)


def test_thoughts_are_not_said_and_stay() -> None:
    thoughts = [{"type": "thinking", "thinking": "hm", "signature": "sig"}, {"type": "redacted_thinking", "data": "x"}]
    thinking, plain = request(user("q"), assistant(*thoughts, text("a"))), request(user("q"), assistant("a"))
    assert thinking.messages[1].raw["content"][:2] == thoughts
    assert [(m.text, m.media) for m in thinking.messages] == [(m.text, m.media) for m in plain.messages]


def test_what_the_provider_has_compacted_itself_is_no_longer_read() -> None:
    compacted = {"type": "compaction", "content": "They spoke of harbours."}
    read = request(
        user("old"), assistant("older"), user("q"), assistant(compacted, text("a")), user("next"), system="s"
    )
    assert said(read) == [("system", "s"), ("assistant", "They spoke of harbours.\na"), ("user", "next")]
    assert read.places == (-1, 3, 4)


def test_a_compaction_that_failed_stands_for_nothing() -> None:
    failed = {"type": "compaction", "content": None}
    read = request(user("q"), assistant(failed, text("a")), user("next"))
    assert said(read) == [("user", "q"), ("assistant", "a"), ("user", "next")]


def test_a_request_to_compact_says_so() -> None:
    assert request(user("q"), compaction={"type": "summarize"}).compacts
    assert not request(user("q"), compaction=None).compacts


def test_a_history_that_the_provider_holds_is_named_by_its_newest_answer() -> None:
    read = request(user("next"), thread={"type": "continue", "previous_message_id": "msg_1"})
    assert (read.held, read.follows) == (True, "msg_1")
    assert request(thread={"type": "continue", "previous_message_id": "msg_1"}).messages == ()
    begun = request(user("first"), thread={"type": "create"})
    assert (begun.held, begun.follows) == (False, "")


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{}", b'{"messages":[]}', b'{"messages":"x"}', b'{"messages":[7]}', b'{"messages":[{"role":"user"}'],
)
def test_what_is_no_request_is_refused(body: bytes) -> None:
    with pytest.raises(WireError):
        parse(body)


@pytest.mark.parametrize("system", [7, ["x"], {"type": "text"}])
def test_instructions_of_another_kind_are_refused(system: Any) -> None:
    with pytest.raises(WireError):
        request(user("hello"), system=system)


def test_nesting_without_end_is_refused() -> None:
    deep = b'{"type":"tool_result","content":[' * 500 + b"]}" * 500
    with pytest.raises(WireError):
        parse(b'{"messages":[{"role":"user","content":[%s]}]}' % deep)


# --- render --------------------------------------------------------------------------------------


def test_a_text_is_added_behind_what_a_message_says() -> None:
    body = b'{"messages" : [{"role":"user","content":"caf\\u00e9"}],"max_tokens":1e2}'
    added = render(parse(body), [Insertion(0, "fact")])
    parts = b'[{"type":"text","text":"caf\\u00e9"},{"type":"text","text":"fact"}]'
    assert added == b'{"messages" : [{"role":"user","content":' + parts + b'}],"max_tokens":1e2}'


def test_tool_results_stay_in_front() -> None:
    turn = user(result("t1", "one"), text("now go on"))
    read = request(user("look"), assistant(use("t1")), turn)
    added = orjson.loads(render(read, [Insertion(3, BLOCK)]))
    assert added["messages"][2]["content"] == [*turn["content"], text(BLOCK)]


@pytest.mark.parametrize(
    "turn",
    [
        user(text("hello", **MARK)),
        user(text("<files>", **MARK), text("hello")),
        user(text("a", **MARK), text("b", **MARK)),
    ],
    ids=["on the last part", "on a part before", "on both"],
)
def test_every_marked_prefix_stays_as_it_is(turn: dict[str, Any]) -> None:
    turns = [user(text("first", **MARK)), assistant("yes"), turn]
    read = parse(orjson.dumps({"system": [text("be brief", **MARK)], "messages": turns}))
    added = render(read, [Insertion(3, BLOCK)])
    mark = orjson.dumps(MARK)[1:]
    assert added.count(mark) == read.body.count(mark)
    stop = -1
    while (stop := read.body.find(mark, stop + 1)) >= 0:
        assert added[: stop + len(mark)] == read.body[: stop + len(mark)]


def test_the_block_is_not_read_again() -> None:
    turns = [user(text("hello", **MARK)), assistant("yes"), user("more")]
    read = request(*turns, system="be brief")
    again = parse(render(read, [Insertion(1, BLOCK), Insertion(3, BLOCK), Insertion(1, BLOCK, "system")]))
    assert said(again) == said(read)


@pytest.mark.parametrize(
    ("system", "expected"),
    [
        (None, BLOCK),
        ("be brief", [text("be brief"), text(BLOCK)]),
        ([text("be brief", **MARK)], [text("be brief", **MARK), text(BLOCK)]),
    ],
    ids=["none", "a text", "marked blocks"],
)
def test_instructions_of_ours_go_where_this_api_has_them(system: Any, expected: Any) -> None:
    read = request(user("hello"), **({} if system is None else {"system": system}))
    added = orjson.loads(render(read, [Insertion(len(read.messages) - 1, BLOCK, "system")]))
    assert added == {**read.raw, "system": expected}


def test_a_message_of_ours_stands_in_front_of_the_history() -> None:
    read = request(assistant("what is left"), user("go on"), system="be brief")
    added = orjson.loads(render(read, [Insertion(1, BLOCK, "user")]))
    assert added["messages"] == [{"role": "user", "content": BLOCK}, *read.raw["messages"]]


def test_instructions_outside_of_the_messages_carry_no_text() -> None:
    with pytest.raises(WireError):
        render(request(user("hello"), system="be brief"), [Insertion(0, BLOCK)])


@given(st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_body_is_read_or_refused(body: bytes) -> None:
    _same_bytes_or_refused(body)


@given(MESSAGES, JSON, st.dictionaries(st.text(max_size=4), JSON, max_size=3))
def test_any_messages_are_read_or_refused(messages: list[Any], system: Any, rest: dict[str, Any]) -> None:
    _same_bytes_or_refused(json.dumps({**rest, "system": system, "messages": messages}).encode())


def _same_bytes_or_refused(body: bytes) -> None:
    try:
        read = parse(body)
    except WireError:
        return
    assert render(read, []) == body
    assert len(read.places) == len(read.messages)
    for message in read.messages:
        assert read_message(message.raw) == message


# --- reply ---------------------------------------------------------------------------------------

ANSWER = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "content": [{"type": "thinking", "thinking": "hm", "signature": "sig"}, text("I look."), use("t1", path="a.py")],
    "usage": {"input_tokens": 5, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 300, "output_tokens": 9},
}
EVENTS: list[dict[str, Any]] = [
    {"type": "message_start", "message": {**ANSWER, "content": []}},
    {"type": "ping"},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "sig"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": text("")},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "I "}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "look."}},
    {"type": "content_block_stop", "index": 1},
    {"type": "content_block_start", "index": 2, "content_block": use("t1")},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": ""}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"path":'}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": ' "a.py"}'}},
    {"type": "content_block_stop", "index": 2},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
]
STREAM = b"".join(b"event: %s\ndata: %s\n\n" % (e["type"].encode(), orjson.dumps(e)) for e in EVENTS)


def test_a_whole_answer_is_read() -> None:
    body = orjson.dumps(ANSWER)
    message = read_message({"role": "assistant", "content": ANSWER["content"]})
    assert reply([body[:9], body[9:]], streamed=False) == Completion(message, 325, "msg_1")


def test_a_stream_makes_the_message_that_clients_send_back() -> None:
    whole = reply([orjson.dumps(ANSWER)], streamed=False)
    assert reply([orjson.dumps(event) for event in EVENTS], streamed=True) == whole


@pytest.mark.repeats
def test_a_stream_cut_at_any_byte_leaves_what_was_heard_and_loses_none_of_it() -> None:
    whole = reply([orjson.dumps(ANSWER)], streamed=False).message
    assert whole is not None
    heard = lru_cache(None)(lambda *payloads: reply(payloads, streamed=True))  # the same between two events
    for stop in range(len(STREAM) + 1):
        tap = SSETap(len(STREAM))
        cut = heard(*tap.feed(STREAM[:stop]), *tap.close())
        if cut.message is not None:
            assert whole.text.startswith(cut.message.text)
            assert whole.raw["content"][:1] == cut.message.raw["content"][:1] or len(cut.message.raw["content"]) < 2
        tap = SSETap(len(STREAM))
        assert heard(*tap.feed(STREAM[:stop]), *tap.feed(STREAM[stop:]), *tap.close()).message == whole


@pytest.mark.parametrize(
    "payloads", [[], [b"garbage"], [b"\xff"], [b"[1]"], [b'{"type":"error","error":{"type":"overloaded_error"}}']]
)
def test_what_is_no_answer_says_nothing(payloads: list[bytes]) -> None:
    assert reply(payloads, streamed=True) == reply(payloads, streamed=False) == Completion()


def test_a_message_that_is_none_leaves_the_usage() -> None:
    body = orjson.dumps({**ANSWER, "content": [7]})
    assert reply([body], streamed=False) == Completion(None, 325, "msg_1")


def test_nesting_without_end_says_nothing() -> None:
    delta = b'{"a":' * 1000 + b"1" + b"}" * 1000
    assert reply([b'{"type":"content_block_delta","delta":%s}' % delta], streamed=True) == Completion()


@given(st.lists(st.tuples(st.sampled_from([e["type"] for e in EVENTS]), MESSAGES), max_size=5))
def test_no_answer_makes_the_reader_fail(events: list[tuple[str, list[Any]]]) -> None:
    payloads = [
        json.dumps(
            {"type": kind, "message": one, "content_block": one, "delta": one, "usage": one, "index": 0}
        ).encode()
        for kind, some in events
        for one in some
    ]
    reply(payloads, streamed=True)
    reply(payloads, streamed=False)


def test_an_error_within_a_stream_leaves_what_was_heard() -> None:
    error = orjson.dumps({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    heard = reply([*(orjson.dumps(event) for event in EVENTS[:8]), error], streamed=True)
    assert isinstance(heard.message, Message) and heard.message.text == "I "


def start(**block: Any) -> Json:
    return {"type": "content_block_start", "index": 0, "content_block": block}


def delta(kind: str, **said: Any) -> Json:
    return {"type": "content_block_delta", "index": 0, "delta": {"type": kind, **said}}


def block(*events: Json) -> Json:
    """The first block of the message that the events make."""
    message, _, _ = of_events(map(orjson.dumps, events))
    assert message is not None
    only: Json = message["content"][0]
    return only


def test_citations_come_one_by_one() -> None:
    first, second = {"cited_text": "a"}, {"cited_text": "b"}
    opened = start(type="text", text="", citations=None)
    cited = [delta("citations_delta", citation=first), delta("citations_delta", citation=second)]
    assert block(opened, delta("text_delta", text="so"), *cited) == {
        "type": "text",
        "text": "so",
        "citations": [first, second],
    }


def test_deltas_that_nobody_knows_yet_grow_under_their_own_name() -> None:
    opened = start(type="compaction", content=None)
    grown = block(opened, delta("compaction_delta", content="They "), delta("compaction_delta", content="spoke."))
    assert grown == {"type": "compaction", "content": "They spoke."}


def test_arguments_that_came_whole_stay() -> None:
    assert block(start(type="tool_use", id="t", name="f", input={"a": 1}))["input"] == {"a": 1}


def test_arguments_that_broke_off_stay_a_text() -> None:
    cut = [start(type="tool_use", id="t", name="f", input={}), delta("input_json_delta", partial_json='{"a": ')]
    assert block(*cut)["input"] == '{"a": '


def test_blocks_stand_in_the_order_of_their_indexes() -> None:
    events = [{**start(type="text", text=said), "index": index} for index, said in ((1, "b"), (0, "a"))]
    message, _, _ = of_events(map(orjson.dumps, events))
    assert message is not None and [part["text"] for part in message["content"]] == ["a", "b"]


@pytest.mark.parametrize("usages", [({"input_tokens": 0}, {"input_tokens": 7}), ({"input_tokens": 7}, {})])
def test_a_prompt_is_counted_wherever_the_provider_says_its_size(usages: tuple[Json, Json]) -> None:
    events = [{"type": "message_start", "message": {"usage": usages[0]}}, {"type": "message_delta", "usage": usages[1]}]
    assert of_events(map(orjson.dumps, events))[1] == 7
