"""
The log line of a request, and its span: what was asked, what memory made of it, how it was answered, and how long that
took.

One line for each request that is not for our own endpoints, a warning where it failed. Nothing in it is anybody's
words: the path is the client's, but without its query, escaped and cut short.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import structlog
from starlette.types import Scope

from palimpsest.domain import Ending, RawHeaders
from palimpsest.domain.ports import Attributes, Span, Tracer
from palimpsest.edge.headers import with_header
from palimpsest.edge.relay import FIRST_ERROR_STATUS, Relay
from palimpsest.telemetry.tracing import TRACEPARENT
from palimpsest.wire.registry import wire_of

PATH_CHARS = 120  # those of the APIs are shorter; what follows would only fill the log
MILLISECONDS = 1000

log = structlog.get_logger()

FIRST_SERVER_ERROR_STATUS = 500


class RequestLog:
    """One request, from its first byte to its last."""

    def __init__(self, method: str, path: str, id: str) -> None:
        self._started = perf_counter()
        self._hint = _hint(method, path)
        self._asked = {
            "request": id,
            "method": method,
            "path": path[:PATH_CHARS].encode("ascii", "backslashreplace").decode(),
        }

    def write(self, relay: Relay) -> None:
        """Write the line, whether or not the answer was read to its end."""
        line: dict[str, Any] = {**self._asked, **relay.log_fields}
        line |= {"status": relay.status or None, "reason": relay.code or None, "hint": self._hint}
        if relay.status:
            line["first_byte_ms"] = self._milliseconds(relay.begun_at)
        line["total_ms"] = self._milliseconds(perf_counter())
        if relay.ending not in (None, Ending.COMPLETE, Ending.REFUSED):
            line["ending"] = relay.ending
        has_failed = relay.status >= FIRST_ERROR_STATUS or relay.ending is Ending.UPSTREAM_BROKE
        write = log.warning if has_failed else log.info
        write("request", **{name: value for name, value in line.items() if value is not None})

    def _milliseconds(self, at: float) -> int:
        return round((at - self._started) * MILLISECONDS)


def _hint(method: str, path: str) -> str | None:
    """A hint for a path that is almost one of those on which memory acts."""
    if wire_of(method, path) is not None or all(wire_of(method, f"/v1/{end}") is None for end in _ends(path)):
        return None
    return (
        "without memory; the path should be /v1/...: the base URL ends in /v1 for OpenAI clients, but not for "
        "Anthropic clients"
    )


def _ends(path: str) -> tuple[str, str]:
    """The last name of a path, and its last two."""
    names = path.split("/")
    return names[-1], "/".join(names[-2:])


def server_span(tracer: Tracer, scope: Scope, path: str, request: str) -> Span:
    """Begin the span of a request, as a child of the client's if it names one."""
    method, headers = scope["method"], dict(scope["headers"])
    parent, agent, host = (headers.get(name, b"").decode("latin-1") for name in (TRACEPARENT, b"user-agent", b"host"))
    route = path[path.find("/v1/") :] if wire_of(method, path) is not None else None
    address, _, port = host.rpartition(":") if host.rpartition(":")[2].isdigit() else (host, "", "")
    attributes: Attributes = {
        "http.request.method": method,
        "http.route": route,
        "url.path": path,
        "url.scheme": scope.get("scheme", "http"),
        "network.protocol.version": scope.get("http_version"),
        "server.address": address or None,
        "server.port": int(port) if port else None,
        "user_agent.original": agent or None,
        "palimpsest.request.id": request,
    }
    return tracer.span("server", f"{method} {route}" if route else method, parent, attributes)


def with_trace(headers: RawHeaders, span: Span) -> RawHeaders:
    """The headers of a request whose trace goes on from this span."""
    return with_header(headers, TRACEPARENT, span.traceparent.encode()) if span.traceparent else headers


def end(span: Span, relay: Relay) -> None:
    """End the span of a request with its outcome."""
    fields = relay.log_fields
    ending = relay.ending.value if relay.ending is not None else None
    span.set(
        {
            "http.response.status_code": relay.status or None,
            "palimpsest.conversation": fields.get("conversation"),
            "palimpsest.turn": fields.get("turn"),
            "palimpsest.ending": ending,
        }
    )
    if relay.status >= FIRST_SERVER_ERROR_STATUS:
        span.fail(relay.code or str(relay.status))
    elif relay.ending is Ending.UPSTREAM_BROKE:
        span.fail(Ending.UPSTREAM_BROKE.value)
    span.end()
