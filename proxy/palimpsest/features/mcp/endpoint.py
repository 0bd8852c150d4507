"""
The MCP endpoint: `/mcp`, streamable HTTP without sessions, in front of the tools.

Who asks is read from the headers, as of proxied requests, and never from what a tool is told. The SDK is loaded with
the first request: the proxy's start does not wait for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import structlog
from starlette.types import ASGIApp, Receive, Scope, Send

from palimpsest.domain import RawHeaders, Speaker
from palimpsest.edge.headers import answering_with
from palimpsest.edge.replies import error_reply
from palimpsest.features.mcp.tools import MemoryTools
from palimpsest.features.tool import SPEAKER

if TYPE_CHECKING:
    from palimpsest.features.tool import Toolset

BODY_BYTES = 1 << 20  # of a call; the longest argument is a question
NO_SPEAKER = "send one of this proxy's keys, or the key that your requests use, as authorization: Bearer"

log = structlog.get_logger()


class McpEndpoint:
    """The endpoint with one choice of tools. Await `close` in the end."""

    def __init__(
        self,
        tools: MemoryTools,
        others: Callable[[], Sequence[Toolset]],  # tools of other features; asked for when the SDK is loaded
        names: Sequence[str],  # of the tools that are offered
        # who sent a request with these headers (lower-case names); None: the key is unknown
        speaker: Callable[[RawHeaders], Speaker | None],
    ) -> None:
        self._tools = tools
        self._others = others
        self._names = tuple(names)
        self._speaker = speaker
        self._ends = asyncio.Event()
        self._serving: asyncio.Task[None] | None = None
        self._app: asyncio.Future[ASGIApp] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        speaker = self._speaker(scope["headers"])
        if speaker is None or not speaker.tenant:
            await error_reply(401, NO_SPEAKER)(scope, receive, send)
        else:
            app = await self._started()
            # caches may not keep answers: they quote what was said
            await app({**scope, SPEAKER: speaker}, receive, answering_with(send, b"cache-control", b"no-store"))

    async def _started(self) -> ASGIApp:
        """The SDK's application."""
        if self._app is None:
            self._app = asyncio.get_running_loop().create_future()
            self._serving = asyncio.create_task(self._serve(self._app), name="mcp")
        return await asyncio.shield(self._app)

    async def _serve(self, started: asyncio.Future[ASGIApp]) -> None:
        """Run the SDK's manager until the endpoint is closed: it has to end in the task that it began in."""
        from mcp.server.transport_security import TransportSecuritySettings

        from palimpsest.features.mcp.server import memory_server

        try:
            server = memory_server(self._tools, self._others(), self._names)
            # by which name a page may ask here is checked in front of every path (edge/web_pages)
            security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
            server.streamable_http_app(
                json_response=True, stateless_http=True, max_request_body_size=BODY_BYTES, transport_security=security
            )
            async with server.session_manager.run():
                started.set_result(server.session_manager.handle_request)
                await self._ends.wait()
        except Exception as failure:
            log.error("the MCP endpoint ended", exc_info=failure)
            if not started.done():
                started.set_exception(failure)

    async def close(self) -> None:
        """End the SDK's manager and its sessions."""
        self._ends.set()
        if self._serving is not None:
            await self._serving
