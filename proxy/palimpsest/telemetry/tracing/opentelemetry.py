"""
The tracer that records: OpenTelemetry's SDK, and its exporter over HTTP. The only file that imports it.

Its standard variables set up everything: resource, sampler, limits, batches, receiver.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import structlog
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    Status,
    StatusCode,
    TraceFlags,
    get_current_span,
    set_span_in_context,
)
from opentelemetry.trace import Span as RecordedSpan
from opentelemetry.trace import SpanKind as Kind
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from palimpsest import __version__
from palimpsest.domain.ports import Attributes, SpanKind

SERVICE = "palimpsest"
CLOSE_SECONDS = 3.0  # for what was recorded last; a receiver that does not answer must not hold up a stop
INLINE_BYTES = 32 * 1024  # read in a tenth of a millisecond: what waking a thread costs as well
CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
CAPTURES = ("true", "span_only", "span_and_event")
HTTP = "http/protobuf"

_KINDS: Mapping[SpanKind, Kind] = {"server": Kind.SERVER, "client": Kind.CLIENT, "internal": Kind.INTERNAL}
_PROPAGATOR = TraceContextTextMapPropagator()

log = structlog.get_logger()


class OtelSpan:
    """Implements `palimpsest.domain.ports.Span`; may be ended on any thread."""

    def __init__(self, span: RecordedSpan) -> None:
        self._span = span
        self._has_ended = False
        context = span.get_span_context()
        self.is_recording = span.is_recording()
        self.traceparent = f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"

    def set(self, attributes: Attributes) -> None:
        self._span.set_attributes({name: value for name, value in attributes.items() if value is not None})

    def rename(self, name: str) -> None:
        self._span.update_name(name)

    def fail(self, kind: str) -> None:
        self._span.set_attribute("error.type", kind)
        self._span.set_status(Status(StatusCode.ERROR))

    def end(self, at_ns: int | None = None) -> None:
        if not self._has_ended:
            self._has_ended = True
            self._span.end(at_ns)


class OtelTracer:
    """Implements `palimpsest.domain.ports.Tracer`. Await `close` in the end."""

    is_on = True

    def __init__(self, provider: TracerProvider, captures_content: bool = False) -> None:
        self.captures_content = captures_content
        self._provider = provider
        self._tracer = provider.get_tracer(SERVICE, __version__)
        self._later = ThreadPoolExecutor(1, "tracing")

    def span(self, kind: SpanKind, name: str, parent: str, attributes: Attributes) -> OtelSpan:
        """Start a span; a parent of this process counts as local, one from a client as remote."""
        given = {key: value for key, value in attributes.items() if value is not None}
        context = _PROPAGATOR.extract({"traceparent": parent}) if parent else None
        if kind != "server" and context is not None:
            context = _made_here(context)
        return OtelSpan(self._tracer.start_span(name, context, _KINDS[kind], given))

    def complete(self, work: Callable[[], None], size_bytes: int) -> None:
        """Run `work`, which completes a span: at once where it is small, else on a thread of its own."""
        if size_bytes <= INLINE_BYTES and not self.captures_content:
            _guarded(work)
        else:
            self._later.submit(_guarded, work)

    async def close(self) -> None:
        """Send what was recorded, and end; a receiver that does not answer is given up."""
        closing = threading.Thread(target=self._close, name="tracing-close", daemon=True)  # it may outlive us
        closing.start()
        await asyncio.to_thread(closing.join, CLOSE_SECONDS)

    def _close(self) -> None:
        self._later.shutdown()
        self._provider.shutdown()


def opened(environment: Mapping[str, str]) -> OtelTracer:
    """A tracer as OpenTelemetry's variables ask for it; raises `ImportError`: the exporter is not installed."""
    names_itself = "OTEL_SERVICE_NAME" in environment or "service.name=" in environment.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    own = {"service.version": __version__} | ({} if names_itself else {"service.name": SERVICE})
    provider = TracerProvider(resource=Resource.create(own), shutdown_on_exit=False)
    for name in environment.get("OTEL_TRACES_EXPORTER", "otlp").split(","):
        if (exporter := _exporter(name.strip().lower(), environment)) is not None:
            provider.add_span_processor(BatchSpanProcessor(exporter))
    return OtelTracer(provider, environment.get(CAPTURE, "").strip().lower() in CAPTURES)


def _exporter(name: str, environment: Mapping[str, str]) -> SpanExporter | None:
    if name == "console":
        return ConsoleSpanExporter()
    if name not in ("otlp", ""):
        log.warning("OTEL_TRACES_EXPORTER names an exporter that is not known here", hint="otlp, console or none")
        return None
    protocol = environment.get("OTEL_EXPORTER_OTLP_PROTOCOL", HTTP)
    if environment.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", protocol).strip() != HTTP:
        log.warning("traces are sent as http/protobuf, whatever OTEL_EXPORTER_OTLP_PROTOCOL says", hint="port 4318")
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter()


def _made_here(context: Any) -> Any:
    """A context marked as of this process: some samplers ask."""
    there = get_current_span(context).get_span_context()
    here = SpanContext(there.trace_id, there.span_id, False, TraceFlags(there.trace_flags), there.trace_state)
    return set_span_in_context(NonRecordingSpan(here))


def _guarded(work: Callable[[], None]) -> None:
    try:
        work()
    except Exception:  # a guard: nothing that is only observed may end the thread
        log.exception("a span could not be completed")
