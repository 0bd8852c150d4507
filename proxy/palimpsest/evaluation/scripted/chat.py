"""A scripted reply as a chat completion, whole or streamed."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from palimpsest.domain import Json
from palimpsest.evaluation.scripted.reply import Received, Reply, pieces


def error_body(text: str, status: int = 500, *, param: str | None = None, code: str | None = None) -> bytes:
    """An error in OpenAI's format."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return orjson.dumps({"error": {"message": text, "type": kind, "param": param, "code": code}})


def refused(reply: Reply) -> bytes:
    """The error that a reply stands for."""
    return error_body(reply.text, reply.status)


def whole(got: Received, reply: Reply, number: int) -> Json:
    """The reply as one completion."""
    message: Json = {"role": "assistant", "content": reply.text or None, "refusal": None}
    if reply.reasoning:  # not OpenAI's, but that of most servers that speak this wire
        message["reasoning_content"] = reply.reasoning
    if reply.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in reply.calls
        ]
    finish = "tool_calls" if reply.calls else "stop"
    cached = reply.cache_read_tokens
    prompt = reply.prompt_tokens if reply.prompt_tokens is not None else got.tokens
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 0,
        "model": got.model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": reply.completion_tokens,
            "total_tokens": prompt + reply.completion_tokens,
        }
        | ({} if cached is None else {"prompt_tokens_details": {"cached_tokens": cached}}),
    }


def events(completion: Json, got: Received) -> Iterator[bytes]:
    """The completion as a stream of events."""
    frame = {name: completion[name] for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    message, finish = completion["choices"][0]["message"], completion["choices"][0]["finish_reason"]

    def event(delta: Json, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return b"data: " + orjson.dumps(frame | {"choices": [choice]}) + b"\n\n"

    yield event({"role": "assistant", "content": ""})
    for name in ("reasoning_content", "content"):
        for piece in pieces(message.get(name) or ""):
            yield event({name: piece})
    for index, call in enumerate(message.get("tool_calls", ())):
        yield event({"tool_calls": [{"index": index, **call}]})
    yield event({}, finish)
    if (got.json.get("stream_options") or {}).get("include_usage"):
        yield b"data: " + orjson.dumps(frame | {"choices": [], "usage": completion["usage"]}) + b"\n\n"
    yield b"data: [DONE]\n\n"
