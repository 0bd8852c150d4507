"""The account of an answer, in the words of each API."""

from __future__ import annotations

import orjson
import pytest
from palimpsest.domain import Json
from palimpsest.wire.account import Account, account_of

CHAT_USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 7,
    "prompt_tokens_details": {"cached_tokens": 64},
    "completion_tokens_details": {"reasoning_tokens": 3},
}
CHAT = Account("chatcmpl-1", "gpt-4o-2024", ("stop",), 100, 7, 64, None, 3)
MESSAGE = {"id": "msg_1", "type": "message", "model": "claude-x", "content": []}
MESSAGE_USAGE = {"input_tokens": 10, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 30}
MESSAGES = Account("msg_1", "claude-x", ("end_turn",), 100, 5, 60, 30, None)
RESPONSE_USAGE = {
    "input_tokens": 100,
    "output_tokens": 7,
    "input_tokens_details": {"cached_tokens": 64},
    "output_tokens_details": {"reasoning_tokens": 3},
}
RESPONSE = {"id": "resp_1", "object": "response", "model": "gpt-5"}
RESPONSES = Account("resp_1", "gpt-5", ("completed",), 100, 7, 64, None, 3)


def chunk(delta: Json, reason: str | None = None, **more: object) -> Json:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return {"id": "chatcmpl-1", "model": "gpt-4o-2024", "choices": [choice], "usage": None, **more}


STREAMS: dict[str, tuple[list[Json], Account]] = {
    "chat": (
        [chunk({"content": "a"}), chunk({"content": "b"}), chunk({}, "stop"), {"choices": [], "usage": CHAT_USAGE}],
        CHAT,
    ),
    "messages": (
        [
            {"type": "message_start", "message": MESSAGE | {"usage": MESSAGE_USAGE | {"output_tokens": 1}}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}},
        ],
        MESSAGES,
    ),
    "responses": (
        [
            {"type": "response.created", "response": RESPONSE | {"status": "in_progress", "usage": None}},
            {"type": "response.output_text.delta", "delta": "a"},
            {"type": "response.completed", "response": RESPONSE | {"status": "completed", "usage": RESPONSE_USAGE}},
        ],
        RESPONSES,
    ),
}
BODIES: dict[str, tuple[Json, Account]] = {
    "chat": (
        {
            "id": "chatcmpl-1",
            "model": "gpt-4o-2024",
            "choices": [{"message": {}, "finish_reason": "stop"}],
            "usage": CHAT_USAGE,
        },
        CHAT,
    ),
    "messages": (MESSAGE | {"stop_reason": "end_turn", "usage": MESSAGE_USAGE | {"output_tokens": 5}}, MESSAGES),
    "responses": (RESPONSE | {"status": "completed", "usage": RESPONSE_USAGE}, RESPONSES),
}


@pytest.mark.parametrize("api", STREAMS)
def test_a_stream_tells_its_account_in_pieces(api: str) -> None:
    events, account = STREAMS[api]
    assert account_of([orjson.dumps(event) for event in events], True) == account


@pytest.mark.parametrize("api", BODIES)
def test_a_body_tells_its_account_at_once(api: str) -> None:
    body, account = BODIES[api]
    sent = orjson.dumps(body)
    assert account_of([sent[:20], sent[20:]], False) == account


@pytest.mark.parametrize(
    "said", [b"", b"[]", b'{"usage": 3, "choices": {"a": 1}}', b'{"usage": {"prompt_tokens": true}}']
)
def test_what_tells_nothing_is_no_error(said: bytes) -> None:
    assert account_of([said], True) == account_of([said], False) == Account()
    assert account_of([], False) == Account()
