"""Anthropic's edit is read as Anthropic reads it, and what the proxy makes of bodies and streams can be followed."""

from __future__ import annotations

import orjson
import pytest
from palimpsest.domain import Json
from palimpsest.domain.errors import WireError
from palimpsest.wire import messages
from palimpsest.wire.context_edit import (
    EDIT,
    TRIGGER_TOKENS,
    ContextEdit,
    OpenedStream,
    compacted_body,
    context_edit,
    opened_body,
)
from palimpsest.wire.own_compaction import PREFIX, expand_items, items_of

REFERENCE = f"{PREFIX}abc"
QUOTED = '"index": 3, "type": "message_start"'
OURS: Json = {"type": "compaction", "content": REFERENCE}


def body(*said: Json, **more: object) -> bytes:
    return orjson.dumps({"model": "m", "messages": said, "max_tokens": 9} | more)


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def assistant(*parts: Json) -> Json:
    return {"role": "assistant", "content": [*parts]}


@pytest.mark.parametrize(
    ("context", "edit"),
    [
        (None, None),
        ([], None),
        ({"edits": [{"type": "clear_tool_uses_20250919"}]}, None),
        ({"edits": [{"type": EDIT}]}, ContextEdit(TRIGGER_TOKENS, False)),
        (
            {"edits": [{"type": EDIT, "trigger": {"type": "input_tokens", "value": 60_000}}]},
            ContextEdit(60_000, False),
        ),
        ({"edits": [{"type": EDIT, "pause_after_compaction": True}]}, ContextEdit(TRIGGER_TOKENS, True)),
    ],
)
def test_the_edit_is_read_with_its_defaults(context: object, edit: ContextEdit | None) -> None:
    assert context_edit(messages.parse(body(user("hi"), context_management=context))) == edit


def test_a_body_that_cannot_be_followed_is_said_to_be_so() -> None:
    for sent in (b"[]", b'{"messages": []}', b'{"messages": [1]}', b'{"messages": [{}], "messages": [{}]}'):
        with pytest.raises(WireError):
            compacted_body(sent, "text")


def test_a_call_that_stays_loses_the_compaction_in_front_of_it() -> None:
    call, result = (
        {"type": "tool_use", "id": "t", "name": "n", "input": {}},
        {"type": "tool_result", "tool_use_id": "t"},
    )
    sent = body(user("hi"), assistant(OURS, call), {"role": "user", "content": [result]})
    kept = orjson.loads(compacted_body(sent, "text"))["messages"]
    assert kept[1:] == [assistant(call), {"role": "user", "content": [result]}]


def test_nothing_in_front_of_the_newest_compaction_is_sent() -> None:
    text = {"type": "text", "text": "Aye."}
    sent = body(
        user("one"), assistant(OURS | {"content": f"{PREFIX}old"}), user("two"), assistant(OURS, text), user("x")
    )
    (item,) = items_of(sent, messages)
    assert item.reference == REFERENCE
    told = orjson.loads(expand_items(sent, messages, {REFERENCE: "It said so."}))["messages"]
    assert told == [{"role": "user", "content": [{"type": "text", "text": "It said so."}]}, assistant(text), user("x")]


def test_what_only_quotes_a_reference_is_no_item() -> None:
    sent = body(user(REFERENCE), assistant({"type": "text", "text": REFERENCE}))
    assert items_of(sent, messages) == []


@pytest.mark.parametrize("cut", [1, 7, 40, 10_000])
def test_a_stream_has_the_compaction_first_however_it_is_cut(cut: int) -> None:
    events = [
        {"type": "message_start", "message": {"id": "m", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": QUOTED},
        },
        {"type": "content_block_stop", "index": 0},
        {"type": "message_stop"},
    ]
    said = b"".join(b"event: %s\ndata: %s\n\n" % (str(e["type"]).encode(), orjson.dumps(e)) for e in events)
    stream = OpenedStream(REFERENCE)
    opened = b"".join(stream.feed(said[at : at + cut]) for at in range(0, len(said), cut)) + stream.close()
    read, _, _ = messages.of_events([line[6:] for line in opened.splitlines() if line.startswith(b"data: ")])
    assert read == assistant(OURS, {"type": "text", "text": QUOTED})
    broken = OpenedStream(REFERENCE)
    assert broken.feed(b"event: mess") + broken.close() == b"event: mess"


def test_a_whole_answer_has_it_first_and_an_error_stays() -> None:
    assert orjson.loads(opened_body(b'{"content": [{"type": "text", "text": "x"}]}', REFERENCE))["content"][0] == OURS
    assert opened_body(b'{"type": "error"}', REFERENCE) == b'{"type": "error"}'


def test_our_reference_is_no_word_of_anybodys() -> None:
    read = messages.parse(body(user("hi"), assistant(OURS, {"type": "text", "text": "Aye."}))).messages[-1]
    assert read.text == "Aye." and read.opaque
