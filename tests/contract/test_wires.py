"""What every wire must do: one conversation says the same on each, and an answer is heard alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from types import ModuleType
from typing import Any

import orjson
import pytest
from palimpsest.domain import Chat, Insertion, Json, Message, ToolCall
from palimpsest.domain.errors import WireError
from palimpsest.domain.ports import Wire
from palimpsest.evaluation.scripted import Received, Reply, chat, messages, responses
from palimpsest.wire.fingerprint import fingerprint_of
from palimpsest.wire.message import read_message
from palimpsest.wire.registry import WIRES
from palimpsest.wire.response_tap import ResponseTap
from palimpsest.wire.sse import SSETap
from palimpsest.wire.storage_codec import from_stored, to_stored

KEY = b"a key"
BLOCK = '<palimpsest-memory kind="recall">\nQuotes.\n[2026-03-05]\nuser: a fact\n</palimpsest-memory>'
PICTURE = "https://example.org/harbour.png"
CALLS = (ToolCall("c1", "read", '{"path":"a.py"}'), ToolCall("c2", "list", "{}"))

SAID = [
    ("system", "Be brief."),
    ("user", "What is in it?"),
    ("assistant", "I look."),
    ("tool", "print(1)"),
    ("tool", "a.py b.py"),
    ("assistant", "Two files."),
    ("user", "And what is this?"),
]
"""One conversation; the first answer makes both calls, the last question shows the picture."""


def on_chat() -> Json:
    calls = [{"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}} for c in CALLS]
    picture = {"type": "image_url", "image_url": {"url": PICTURE}}
    listed: list[Any] = [{"role": role, "content": text} for role, text in SAID]
    listed[2]["tool_calls"] = calls
    listed[3]["tool_call_id"], listed[4]["tool_call_id"] = "c1", "c2"
    listed[6]["content"] = [{"type": "text", "text": SAID[6][1]}, picture]
    tools = [{"type": "function", "function": {"name": "read"}}]
    return {"messages": listed, "tools": tools, "max_tokens": 99, "stream_options": {"include_usage": True}}


def on_responses() -> Json:
    def output(text: str) -> Json:
        return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}

    items: list[Json] = [
        {"role": "user", "content": SAID[1][1]},
        {"type": "reasoning", "summary": [], "encrypted_content": "b3BhcXVl"},
        output(SAID[2][1]),
        *({"type": "function_call", "call_id": c.id, "name": c.name, "arguments": c.arguments} for c in CALLS),
        {"type": "function_call_output", "call_id": "c1", "output": SAID[3][1]},
        {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": SAID[4][1]}]},
        output(SAID[5][1]),
    ]
    asked = [{"type": "input_text", "text": SAID[6][1]}, {"type": "input_image", "image_url": PICTURE}]
    items.append({"type": "message", "role": "user", "content": asked})
    return {
        "instructions": SAID[0][1],
        "input": items,
        "tools": [{"type": "function", "name": "read"}],
        "max_output_tokens": 99,
    }


def on_messages() -> Json:
    def text(said: str, **more: Any) -> Json:
        return {"type": "text", "text": said, **more}

    uses = [{"type": "tool_use", "id": c.id, "name": c.name, "input": orjson.loads(c.arguments)} for c in CALLS]
    results = [
        {"type": "tool_result", "tool_use_id": "c1", "content": SAID[3][1]},
        {"type": "tool_result", "tool_use_id": "c2", "content": [text(SAID[4][1])]},
    ]
    thought = {"type": "thinking", "thinking": "hm", "signature": "sig"}
    picture = {"type": "image", "source": {"type": "url", "url": PICTURE}}
    marked = text(SAID[0][1], cache_control={"type": "ephemeral"})
    return {
        "system": [marked],
        "messages": [
            {"role": "user", "content": SAID[1][1]},
            {"role": "assistant", "content": [thought, text(SAID[2][1]), *uses]},
            {"role": "user", "content": results},
            {"role": "assistant", "content": [text(SAID[5][1])]},
            {"role": "user", "content": [text(SAID[6][1]), picture]},
        ],
        "tools": [{"name": "read", "input_schema": {}}],
        "max_tokens": 99,
    }


WRITTEN: dict[str, Callable[[], Json]] = {
    "/v1/chat/completions": on_chat,
    "/v1/responses": on_responses,
    "/v1/messages": on_messages,
}
SPOKEN: dict[str, ModuleType] = {
    "/v1/chat/completions": chat,
    "/v1/responses": responses,
    "/v1/messages": messages,
}

each = pytest.mark.parametrize("path", WRITTEN)


def body_of(path: str) -> bytes:
    return orjson.dumps({"model": "m", "stream": True, **WRITTEN[path]()})


def read(path: str) -> Chat:
    return WIRES[path].parse(body_of(path))


def said(read: Chat) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in read.messages]


def test_every_wire_is_held_to_this() -> None:
    assert all(any(path.startswith(known) for known in WRITTEN) for path in WIRES)


@each
def test_one_conversation_says_the_same(path: str) -> None:
    request = read(path)
    assert said(request) == SAID
    assert [m.calls for m in request.messages] == [(), (), CALLS, (), (), (), ()]
    assert [m.answers_call for m in request.messages] == ["", "", "", "c1", "c2", "", ""]
    assert [m.media for m in request.messages] == [(), (), (), (), (), (), (PICTURE,)]
    assert (request.model, request.stream, request.tool_names, request.max_reply_tokens) == ("m", True, ("read",), 99)


@each
def test_a_message_is_known_again_on_every_other_wire(path: str) -> None:
    here, there = read(path).messages, read("/v1/chat/completions").messages
    assert [fingerprint_of(m, KEY) for m in here] == [fingerprint_of(m, KEY) for m in there]


@each
def test_a_message_is_known_again_once_it_was_stored(path: str) -> None:
    for message in read(path).messages:
        again = read_message(from_stored(*to_stored(message, str)))
        assert fingerprint_of(again, KEY) == fingerprint_of(message, KEY)
        assert replace(again, raw={}) == replace(message, raw={})


@each
def test_nothing_to_add_leaves_every_byte(path: str) -> None:
    assert WIRES[path].render(read(path), []) == body_of(path)


@each
@pytest.mark.parametrize("at", [at for at, (role, _) in enumerate(SAID) if role == "user"])
def test_a_block_within_a_message_is_not_read_again(path: str, at: int) -> None:
    body = WIRES[path].render(read(path), [Insertion(at, BLOCK)])
    assert orjson.dumps(BLOCK)[1:-1] in body
    again = WIRES[path].parse(body)
    assert [replace(m, raw={}) for m in again.messages] == [replace(m, raw={}) for m in read(path).messages]


@each
def test_a_block_of_its_own_is_a_message_that_says_nothing(path: str) -> None:
    again = WIRES[path].parse(WIRES[path].render(read(path), [Insertion(1, BLOCK, "user")]))
    assert said(again) == [SAID[0], ("user", ""), *SAID[1:]]


@each
def test_a_block_among_the_instructions_says_nothing_either(path: str) -> None:
    again = WIRES[path].parse(WIRES[path].render(read(path), [Insertion(1, BLOCK, "system")]))
    assert [one for one in said(again) if one[1]] == SAID


@each
def test_a_message_that_is_not_there_takes_no_text(path: str) -> None:
    with pytest.raises(WireError):
        WIRES[path].render(read(path), [Insertion(len(SAID) + 1, BLOCK, "user")])


# --- answers -------------------------------------------------------------------------------------

REPLY = Reply("I look.", CALLS, "First the file, then the folder.", prompt_tokens=321)


def answer(path: str) -> tuple[Json, bytes]:
    """An answer as one object, and as the stream that says the same."""
    got = Received("POST", path, {}, body_of(path))
    whole: Json = SPOKEN[path].whole(got, REPLY, 7)
    return whole, b"".join(SPOKEN[path].events(whole, got))


def heard(wire: Wire, *chunks: bytes) -> Message | None:
    tap = SSETap(1 << 20)
    payloads = [payload for chunk in chunks for payload in tap.feed(chunk)]
    return message_in(wire, *payloads, *tap.close())


@lru_cache(None)
def message_in(wire: Wire, *payloads: bytes) -> Message | None:
    """What a stream says, which is cut at many bytes between the same events."""
    return wire.reply(payloads, streamed=True).message


@each
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_an_answer_is_the_message_that_clients_send_back(path: str, streamed: bool) -> None:
    whole, stream = answer(path)
    tap = SSETap(1 << 20)
    payloads = [*tap.feed(stream), *tap.close()] if streamed else [orjson.dumps(whole)]
    completion = WIRES[path].reply(payloads, streamed)
    assert completion.message is not None and completion.prompt_tokens == REPLY.prompt_tokens
    assert (completion.message.text, completion.message.calls) == (REPLY.text, CALLS)
    assert fingerprint_of(completion.message, KEY) == fingerprint_of(read(path).messages[2], KEY)


@pytest.mark.repeats
@each
def test_a_stream_cut_at_any_byte_is_heard_as_far_as_it_came(path: str) -> None:
    _, stream = answer(path)
    whole = heard(WIRES[path], stream)
    for at in range(0, len(stream), 3):
        assert heard(WIRES[path], stream[:at], stream[at:]) == whole
        cut = heard(WIRES[path], stream[:at])
        assert cut is None or REPLY.text.startswith(cut.text)


@pytest.mark.repeats
@each
def test_of_a_stream_cut_at_any_byte_only_the_end_is_held_back(path: str) -> None:
    _, stream = answer(path)
    heard = set()
    for at in range(0, len(stream), 3):
        ear = ResponseTap([(b"content-type", b"text/event-stream")], 1 << 20)
        first = ear.feed(stream[:at])
        rest = ear.feed(stream[at:])
        forwarded = first if first < at else at + rest
        assert b"data: [DONE]\n\n".endswith(stream[forwarded:]) and forwarded < len(stream)
        payloads, streamed = ear.payloads()
        heard.add((tuple(payloads), streamed))
    told = {repr(WIRES[path].reply(*each)) for each in heard}
    assert len(told) == 1 and REPLY.text in told.pop()
