"""
Request ids: one for each request, in log lines, answers, explain records and traces.

A client that sends `x-request-id` has chosen it. It travels inside the proxy as a header of the request
(`x-palimpsest-request`), as trace contexts do; no header of that kind goes upstream.
"""

from __future__ import annotations

import re
import secrets

from starlette.types import ASGIApp, Receive, Scope, Send
from structlog.contextvars import bind_contextvars

from palimpsest.domain import REQUEST_HEADER, RawHeaders
from palimpsest.edge.headers import answering_with, with_header

SENT = b"x-request-id"
RANDOM_BYTES = 8  # two of a million requests share one with a probability of 3 in 10^8
_SANE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/+=@-]{0,127}")  # what gateways make: no spaces, quotes or escapes
_KEPT = "palimpsest.request"  # in a request's scope


def request_id(scope: Scope) -> str:
    """The id of a request, made at the first call and bound to the log lines of its task."""
    if (known := scope.get(_KEPT)) is not None:
        id: str = known
        return id
    sent = next((value.decode("latin-1") for name, value in scope["headers"] if name == SENT), "")
    id = sent if _SANE.fullmatch(sent) else new_id()
    scope[_KEPT] = id
    bind_contextvars(request=id)
    return id


def new_id() -> str:
    return f"r-{secrets.token_hex(RANDOM_BYTES)}"


def with_request_id(headers: RawHeaders, id: str) -> RawHeaders:
    """The headers of a request with its id, and with no other under that name."""
    return with_header(headers, REQUEST_HEADER, id.encode())


class LabelledAnswers:
    """An ASGI application whose every answer carries the id of its request as `x-request-id`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            send = answering_with(send, SENT, request_id(scope).encode())
        await self._app(scope, receive, send)
