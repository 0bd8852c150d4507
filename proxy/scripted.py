"""
What would a provider say? An OpenAI-compatible upstream that follows a script, on a real socket.

No model, no randomness, no clock in an answer. It ships with the package because the demo runs on it, and because
whoever builds on this house needs it for the same reason as our tests: to see the bytes that reach a provider.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import orjson
from aiohttp import web

from proxy.domain import Json, ToolCall

CHARS_PER_TOKEN = 4  # rule of thumb for English; usage must be plausible, not right
PIECE_CHARS = 24  # a streamed delta: a few words, as providers send
BODY_BYTES = 1 << 30  # the upstream under test refuses nothing for its size
MODELS = ("gpt-4o", "gpt-4o-mini")


@dataclass(frozen=True, slots=True)
class Reply:
    """
    One scripted answer.

    `body` replaces the rendered completion: errors, garbage, recorded bytes. `cut_after` breaks the connection after so
    many pieces (events of a stream, or halves of a whole body). With `lockstep` each piece waits for `permit()`.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    status: int = 200
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    prompt_tokens: int | None = None
    wait_seconds: float = 0.0  # before the first byte
    pace_seconds: float = 0.0  # before each piece
    cut_after: int | None = None
    lockstep: bool = False


@dataclass(frozen=True, slots=True)
class Received:
    """One request as it reached the upstream."""

    method: str
    path: str  # with its query
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Json:
        """The parsed body; empty where it is no JSON object."""
        try:
            parsed = orjson.loads(self.body)
        except orjson.JSONDecodeError:
            return {}
        return parsed if isinstance(parsed, dict) else {}


Script = Callable[[Json], Reply | str]


def in_turn(*replies: Reply | str) -> Script:
    """A script that answers with each reply once, in order; a further request gets a 500 that says so."""
    rest = iter(replies)
    return lambda _: next(rest, Reply(status=500, body=error_body("the script is over")))


def error_body(text: str) -> bytes:
    """An error as OpenAI words it."""
    return orjson.dumps({"error": {"message": text, "type": "server_error", "param": None, "code": None}})


class ScriptedUpstream:
    """
    A provider that answers by script and keeps every request that reached it.

    Use as an async context manager; `url` is then its base. `play` may change the script between requests, from any
    thread. `abandoned` counts requests whose caller left before the end.
    """

    def __init__(self, script: Script | None = None) -> None:
        self.script: Script = script or in_turn()
        self.received: list[Received] = []
        self.abandoned = 0
        self.port = 0
        self._permits = asyncio.Semaphore(0)

    def __repr__(self) -> str:
        return f"<ScriptedUpstream [{len(self.received)} received, {self.abandoned} abandoned] {self.url}>"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def play(self, *replies: Reply | str) -> None:
        """Answer the next requests with these, in order; permits that nobody used are void."""
        self.script = in_turn(*replies)
        self._permits = asyncio.Semaphore(0)

    def permit(self, pieces: int = 1) -> None:
        """Let that many pieces of lock-step replies go; callable from any thread."""
        for _ in range(pieces):
            self._loop.call_soon_threadsafe(self._permits.release)

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        app = web.Application(client_max_size=BODY_BYTES)
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        got = Received(request.method, request.raw_path, dict(request.headers), await request.read())
        self.received.append(got)
        try:
            return await self._play(request, got)
        except (asyncio.CancelledError, ConnectionError):
            self.abandoned += 1
            raise

    async def _play(self, request: web.Request, got: Received) -> web.StreamResponse:
        if request.path.endswith("/models"):
            listing = [{"id": name, "object": "model", "created": 0, "owned_by": "script"} for name in MODELS]
            return web.json_response({"object": "list", "data": listing})
        reply = self.script(got.json)
        if isinstance(reply, str):
            reply = Reply(reply)
        await asyncio.sleep(reply.wait_seconds)
        kind, pieces = _rendered(got, reply, len(self.received))
        response = web.StreamResponse(status=reply.status, headers={"content-type": kind, **reply.headers})
        if not kind.startswith("text/event-stream"):
            response.content_length = sum(map(len, pieces))
        await response.prepare(request)
        for number, piece in enumerate(pieces):
            if number == reply.cut_after:
                await asyncio.sleep(0)  # let what was written leave
                assert request.transport is not None
                request.transport.close()
                return response
            if reply.lockstep:
                await self._permits.acquire()
            await asyncio.sleep(reply.pace_seconds)
            await response.write(piece)
        await response.write_eof()
        return response


def _rendered(got: Received, reply: Reply, number: int) -> tuple[str, list[bytes]]:
    """Content type and the pieces of the body, each written on its own."""
    if reply.body is not None or not got.path.split("?")[0].endswith("/chat/completions"):
        whole = reply.body if reply.body is not None else b"{}"
        half = len(whole) // 2
        return "application/json", [whole[:half], whole[half:]]
    asked = got.json
    if not asked.get("stream"):
        whole = orjson.dumps(_completion(got, reply, number))
        return "application/json", [whole[: len(whole) // 2], whole[len(whole) // 2 :]]
    return "text/event-stream; charset=utf-8", list(_events(got, reply, number))


def _frame(got: Received, number: int, kind: str) -> Json:
    return {"id": f"chatcmpl-{number}", "object": kind, "created": 0, "model": got.json.get("model", MODELS[0])}


def _usage(got: Received, reply: Reply) -> Json:
    prompt = reply.prompt_tokens if reply.prompt_tokens is not None else len(got.body) // CHARS_PER_TOKEN
    completion = len(reply.text) // CHARS_PER_TOKEN + 1
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _calls(reply: Reply) -> list[Json]:
    return [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in reply.calls
    ]


def _completion(got: Received, reply: Reply, number: int) -> Json:
    message: Json = {"role": "assistant", "content": reply.text or None, "refusal": None}
    if reply.calls:
        message["tool_calls"] = _calls(reply)
    choice = {"index": 0, "message": message, "finish_reason": _finish(reply), "logprobs": None}
    return _frame(got, number, "chat.completion") | {"choices": [choice], "usage": _usage(got, reply)}


def _finish(reply: Reply) -> str:
    return "tool_calls" if reply.calls else "stop"


def _events(got: Received, reply: Reply, number: int) -> Iterator[bytes]:
    frame = _frame(got, number, "chat.completion.chunk")

    def event(delta: Json, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return b"data: " + orjson.dumps(frame | {"choices": [choice]}) + b"\n\n"

    yield event({"role": "assistant", "content": ""})
    for start in range(0, len(reply.text), PIECE_CHARS):
        yield event({"content": reply.text[start : start + PIECE_CHARS]})
    for index, call in enumerate(_calls(reply)):
        yield event({"tool_calls": [{"index": index, **call}]})
    yield event({}, _finish(reply))
    if (got.json.get("stream_options") or {}).get("include_usage"):
        yield b"data: " + orjson.dumps(frame | {"choices": [], "usage": _usage(got, reply)}) + b"\n\n"
    yield b"data: [DONE]\n\n"
