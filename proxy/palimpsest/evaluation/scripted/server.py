"""
The server of the scripted provider: a real socket, with every request kept as it came.

What it says on each wire is decided in its neighbours.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from types import TracebackType
from typing import Protocol, Self

import orjson
from aiohttp import web

from palimpsest.domain import Json
from palimpsest.evaluation.scripted import chat, messages, responses
from palimpsest.evaluation.scripted.chat import error_body
from palimpsest.evaluation.scripted.reply import MODELS, Received, Reply, Script, in_turn

COMPACTED_TOKENS = 100  # of the item that a window becomes
_STORED = re.compile(r"/(responses|conversations)/([^/]+)$")


class Provider:
    """The state that OpenAI stores: responses by id, and conversations."""

    def __init__(self) -> None:
        self.windows: dict[str, int] = {}  # of models that the list has besides, as vLLM names them
        self._objects: dict[str, Json] = {}  # responses and conversations, by id
        self._windows: dict[str, tuple[Json, ...]] = {}  # the items behind each

    def answer(self, got: Received, number: int) -> tuple[int, Json | bytes] | None:
        """Status and body of a request that needs no script, or None; `number` makes new ids."""
        if got.endpoint.endswith("/models"):
            return 200, _models(got, self.windows)
        if got.method in ("GET", "DELETE") and (named := _STORED.search(got.endpoint)):
            return self._stored(got.method, named[1], named[2])
        if got.method != "POST":
            return None
        method = next((method for ending, method in self._endpoints() if got.endpoint.endswith(ending)), None)
        return method(got, number) if method else None

    def keep(self, got: Received, response: Json) -> None:
        """Store a response, unless its request forbids it."""
        if not response["store"]:
            return
        window = (*self._window(got.json), *response["output"])
        self._objects[response["id"]], self._windows[response["id"]] = response, window
        if response["conversation"]:
            self._windows[response["conversation"]["id"]] = window

    def _endpoints(self) -> Sequence[tuple[str, Callable[[Received, int], tuple[int, Json | bytes] | None]]]:
        return (
            ("/messages/count_tokens", lambda got, number: (200, {"input_tokens": got.tokens})),
            ("/conversations", self._open),
            ("/responses/compact", self._compact),
            ("/responses", lambda got, number: self._unknown(got.json)),
        )

    def _open(self, got: Received, number: int) -> tuple[int, Json]:
        """A new conversation with its first items."""
        name = f"conv_{number}"
        self._objects[name] = {"id": name, "object": "conversation", "created_at": 0, "metadata": {}}
        self._windows[name] = tuple(got.json.get("items") or ())
        return 200, self._objects[name]

    def _compact(self, got: Received, number: int) -> tuple[int, Json | bytes]:
        """The user's messages, and one item in place of the rest."""
        if refusal := self._unknown(got.json):
            return refusal
        window = self._window(got.json)
        users = [
            {"id": f"msg_{number}_{index}", "type": "message", "status": "completed", "role": "user"}
            | {"content": _parts(item["content"])}
            for index, item in enumerate(window)
            if item.get("role") == "user"
        ]
        return 200, {
            "id": f"resp_{number}",
            "object": "response.compaction",
            "created_at": 0,
            "output": [*users, responses.compaction(window, number)],
            "usage": responses.usage(got.tokens, COMPACTED_TOKENS),
        }

    def _unknown(self, asked: Json) -> tuple[int, bytes] | None:
        name = asked.get("previous_response_id")
        if name and name not in self._windows:
            text = f"Previous response with id '{name}' not found."
            return 400, error_body(text, 400, param="previous_response_id", code="previous_response_not_found")
        name = _conversation(asked)
        if name and name not in self._windows:
            return 404, error_body(f"Conversation with id '{name}' not found.", 404)
        return None

    def _window(self, asked: Json) -> tuple[Json, ...]:
        """All items of a request, including those of the history behind its id."""
        given = asked.get("input") or ()
        items = [{"type": "message", "role": "user", "content": given}] if isinstance(given, str) else given
        return (*self._windows.get(asked.get("previous_response_id") or _conversation(asked), ()), *items)

    def _stored(self, method: str, kind: str, name: str) -> tuple[int, Json | bytes]:
        found = self._objects.get(name)
        if found is None:
            return 404, error_body(f"{kind.removesuffix('s').capitalize()} with id '{name}' not found.", 404)
        if method == "DELETE":
            del self._objects[name], self._windows[name]
            return 200, {"id": name, "object": f"{found['object']}.deleted", "deleted": True}
        return 200, found


def _parts(content: str | list[Json]) -> list[Json]:
    """A user's message as OpenAI returns it."""
    return [{"type": "input_text", "text": content}] if isinstance(content, str) else content


def _conversation(asked: Json) -> str:
    """The id of the conversation that a request belongs to, or ""."""
    conversation = asked.get("conversation")
    return (conversation.get("id") if isinstance(conversation, dict) else conversation) or ""


def _models(got: Received, windows: Mapping[str, int]) -> Json:
    """The list, in the format of the caller's API."""
    if "anthropic-version" in {name.lower() for name in got.headers}:
        data = [
            {"type": "model", "id": name, "display_name": name, "created_at": "1970-01-01T00:00:00Z"} for name in MODELS
        ]
        return {"data": data, "has_more": False, "first_id": MODELS[0], "last_id": MODELS[-1]}
    listing = [{"id": name, "object": "model", "created": 0, "owned_by": "script"} for name in MODELS]
    listing += [{"id": name, "object": "model", "max_model_len": tokens} for name, tokens in windows.items()]
    return {"object": "list", "data": listing}


JSON, EVENT_STREAM = "application/json", "text/event-stream; charset=utf-8"
BODY_BYTES = 1 << 30  # the upstream under test refuses nothing for its size


class ReplyFormat(Protocol):
    """The format of an API's replies: one of the modules beside this one."""

    def refused(self, reply: Reply) -> bytes:
        """As an error."""

    def whole(self, got: Received, reply: Reply, number: int) -> Json:
        """As one object."""

    def events(self, said: Json, got: Received) -> Iterator[bytes]:
        """That object as a stream."""


WIRES: Mapping[str, ReplyFormat] = {"/chat/completions": chat, "/responses": responses, "/messages": messages}


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
        self.has_websockets = False  # of the Responses API: a request is a message there, and so is each event
        self.has_compactions = True  # else as most servers of that API: no endpoint, and a trigger counts for nothing
        self.port = 0
        self._permits = asyncio.Semaphore(0)
        self._provider = Provider()
        self._numbers = count(1)  # of ids: never twice the same, whatever a test clears

    def __repr__(self) -> str:
        return f"<ScriptedUpstream [{len(self.received)} received, {self.abandoned} abandoned] {self.url}>"

    @property
    def windows(self) -> dict[str, int]:
        """Windows in tokens that `/v1/models` names; empty at first."""
        return self._provider.windows

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def play(self, *replies: Reply | str) -> None:
        """Answer the next requests with these, in order; unused permits are void."""
        self.script = in_turn(*replies)
        self._permits = asyncio.Semaphore(0)

    def permit(self, pieces: int = 1) -> None:
        """Release that many pieces of lock-step replies; callable from any thread."""
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
        if self.has_websockets and request.headers.get("upgrade") == "websocket":
            return await self._converse(request, got)
        self.received.append(got)
        try:
            return await self._play(request, got)
        except (asyncio.CancelledError, ConnectionError):
            self.abandoned += 1
            raise

    async def _converse(self, request: web.Request, got: Received) -> web.StreamResponse:
        socket = web.WebSocketResponse(max_msg_size=BODY_BYTES)
        await socket.prepare(request)
        async for message in socket:
            asked = Received("WEBSOCKET", got.path, got.headers, message.data.encode())
            self.received.append(asked)
            number = next(self._numbers)
            if known := self._provider.answer(Received("POST", got.path, got.headers, asked.body), number):
                status, body = known
                told: Json = orjson.loads(body) if isinstance(body, bytes) else body
                await socket.send_str(orjson.dumps({"type": "error", "status": status} | told).decode())
                continue
            reply = self.script(asked.json)
            reply = Reply(reply) if isinstance(reply, str) else reply
            said = responses.whole(asked, reply, number)
            self._provider.keep(asked, said)
            for event in responses.events(said, asked):
                await socket.send_str(event.partition(b"\ndata: ")[2].decode().strip())
        return socket

    async def _play(self, request: web.Request, got: Received) -> web.StreamResponse:
        reply, kind, pieces = self._say(got)
        await asyncio.sleep(reply.wait_seconds)
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

    def _say(self, got: Received) -> tuple[Reply, str, list[bytes]]:
        """The reply, its content type, and the pieces of its body, each written on its own."""
        number = next(self._numbers)
        if not self.has_compactions:
            if got.endpoint.endswith("/responses/compact"):
                return Reply(status=404), JSON, _halves(error_body("Not Found", 404))
            got = _without_trigger(got)
        if known := self._provider.answer(got, number):
            status, body = known
            return Reply(status=status), JSON, _halves(body)
        reply = self.script(got.json)
        if isinstance(reply, str):
            reply = Reply(reply)
        wire = next((wire for ending, wire in WIRES.items() if got.endpoint.endswith(ending)), None)
        if reply.body is not None:
            return reply, dict(reply.headers).get("content-type", JSON), _halves(reply.body)
        if reply.status >= 400:
            return reply, JSON, _halves((wire or chat).refused(reply))
        if wire is None:
            return reply, JSON, _halves({})
        said = wire.whole(got, reply, number)
        if wire is responses:
            self._provider.keep(got, said)
        if got.json.get("stream"):
            return reply, EVENT_STREAM, list(wire.events(said, got))
        return reply, JSON, _halves(said)


def _without_trigger(got: Received) -> Received:
    given = got.json.get("input") if got.endpoint.endswith("/responses") else None
    if not isinstance(given, list):
        return got
    items = [item for item in given if item.get("type") != "compaction_trigger"]
    return replace(got, body=orjson.dumps(got.json | {"input": items}))


def _halves(body: Json | bytes) -> list[bytes]:
    written = body if isinstance(body, bytes) else orjson.dumps(body)
    return [written[: len(written) // 2], written[len(written) // 2 :]]
