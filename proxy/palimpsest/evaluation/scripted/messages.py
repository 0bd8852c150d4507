"""A scripted reply as a message of Anthropic's Messages API, whole or streamed."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from palimpsest.domain import Json
from palimpsest.evaluation.scripted.reply import Received, Reply, opaque, pieces

KINDS = {  # of errors, by status; the rest is an api_error
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def refused(reply: Reply) -> bytes:
    """The error that a reply stands for."""
    return orjson.dumps(
        {
            "type": "error",
            "error": {"type": KINDS.get(reply.status, "api_error"), "message": reply.text},
            "request_id": None,
        }
    )


def whole(got: Received, reply: Reply, number: int) -> Json:
    """The reply as one message: thoughts, text and calls as blocks."""
    content: list[Json] = []
    read, written = reply.cache_read_tokens or 0, reply.cache_write_tokens
    prompt = reply.prompt_tokens if reply.prompt_tokens is not None else got.tokens
    if reply.reasoning:
        signature = opaque(number, reply.reasoning)
        content.append({"type": "thinking", "thinking": reply.reasoning, "signature": signature})
    if reply.text or not reply.calls:
        content.append({"type": "text", "text": reply.text})
    content += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": orjson.loads(call.arguments or "{}")}
        for call in reply.calls
    ]
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": got.model,
        "content": content,
        "stop_reason": "tool_use" if reply.calls else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": prompt - read - written,  # of the rest alone
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": read,
            "output_tokens": reply.completion_tokens,
            "service_tier": "standard",
        },
    }


def events(message: Json, got: Received) -> Iterator[bytes]:
    """The message as a stream of events."""
    opening = {"content": [], "stop_reason": None, "usage": message["usage"] | {"output_tokens": 1}}
    yield _event("message_start", message=message | opening)
    yield _event("ping")
    for index, block in enumerate(message["content"]):
        opened, deltas = _block(block)
        yield _event("content_block_start", index=index, content_block=opened)
        for delta in deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    ending = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield _event("message_delta", delta=ending, usage=message["usage"])
    yield _event("message_stop")


def _block(block: Json) -> tuple[Json, list[Json]]:
    """The start of a block, and its deltas."""
    if block["type"] == "text":
        return block | {"text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
    if block["type"] == "thinking":
        thoughts = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
        signed = {"type": "signature_delta", "signature": block["signature"]}
        return block | {"thinking": "", "signature": ""}, [*thoughts, signed]
    written = ["", *pieces(orjson.dumps(block["input"]).decode())]  # the first is always empty
    return block | {"input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in written]


def _event(kind: str, **more: object) -> bytes:
    return b"event: " + kind.encode() + b"\ndata: " + orjson.dumps({"type": kind} | more) + b"\n\n"
