"""
Requests of web pages: pages of this machine may use the proxy, pages of other sites may not.

A page that somebody opens can send requests to 127.0.0.1, and a proxy that holds a key would answer them. It needs no
leave for it: a form or a request of plain text is sent before anybody asks about CORS, a WebSocket has no CORS, and a
page whose own name leads to 127.0.0.1 (DNS rebinding) may even read the answers. What a page cannot do is to change the
headers in which its browser says where a request comes from (`Origin`, `Sec-Fetch-Site`) and whom it asks (`Host`).
Other programs send the address that they were given as `Host`, and neither of the other two.
"""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase

import structlog
from starlette.types import ASGIApp, Receive, Scope, Send

from palimpsest.core.caller.credentials import LOCAL_NAMES, without_port
from palimpsest.domain import RawHeaders, frozen
from palimpsest.edge.relay import Relay
from palimpsest.edge.request_id import request_id
from palimpsest.settings.policy import ListenPolicy
from palimpsest.wire.refusal import refusal_of

# Names under which containers reach this machine's loopback. Nobody can register one: `internal` is no public domain.
CONTAINER_NAMES = frozenset({"host.docker.internal", "host.containers.internal"})

log = structlog.get_logger()


@frozen
class Objection:
    """The reason for a refusal: a word for programs, a text for people."""

    kind: str
    text: str


class WebPages:
    """The rules of a proxy for web pages; see `objection`."""

    def __init__(self, listen: ListenPolicy, *, has_keys: bool, hostname: str) -> None:
        self._checks_pages = not has_keys  # where every caller needs a key, a page only has one that somebody gave it
        self._checks_host = bool(listen.allowed_hosts) or (listen.is_loopback and not has_keys)
        own = hostname.lower()
        self._names = LOCAL_NAMES | CONTAINER_NAMES | {own, own.partition(".")[0], f"{own.partition('.')[0]}.local"}
        self._allowed_hosts = [pattern.lower() for pattern in listen.allowed_hosts]
        self._allowed_origins = [pattern.lower() for pattern in listen.allowed_origins]

    def objection(self, headers: RawHeaders) -> Objection | None:
        """The objection to a request with these headers (names in lower case), if there is one."""
        host, origins, site = "", [], ""
        for name, value in headers:
            if name == b"host":
                host = value.decode("latin-1").lower()
                if self._checks_host and not self._is_ours(host):
                    return Objection(
                        "host",
                        f"{host!r} in the Host header is not a name of this machine: use 127.0.0.1 or localhost, or "
                        "add the name to listen.allowed_hosts of the proxy",
                    )
            elif name == b"origin":
                origins.append(value.decode("latin-1").lower())
            elif name == b"sec-fetch-site":
                site = value.decode("latin-1").lower()
        if not self._checks_pages:
            return None
        if foreign := next((origin for origin in origins if not self._may_ask(origin, host)), None):
            return Objection(
                "origin",
                f"a web page of {foreign!r} may not use this proxy: if the page is yours, add that origin to "
                "listen.allowed_origins of the proxy",
            )
        if site == "cross-site" and not origins:
            return Objection(
                "site",
                "a web page of another site may not use this proxy: if the page is yours, let it use fetch() with "
                "CORS, and add its origin to listen.allowed_origins of the proxy",
            )
        return None

    def _is_ours(self, host: str) -> bool:
        """Whether a host name means this machine whatever DNS says, so that only its own pages can have it."""
        name = without_port(host).removesuffix(".")
        is_address = name.startswith("[") or name.rpartition(".")[2].isdecimal()  # a page cannot choose where it leads
        return not name or is_address or name in self._names or _matches(name, self._allowed_hosts)

    def _may_ask(self, origin: str, host: str) -> bool:
        scheme, _, place = origin.partition("://")
        if origin != "null" and scheme not in ("http", "https"):
            return True  # app://, vscode-webview://, chrome-extension://: an installed program, never a web site
        return (
            without_port(place) in LOCAL_NAMES
            or (bool(place) and place == host and self._is_ours(host))
            or _matches(origin, self._allowed_origins)
        )


class PageGuard:
    """An ASGI middleware: refused requests do not reach the application behind it."""

    def __init__(self, app: ASGIApp, pages: WebPages, refused: Callable[[str], None]) -> None:
        self._app = app
        self._pages = pages
        self._refused = refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        objection = self._pages.objection(scope["headers"]) if scope["type"] == "http" else None
        if objection is None:
            await self._app(scope, receive, send)
            return
        id = request_id(scope)
        self._refused(objection.kind)
        log.warning("a web page's request was refused", kind=objection.kind, hint="the answer says what to set")
        refusal = refusal_of(scope["path"], scope["headers"])
        await Relay(send, refusal, id).refuse(403, f"foreign_{objection.kind}", objection.text)


def _matches(text: str, patterns: list[str]) -> bool:
    return any(fnmatchcase(text, pattern) for pattern in patterns)
