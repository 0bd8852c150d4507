"""
Traces: spans of requests by the conventions of OpenTelemetry, or none.

They are off until one of OpenTelemetry's own environment variables asks for them; until then nothing of it is imported,
and every span is `NO_SPAN`. Between parts of the proxy a trace travels in the header `traceparent` of its request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import structlog

from palimpsest.domain.ports import Attributes, Span, SpanKind, Tracer

TRACEPARENT = b"traceparent"

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_EXTRA = (
    "run scripts/install otel in a checkout, or pip install 'palimpsest-proxy[otel] @ file:///CHECKOUT'; or take the "
    "OTEL_... variables away"
)

log = structlog.get_logger()


class NoSpan:
    """An operation of which nothing is recorded."""

    traceparent = ""
    is_recording = False

    def _ignore(self, *_given: object, **_named: object) -> None:
        pass

    set = rename = fail = end = _ignore


NO_SPAN = NoSpan()


class NoTracer:
    """A tracer that records nothing."""

    is_on = False
    captures_content = False

    def span(self, kind: SpanKind, name: str, parent: str, attributes: Attributes) -> Span:
        return NO_SPAN

    def complete(self, work: Callable[[], None], size_bytes: int) -> None:
        pass

    async def close(self) -> None:
        pass


NO_TRACER = NoTracer()


def wants_traces(environment: Mapping[str, str]) -> bool:
    """Whether the environment asks for traces: it names an endpoint or an exporter and does not disable tracing."""
    exporter = environment.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true" or exporter == "none":
        return False
    return bool(exporter) or any(environment.get(name, "").strip() for name in _ENDPOINTS)


def tracer_of(environment: Mapping[str, str]) -> Tracer:
    """The tracer that the environment asks for; one that does nothing where it cannot be had, which is logged."""
    if not wants_traces(environment):
        return NO_TRACER
    try:
        from palimpsest.telemetry.tracing.opentelemetry import opened  # takes 0.2 s, and is an extra
    except ImportError:
        log.warning("traces are requested, but OpenTelemetry is not installed", hint=_EXTRA)
        return NO_TRACER
    try:
        return opened(environment)
    except Exception as failure:  # whatever its libraries raise: no reason not to serve
        log.warning("traces are requested, but cannot be recorded", exc_info=failure)
        return NO_TRACER
