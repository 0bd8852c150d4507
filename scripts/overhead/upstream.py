"""
A provider that answers at once, and says in a header how many memory blocks it was sent.

uvicorn upstream:app
"""

from __future__ import annotations

from typing import Any

import orjson
from talk import reply_to

BLOCK_OPENS = b"<palimpsest-memory"
DELTA_CHARS = 24  # a few words, as providers send


async def app(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] != "http":
        return
    body = b""
    while True:
        event = await receive()
        body += event.get("body", b"")
        if not event.get("more_body"):
            break
    asked = orjson.loads(body) if body else {}
    text = reply_to(asked["messages"][-1]["content"][-400:]) if asked else ""
    kind = b"text/event-stream" if asked.get("stream") else b"application/json"
    headers = [(b"content-type", kind), (b"x-upstream-blocks", str(body.count(BLOCK_OPENS)).encode())]
    if not asked.get("stream"):
        answer = orjson.dumps(completion(text))
        headers.append((b"content-length", str(len(answer)).encode()))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})
        return
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for start in range(0, len(text), DELTA_CHARS):
        event = b"data: " + orjson.dumps(chunk(text[start : start + DELTA_CHARS], None)) + b"\n\n"
        await send({"type": "http.response.body", "body": event, "more_body": True})
    last = b"data: " + orjson.dumps(chunk("", "stop")) + b"\n\ndata: [DONE]\n\n"
    await send({"type": "http.response.body", "body": last})


def completion(text: str) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 7000, "completion_tokens": 80, "total_tokens": 7080}
    return {"id": "c1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}


def chunk(text: str, finish: str | None) -> dict[str, Any]:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [choice]}
