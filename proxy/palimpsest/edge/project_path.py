"""Base URLs that name a project: `http://127.0.0.1:8484/@shop/v1`, for clients that cannot send a header of ours."""

from __future__ import annotations

from urllib.parse import unquote

from starlette.types import ASGIApp, Receive, Scope, Send

HEADER = b"x-palimpsest-scope"
OPENS = (b"/@", b"/%40")  # some programs write it so


class ProjectPaths:
    """An ASGI application that takes the project out of a path, and hands it on as the header that says the same."""

    def __init__(self, others: ASGIApp) -> None:
        self._others = others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan" and scope["raw_path"].startswith(OPENS):
            name, _, rest = scope["raw_path"].removeprefix(OPENS[0]).removeprefix(OPENS[1]).partition(b"/")
            path, headers, project = b"/" + rest, [*scope["headers"]], unquote(name)
            if name and HEADER not in dict(headers):  # who sends both means the header
                headers.append((HEADER, project.encode() if project.isprintable() else name))
            scope = {**scope, "raw_path": path, "path": unquote(path.decode("latin-1")), "headers": headers}
        await self._others(scope, receive, send)
