"""Traces as an operator gets them: by OpenTelemetry's variables, over HTTP, from all workers."""

from __future__ import annotations

import gzip
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from palimpsest.evaluation.scripted import ScriptedUpstream

from tests.running import Conversation, Proxy, free_port, until
from tests.telemetry.tracing.collector import collector

pytestmark = pytest.mark.slow

SOON = {"OTEL_BSP_SCHEDULE_DELAY": "100"}  # milliseconds
JSON_LOG = {"log": {"format": "json"}}


class Receiver:
    """What a collector of traces was sent."""

    def __init__(self) -> None:
        self.url = ""
        self.received: list[tuple[dict[str, str], Any]] = []  # resource, and a span of it

    def take(self, path: str, encoding: str, body: bytes) -> None:
        assert path == "/v1/traces"
        sent = gzip.decompress(body) if encoding == "gzip" else body
        for resource in ExportTraceServiceRequest.FromString(sent).resource_spans:
            known = {each.key: each.value.string_value for each in resource.resource.attributes}
            self.received += [(known, span) for scope in resource.scope_spans for span in scope.spans]

    def named(self, name: str) -> list[Any]:
        return [span for _, span in self.received if span.name == name]


@contextmanager
def receiving() -> Iterator[Receiver]:
    receiver = Receiver()
    with collector(receiver.take) as port:
        receiver.url = f"http://127.0.0.1:{port}"
        yield receiver


def told(span: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in span.attributes}


def test_all_workers_send_their_spans_and_a_search_counts_what_it_found(
    tmp_path: Path, upstream: ScriptedUpstream
) -> None:
    upstream.script = lambda body: f"I read all {len(body['messages'])} messages, and keep the archive's rooms in mind."
    with receiving() as receiver:
        env = {**SOON, "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "OTEL_SERVICE_NAME": "memory-of-team"}
        settings = JSON_LOG | {"listen": {"workers": 2}}
        with Proxy(tmp_path / "data", upstream.url, settings, **env) as proxy:
            talk = Conversation(proxy, "sk-one")
            talk.say("The archive room is number 317246905, and its door opens to the left.")
            for shelf in range(3):
                talk.say(f"Then we went through shelf {shelf} and wrote down every single title on it.")
            proxy.settle()
            talk.keep_last(2)
            answered = talk.ask("What is the number of the archive room?")
            assert int(answered.said("recalled")) > 0
            assert proxy.stop() == 0, "what was recorded last is sent before the end"
        assert len(receiver.named("search_memory")) == len(receiver.named("create_memory")) == 5
        searched = told(receiver.named("search_memory")[-1])
        newest = next(t for t in map(told, receiver.named("search_memory")) if t["palimpsest.added_tokens"])
        assert newest["gen_ai.memory.record.count"] == int(answered.said("recalled"))
        assert newest["palimpsest.added_tokens"] == int(answered.said("added-tokens"))
        assert searched["gen_ai.memory.store.id"] == newest["gen_ai.memory.store.id"]
        assert {resource["service.name"] for resource, _ in receiver.received} == {"memory-of-team"}
        assert "317246905" not in repr([told(span) for _, span in receiver.received])
        assert "317246905" not in proxy.log.read_text()


def test_a_receiver_that_is_not_there_holds_up_nothing(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    upstream.play("Hello.")
    env = {**SOON, "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{free_port()}"}
    with Proxy(tmp_path / "data", upstream.url, JSON_LOG, **env) as proxy:
        assert Conversation(proxy, "sk-one").say("hello").status == 200
        until(lambda: '"logger"' in proxy.log.read_text() or "xport" in proxy.log.read_text(), "the log to say so")
        begun = time.monotonic()
        assert proxy.stop() == 0
        assert time.monotonic() - begun < 30, "far less than the exporter would try"
