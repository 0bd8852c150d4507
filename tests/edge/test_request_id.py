"""One id follows a request through the log, the headers of its answer and the record of its decision."""

from __future__ import annotations

from collections.abc import Iterator

import orjson
import pytest
from palimpsest.domain import RawHeaders
from palimpsest.edge.request_id import request_id, with_request_id
from palimpsest.evaluation.scripted import ScriptedUpstream
from structlog.contextvars import clear_contextvars, get_contextvars

from tests.edge.serving import ScriptedPipeline, edge
from tests.running import Conversation, Proxy, as_headers, free_port, request

SENT = "4bf92f3577b34da6-a:1"


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    yield
    clear_contextvars()


def id_of(headers: RawHeaders) -> str:
    return request_id({"headers": headers})


def test_a_client_chooses_the_id() -> None:
    assert id_of([(b"x-request-id", SENT.encode())]) == SENT
    assert get_contextvars()["request"] == SENT


@pytest.mark.parametrize("sent", [b"", b"two words", b'a"b', b"a\x1b[31m", "\u00fc".encode(), b"a" * 129, b"-a"])
def test_an_id_that_could_harm_a_log_is_replaced(sent: bytes) -> None:
    assert id_of([(b"x-request-id", sent)]).startswith("r-")


def test_a_request_keeps_its_id_and_no_two_share_one() -> None:
    scope = {"headers": []}
    assert request_id(scope) == request_id(scope) != id_of([])


def test_nobody_else_names_the_id_inside_the_proxy() -> None:
    assert with_request_id([(b"x-palimpsest-request", b"theirs"), (b"a", b"b")], "r-1") == [
        (b"a", b"b"),
        (b"x-palimpsest-request", b"r-1"),
    ]


def test_errors_of_the_proxy_carry_the_id_where_sdks_look() -> None:
    with edge([{"url": f"http://127.0.0.1:{free_port()}"}]) as port:
        refused = request(port, "POST", "/v1/chat/completions", b"{}", {"x-request-id": SENT})
        assert refused.status == 502
        strange = request(port, "GET", "/v1//models", b"", {})
    names = ("x-request-id", "request-id", "x-palimpsest-request")
    assert [refused.headers.get(name) for name in names] == [SENT] * 3
    assert strange.headers["x-request-id"].startswith("r-")


def test_the_upstream_gets_what_the_client_sent_and_the_client_what_it_answered(upstream: ScriptedUpstream) -> None:
    pipeline = ScriptedPipeline()
    with edge([{"url": upstream.url}], pipeline) as port:
        for headers in ({"x-request-id": SENT}, {}):
            answered = request(port, "POST", "/v1/chat/completions", b'{"model":"m","messages":[]}', headers)
            assert "x-request-id" not in answered.headers
    sent = [{name.lower(): value for name, value in received.headers.items()} for received in upstream.received]
    assert [headers.get("x-request-id") for headers in sent] == [SENT, None]
    assert not any(name.startswith("x-palimpsest") for headers in sent for name in headers)
    told = [dict(headers)[b"x-palimpsest-request"].decode() for headers, _ in pipeline.prepared]
    assert told[0] == SENT and told[1].startswith("r-")


def test_a_decision_is_found_by_the_id_that_the_client_chose(
    proxy: Proxy, conversation: Conversation, key: str
) -> None:
    sent = f"app-{key[-12:]}"
    answered = conversation.ask("hello there", x_request_id=sent)
    assert answered.said("request") == sent
    proxy.settle(vectors=False)
    found = proxy.get(f"/memory/v1/turns/{sent}")
    assert found.headers["x-request-id"].startswith("r-")
    assert (found.json["turn"], found.json["explain"]["request"]) == (answered.said("turn"), sent)
    assert proxy.get("/memory/v1/turns/app-unknown").status == 404


def test_with_memory_off_answers_are_as_they_were(proxy: Proxy, key: str) -> None:
    body = orjson.dumps({"model": "m", "messages": [{"role": "user", "content": "hello"}]})
    headers = as_headers(key, {"x_palimpsest_memory": "off"})
    answered = request(proxy.port, "POST", "/v1/chat/completions", body, headers)
    assert answered.said("note") == "off" and answered.said("request") == ""
