"""
The answers of Gemini and Ollama, by the scripted upstream: providers whose API none of our clients speaks.

Anthropic's and OpenAI's words are the scripted upstream's own.
"""

from __future__ import annotations

import orjson
from palimpsest.domain import Json
from palimpsest.evaluation.scripted import ScriptedUpstream
from palimpsest.evaluation.scripted.reply import Received, Reply, pieces

FIRST_ERROR = 400


class Gemini(ScriptedUpstream):
    """`POST /models/{model}:generateContent`, and `:streamGenerateContent` as events."""

    def _say(self, got: Received) -> tuple[Reply, str, list[bytes]]:
        reply = _reply(self, got)
        if reply.status >= FIRST_ERROR:
            said = {"error": {"code": reply.status, "message": reply.text, "status": "REFUSED"}}
            return reply, "application/json", [orjson.dumps(said)]
        calls = [{"functionCall": {"name": c.name, "args": orjson.loads(c.arguments)}} for c in reply.calls]
        if ":streamGenerateContent" not in got.path:
            parts = [*([{"text": reply.text}] if reply.text else []), *calls]
            return reply, "application/json", [orjson.dumps(_generated(parts, last=True))]
        said = [_generated([{"text": piece}]) for piece in pieces(reply.text)]
        events = [*said, _generated(calls or [{"text": ""}], last=True)]
        return reply, "text/event-stream", [b"data: %s\r\n\r\n" % orjson.dumps(event) for event in events]


class Ollama(ScriptedUpstream):
    """`POST /api/chat`, streamed as one JSON object a line."""

    def _say(self, got: Received) -> tuple[Reply, str, list[bytes]]:
        reply = _reply(self, got)
        if reply.status >= FIRST_ERROR:
            return reply, "application/json", [orjson.dumps({"error": reply.text})]
        calls = [{"function": {"name": c.name, "arguments": orjson.loads(c.arguments)}} for c in reply.calls]
        last = {"done": True, "done_reason": "stop", "prompt_eval_count": got.tokens, "eval_count": 3}
        if not got.json.get("stream"):
            return reply, "application/json", [orjson.dumps(_line(got, reply.text, calls) | last)]
        lines = [*(_line(got, piece) for piece in pieces(reply.text)), _line(got, "", calls) | last]
        return reply, "text/event-stream", [orjson.dumps(line) + b"\n" for line in lines]


def _reply(upstream: ScriptedUpstream, got: Received) -> Reply:
    reply = upstream.script(got.json)
    return Reply(reply) if isinstance(reply, str) else reply


def _generated(parts: list[Json], *, last: bool = False) -> Json:
    candidate: Json = {"content": {"role": "model", "parts": parts}, "index": 0}
    if not last:
        return {"candidates": [candidate]}
    usage = {"promptTokenCount": 11, "candidatesTokenCount": 3, "totalTokenCount": 14}
    return {"candidates": [candidate | {"finishReason": "STOP"}], "usageMetadata": usage}


def _line(got: Received, text: str, calls: list[Json] | None = None) -> Json:
    message = {"role": "assistant", "content": text} | ({"tool_calls": calls} if calls else {})
    return {"model": got.model, "created_at": "2025-01-01T00:00:00Z", "message": message, "done": False}
