"""
The server span of a request: what was asked, and how it was answered, by the HTTP conventions of OpenTelemetry.
"""

from __future__ import annotations

from starlette.types import Scope

from palimpsest.domain import Ending, RawHeaders
from palimpsest.domain.ports import Attributes, Span, Tracer
from palimpsest.edge.relay import Relay
from palimpsest.telemetry.tracing import TRACEPARENT
from palimpsest.wire.registry import wire_of

FIRST_SERVER_ERROR_STATUS = 500


def server_span(tracer: Tracer, scope: Scope, path: str, request: str) -> Span:
    """
    Begin the span of a request, as a child of the client's if it names one.

    Args:
        request: its id.
    """
    method, parent, agent, host = scope["method"], "", "", ""
    for name, value in scope["headers"]:
        if name == TRACEPARENT:
            parent = value.decode("latin-1")
        elif name == b"user-agent":
            agent = value.decode("latin-1")
        elif name == b"host":
            host = value.decode("latin-1")
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


def within(headers: RawHeaders, span: Span) -> RawHeaders:
    """The headers of a request whose trace goes on from this span."""
    if not span.traceparent:
        return headers
    return [*(header for header in headers if header[0] != TRACEPARENT), (TRACEPARENT, span.traceparent.encode())]


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
