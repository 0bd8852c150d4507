"""The edge alone for tests: on a real server, as in production, with a pipeline that follows a script."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType

import uvicorn
from palimpsest.core.caller.proxy_keys import ProxyKeys
from palimpsest.core.caller.received import ReceivedRequest
from palimpsest.domain import Ending, RawHeaders
from palimpsest.domain.ports import Prepared, Wire
from palimpsest.edge.http import Connection
from palimpsest.edge.proxy_routes import ProxyRoutes
from palimpsest.settings.policy import KeyPolicy, Policy
from palimpsest.upstream.dispatcher import Upstreams
from palimpsest.wire.response_tap import ResponseTap
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.running import PATIENCE_SECONDS, until

HELD = {"HELD": "sk-held"}
NOTE = (b"x-palimpsest-note", b"scripted")


class ScriptedListener:
    """Hears as the archivist does. The commit of a complete answer waits until the test permits it."""

    def __init__(self, status: int, headers: RawHeaders, permit: threading.Event) -> None:
        self.status, self.headers = status, headers
        self.heard = b""
        self.endings: list[Ending] = []
        self._ear = ResponseTap(headers, 1 << 20)
        self._permit = permit

    def feed(self, data: bytes) -> int:
        self.heard += data
        return self._ear.feed(data)

    def finish(self, ending: Ending) -> None:
        self.endings.append(ending)

    async def committed(self) -> dict[str, str | int]:
        await asyncio.to_thread(self._wait)
        return {}

    def _wait(self) -> None:
        self._permit.wait(PATIENCE_SECONDS)


@dataclass
class ScriptedPipeline:
    """Prepares every request alike, and keeps what it was given and who listened."""

    body: bytes | None = None  # to forward instead
    model: str = ""
    prepared: list[tuple[RawHeaders, bytes | None]] = field(default_factory=list)
    listeners: list[ScriptedListener] = field(default_factory=list)
    permit: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.permit.set()

    async def prepare(self, request: ReceivedRequest, wire: Wire, arrived: float | None = None) -> Prepared:
        body = request.body
        self.prepared.append((request.headers, body))
        return Prepared(body or b"" if self.body is None else self.body, (NOTE,), self.model, self._listen)

    async def counted(self, headers: RawHeaders, body: bytes, wire: Wire) -> Prepared:
        return Prepared(body)

    def listener_for(self, method: str, path: str) -> None:
        return None

    def _listen(self, status: int, headers: RawHeaders) -> ScriptedListener:
        self.listeners.append(ScriptedListener(status, headers, self.permit))
        return self.listeners[-1]

    async def endings(self) -> list[Ending]:
        """Once somebody told it, how the only answer ended."""
        await asyncio.to_thread(
            until, lambda: self.listeners and self.listeners[0].endings, "the listener to be told how it ended"
        )
        assert len(self.listeners) == 1
        return self.listeners[0].endings


class Prompt(Connection):
    """Lets idle connections go at once when the server stops: no test's client has a last request on its way."""

    last_seconds = 0.0


@contextmanager
def edge(
    upstreams: Sequence[Mapping[str, object]],
    pipeline: ScriptedPipeline | None = None,
    keys: Mapping[str, KeyPolicy] | None = None,
    limit_bytes: int = 1 << 28,
    memory: Mapping[str, object] = MappingProxyType({}),
    http: type[asyncio.Protocol] | str = Prompt,
    stop_seconds: int = 1,
    idle_seconds: int = 5,
    answered: Callable[[int], None] = lambda status: None,
) -> Iterator[int]:
    """The proxied routes on a server of their own; its port."""
    policy = Policy.model_validate(
        {"upstreams": list(upstreams), "limits": {"body_bytes": limit_bytes}, "memory": memory}
    )
    keyring = ProxyKeys(keys or {})
    upstreams = Upstreams(policy.upstreams, HELD, keyring)
    routes = ProxyRoutes(policy, pipeline or ScriptedPipeline(), upstreams, keyring, answered=answered)
    config = uvicorn.Config(
        _with_lifespan(routes, upstreams),
        http=http,  # type: ignore[arg-type]
        ws="none",
        loop="uvloop",
        log_level="critical",
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=stop_seconds,
        timeout_keep_alive=idle_seconds,
    )
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            until(lambda: server.started or not thread.is_alive(), "the server to start")
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(PATIENCE_SECONDS)


def _with_lifespan(routes: ProxyRoutes, upstreams: Upstreams) -> ASGIApp:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await routes(scope, receive, send)
            return
        async with upstreams:
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    return app
