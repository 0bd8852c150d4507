"""An application that is built with its first request: the admin API, which few starts need and all would wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.convertors import PathConvertor, register_url_convertor
from starlette.types import ASGIApp, Receive, Scope, Send


class _Anything(PathConvertor):
    """What is left of a path; Starlette's own ends at a line break."""

    regex = "(?s:.*)"


register_url_convertor("anything", _Anything())


class LazyApplication:
    """An ASGI application that another one makes up; importing it beside the event loop keeps streams going."""

    def __init__(self, build: Callable[[], ASGIApp]) -> None:
        self._build = build
        self._building: asyncio.Task[ASGIApp] | None = None

    def prepare(self) -> asyncio.Task[ASGIApp]:
        """Begin to make it up, unless that was done."""
        if self._building is None:
            self._building = asyncio.create_task(asyncio.to_thread(self._build))
        return self._building

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        application = await asyncio.shield(self.prepare())
        await application(scope, receive, send)
