"""What is traced of a request: through real sockets, with OpenTelemetry's own SDK."""

from __future__ import annotations

import http.client
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
import uvicorn
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind, StatusCode
from palimpsest.app import create_app
from palimpsest.edge.http import Connection
from palimpsest.evaluation.scripted import Reply, ScriptedUpstream
from palimpsest.settings.policy import Policy
from palimpsest.telemetry.tracing import wants_traces
from palimpsest.telemetry.tracing.opentelemetry import OtelTracer

from tests.running import DEADLINE_MS, PATIENCE_SECONDS, Answered, as_headers, free_port, request, until

TRACE, THEIRS = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{THEIRS}-01"
CHAT = "/v1/chat/completions"


class Traced:
    """A whole proxy in this process, and the spans that it made."""

    def __init__(self, provider: TracerProvider, port: int, captures: bool) -> None:
        self.port = port
        self._exporter = InMemorySpanExporter()
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = OtelTracer(provider, captures)

    def spans(self, *names: str) -> dict[str, ReadableSpan]:
        """Once there are spans with these names, and so many, all of them by name."""

        def look() -> dict[str, ReadableSpan] | None:
            made = {span.name: span for span in self._exporter.get_finished_spans()}
            return made if set(names) <= made.keys() else None

        found = until(look, f"spans {names}")
        assert found.keys() == set(names)
        return found

    @property
    def count(self) -> int:
        return len(self._exporter.get_finished_spans())

    def forget(self) -> None:
        self._exporter.clear()

    def chat(self, text: str, key: str = "sk-one", stream: bool = False, **headers: str) -> Answered:
        messages = [{"role": "user", "content": text}]
        body = orjson.dumps({"model": "gpt-4o", "messages": messages, "stream": stream, "temperature": 0.5})
        return request(self.port, "POST", CHAT, body, as_headers(key, headers))


@contextmanager
def traced(
    folder: Path,
    upstreams: Sequence[Mapping[str, object]],
    captures: bool = False,
    provider: TracerProvider | None = None,
    **memory: Any,
) -> Iterator[Traced]:
    (folder / "data").mkdir(exist_ok=True)
    policy = Policy.model_validate(
        {
            "upstreams": upstreams,
            "data": folder / "data",
            "memory": {"deadline_ms": DEADLINE_MS} | memory,
            "model": {"download": "never", "cache": folder / "no model"},
        }
    )
    with socket.create_server(("127.0.0.1", 0)) as listening:
        running = Traced(provider or TracerProvider(), listening.getsockname()[1], captures)
        app = create_app(policy, {}, tracer=running.tracer)
        config = uvicorn.Config(
            app, http=Connection, ws="none", loop="asyncio", log_level="critical", lifespan="on", access_log=False
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            until(lambda: server.started or not thread.is_alive(), "the server to start")
            yield running
        finally:
            server.should_exit = True
            thread.join(PATIENCE_SECONDS)


def parent_of(span: ReadableSpan) -> str:
    return f"{span.parent.span_id:016x}" if span.parent else ""


def id_of(span: ReadableSpan) -> str:
    return f"{span.get_span_context().span_id:016x}"


def told(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


SERVER, CLIENT = f"POST {CHAT}", "chat gpt-4o"
ALL = (SERVER, CLIENT, "search_memory", "create_memory")


def test_a_request_is_one_trace_from_the_client_to_the_provider(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    upstream.play("It is in room 12.", "And here again.")
    with traced(tmp_path, [{"url": upstream.url}]) as proxy:
        answered = proxy.chat("Where is it?", traceparent=PARENT, tracestate="vendor=1", x_request_id="app-7")
        spans = proxy.spans(*ALL)
        server, client, search, create = (spans[name] for name in ALL)
        assert {f"{span.get_span_context().trace_id:032x}" for span in spans.values()} == {TRACE}
        assert parent_of(server) == THEIRS
        assert {parent_of(span) for span in (client, search, create)} == {id_of(server)}
        kinds = [span.kind for span in (server, client, search, create)]
        assert kinds == [SpanKind.SERVER, SpanKind.CLIENT, SpanKind.INTERNAL, SpanKind.INTERNAL]
        sent = {name.lower(): value for name, value in upstream.received[-1].headers.items()}
        assert sent["traceparent"] == f"00-{TRACE}-{id_of(client)}-01" and sent["tracestate"] == "vendor=1"
        assert told(server)["palimpsest.request.id"] == "app-7"
        assert told(server)["palimpsest.turn"] == answered.said("turn") == told(create)["palimpsest.turn"]
        explained = request(proxy.port, "GET", f"/memory/v1/turns/{answered.said('turn')}", b"", {}).json
        assert explained["explain"]["trace"] == TRACE


def test_the_client_span_tells_what_the_provider_told(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    upstream.play("It is in room 12.", "It is in room 12 of the old house, behind the stairs.")
    with traced(tmp_path, [{"url": upstream.url, "name": "home"}]) as proxy:
        for stream in (False, True):
            proxy.forget()
            proxy.chat("Where is it?", stream=stream)
            client = told(proxy.spans(*ALL)[CLIENT])
            known = {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "home",
                "gen_ai.request.model": "gpt-4o",
                "gen_ai.request.stream": stream,
                "gen_ai.request.temperature": 0.5,
                "gen_ai.response.finish_reasons": ("stop",),
                "http.response.status_code": 200,
                "server.address": "127.0.0.1",
            }
            assert client.items() >= known.items()
            assert client["gen_ai.response.id"] and client["gen_ai.response.model"]
            assert client["gen_ai.response.time_to_first_chunk"] > 0
            assert ("gen_ai.usage.input_tokens" in client) is not stream, "a stream tells them where it is asked to"


def test_a_long_request_is_told_as_well(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    upstream.play("Noted.")
    with traced(tmp_path, [{"url": upstream.url}]) as proxy:
        proxy.chat("A line of a log that goes on and on.\n" * 5000)
        client = told(proxy.spans(*ALL)[CLIENT])
    assert client.items() >= {"gen_ai.request.model": "gpt-4o", "gen_ai.response.finish_reasons": ("stop",)}.items()


def test_a_search_tells_what_was_decided_and_nobodys_words(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    upstream.play("Noted.")
    with traced(tmp_path, [{"url": upstream.url}]) as proxy:
        proxy.chat("My secret is the walnut.")
        spans = proxy.spans(*ALL)
        search = told(spans["search_memory"])
        assert search["gen_ai.operation.name"] == "search_memory" and search["gen_ai.memory.record.count"] == 0
        assert search["gen_ai.memory.store.id"] == told(spans["create_memory"])["gen_ai.memory.store.id"] != ""
        assert (search["palimpsest.event"], search["palimpsest.note"]) == ("start", "calm")
        assert (search["palimpsest.added_tokens"], search["palimpsest.deadline_exceeded"]) == (0, False)
        assert "walnut" not in repr([told(span) for span in spans.values()])


def test_words_are_in_spans_where_the_operator_asks_and_credentials_never(
    tmp_path: Path, upstream: ScriptedUpstream
) -> None:
    upstream.play("The walnut it is.")
    with traced(tmp_path, [{"url": upstream.url}], captures=True) as proxy:
        proxy.chat("My secret is the walnut, and password: hunter22.")
        client = told(proxy.spans(*ALL)[CLIENT])
        (asked,) = orjson.loads(client["gen_ai.input.messages"])
        (said,) = orjson.loads(client["gen_ai.output.messages"])
        assert asked["role"] == "user" and "walnut" in asked["parts"][0]["content"]
        assert said == {
            "role": "assistant",
            "parts": [{"type": "text", "content": "The walnut it is."}],
            "finish_reason": "stop",
        }
        assert "hunter22" not in repr(client)


def test_errors_are_told_by_their_kind(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    upstream.play(Reply(status=429))
    nowhere = {"url": f"http://127.0.0.1:{free_port()}", "name": "nowhere", "models": ["gone"]}
    with traced(tmp_path, [nowhere, {"url": upstream.url}]) as proxy:
        assert proxy.chat("hello").status == 429
        spans = proxy.spans(*ALL)
        assert told(spans[CLIENT])["error.type"] == "429" and spans[CLIENT].status.status_code is StatusCode.ERROR
        assert spans[SERVER].status.status_code is StatusCode.UNSET, "it is the client's own mistake"
        proxy.forget()
        body = orjson.dumps({"model": "gone", "messages": [{"role": "user", "content": "hello"}]})
        assert request(proxy.port, "POST", CHAT, body, as_headers("sk-one", {})).status == 502
        spans = proxy.spans(SERVER, "chat gone", "search_memory", "create_memory")
        assert told(spans["chat gone"])["error.type"] == "unreachable"
        assert told(spans[SERVER])["error.type"] == "upstream_unreachable"


def test_a_client_that_goes_away_ends_the_spans(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    upstream.play(Reply("A long story that nobody hears to its end", lockstep=True))
    upstream.permit(3)
    with traced(tmp_path, [{"url": upstream.url}]) as proxy:
        client = http.client.HTTPConnection("127.0.0.1", proxy.port)
        body = orjson.dumps({"model": "gpt-4o", "stream": True, "messages": [{"role": "user", "content": "a story"}]})
        client.request("POST", CHAT, body, as_headers("sk-one", {}))
        response = client.getresponse()
        assert response.read(1)
        response.close()
        client.close()
        spans = proxy.spans(*ALL)
    assert told(spans[CLIENT])["error.type"] == "cancelled"
    assert told(spans[SERVER])["palimpsest.ending"] == "client-gone"


def test_what_memory_does_not_act_on_has_two_spans(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    with traced(tmp_path, [{"url": upstream.url}]) as proxy:
        request(proxy.port, "GET", "/v1/models?key=sk-secret", b"", as_headers("sk-one", {}))
        until(lambda: proxy.count == 2, "two spans")
        server, client = sorted(proxy._exporter.get_finished_spans(), key=lambda span: span.kind.value)
        assert (server.kind, client.kind) == (SpanKind.SERVER, SpanKind.CLIENT)
        assert not [name for name in told(client) if name.startswith("gen_ai")]
        assert told(server)["url.path"] == "/v1/models" and "sk-secret" not in repr((told(server), told(client)))


def test_what_is_not_sampled_is_passed_on_and_not_recorded(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    upstream.play("Hello.")
    with traced(tmp_path, [{"url": upstream.url}], provider=TracerProvider(sampler=ALWAYS_OFF)) as proxy:
        assert proxy.chat("hello", traceparent=PARENT).status == 200
        sent = {name.lower(): value for name, value in upstream.received[-1].headers.items()}
        _, trace, span, flags = sent["traceparent"].split("-")
        assert (trace, flags) == (TRACE, "00") and span != THEIRS
        assert proxy.count == 0


@pytest.mark.slow
def test_an_upstream_behind_litellm_is_traced_alike(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    upstream.play("Hello.", "Hello again, for the second time.")
    way = {"url": upstream.url, "litellm": "openai/*", "auth": "forward"}
    with traced(tmp_path, [way]) as proxy:
        for stream in (False, True):
            proxy.forget()
            assert proxy.chat("hello", stream=stream).status == 200
            client = told(proxy.spans(*ALL)[CLIENT])
            assert (client["gen_ai.provider.name"], client["gen_ai.request.model"]) == ("openai", "gpt-4o")
            assert client["gen_ai.response.finish_reasons"] == ("stop",)


ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, False),
        (ENDPOINT, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces"}, True),
        ({"OTEL_TRACES_EXPORTER": "console"}, True),
        (ENDPOINT | {"OTEL_TRACES_EXPORTER": "none"}, False),
        (ENDPOINT | {"OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_SERVICE_NAME": "set for all programs"}, False),
    ],
)
def test_traces_are_made_where_a_variable_asks_for_them(environment: dict[str, str], wanted: bool) -> None:
    assert wants_traces(environment) is wanted


LOADED = """
import sys
from palimpsest.telemetry.tracing import NO_TRACER, tracer_of
sys.stdout.write(str([name for name in sys.modules if name.startswith("opentelemetry")]))
sys.modules["opentelemetry"] = None
assert tracer_of({"OTEL_TRACES_EXPORTER": "otlp"}) is NO_TRACER
"""


def test_what_is_not_installed_is_said_and_no_failure() -> None:
    ran = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.startswith("[]") and "scripts/install otel" in ran.stdout
