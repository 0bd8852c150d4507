"""Pages of this machine and programs that are no browsers may use the proxy; pages of other sites may not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from palimpsest.domain import Json, RawHeaders
from palimpsest.edge.web_pages import WebPages
from palimpsest.evaluation.scripted import ScriptedUpstream
from palimpsest.settings.policy import ListenPolicy

from tests.running import Proxy, request, rows

HERE = (b"host", b"127.0.0.1:8484")
HELD_KEY = "sk-held-secret-0001"
PERSONAL: Json = {
    "upstreams": [{"name": "held", "auth": "held", "key_env": "HELD"}],
    "tenants": {"static": "me"},
    "memory": {"reach": "tenant"},
}
SAID = orjson.dumps({"model": "m", "messages": [{"role": "user", "content": "Remember that the port is 7431."}]})
HANDSHAKE = {
    "connection": "Upgrade",
    "upgrade": "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
}


def kind(
    *headers: tuple[bytes, bytes], has_keys: bool = False, host: str = "127.0.0.1", **listen: list[str]
) -> str | None:
    """What a proxy that listens there objects to, if to anything."""
    rules = WebPages(
        ListenPolicy.model_validate({"host": host, **listen}), has_keys=has_keys, hostname="Laptop.corp.example"
    )
    objection = rules.objection(headers)
    return None if objection is None else objection.kind


def from_page(origin: bytes, site: bytes = b"cross-site") -> RawHeaders:
    return [(b"origin", origin), (b"sec-fetch-site", site), (b"sec-fetch-mode", b"cors")]


# --- whom a request asks -------------------------------------------------------------------------

OWN = [b"127.0.0.1:8484", b"127.0.0.1", b"LOCALHOST:8484", b"localhost.", b"[::1]:8484", b"[::1]", b"127.0.1.1:8484"]
OWN += [b"laptop.corp.example:8484", b"laptop:8484", b"laptop.local", b"host.docker.internal:8484", b"192.168.1.5", b""]
FOREIGN = [b"evil.example:8484", b"127.0.0.1.evil.example", b"localhost.evil.example:8484", b"evil.localhost:8484"]
FOREIGN += [b"127.0.0.1@evil.example", b"1.2.3.evil", b"laptop.evil.example", b"[evil.example"[1:] + b":x"]


@pytest.mark.parametrize("host", OWN)
def test_whoever_calls_the_proxy_by_a_name_of_this_machine_passes(host: bytes) -> None:
    assert kind((b"host", host)) is None


def test_a_request_without_a_host_is_no_browsers() -> None:
    assert kind() is None


@pytest.mark.parametrize("host", FOREIGN)
def test_a_page_whose_own_name_leads_here_is_refused(host: bytes) -> None:
    assert kind((b"host", host)) == "host"
    assert kind(HERE, (b"host", host)) == "host"
    assert kind((b"host", host), (b"origin", b"http://" + host), (b"sec-fetch-site", b"same-origin")) == "host"


def test_more_names_may_be_allowed() -> None:
    allowed = ["palimpsest", "*.lan", "Proxy.Example"]
    for host in (b"palimpsest:8484", b"box.lan", b"proxy.example:8484", *OWN):
        assert kind((b"host", host), allowed_hosts=allowed) is None
        page = [(b"origin", b"http://" + host)] if host else []
        assert kind((b"host", host), *page, allowed_hosts=allowed) is None
    assert kind((b"host", b"evil.example"), allowed_hosts=allowed) == "host"


# --- which page it comes from --------------------------------------------------------------------


@pytest.mark.parametrize(
    "origin",
    [
        *(b"http://localhost:3000", b"https://localhost", b"http://127.0.0.1:3000", b"http://[::1]:8080"),
        *(b"http://127.0.0.1:8484", b"vscode-file://vscode-app", b"vscode-webview://1a2b", b"app://obsidian.md"),
        *(b"chrome-extension://abcdefgh", b"moz-extension://0-1", b"tauri://localhost", b"capacitor://localhost"),
        b"file://",
    ],
)
def test_local_pages_and_installed_programs_pass(origin: bytes) -> None:
    for site in (b"same-origin", b"same-site", b"cross-site", b"none"):
        assert kind(HERE, *from_page(origin, site)) is None


@pytest.mark.parametrize(
    "origin",
    [
        *(b"https://evil.example", b"http://evil.example:8484", b"null", b"NULL", b"http://evil.localhost:3000"),
        *(b"http://127.0.0.2:3000", b"http://localhost.evil.example", b"http://127.0.0.1.evil.example:8484"),
        *(b"HTTPS://evil.example", b"http://", b"https://localhost@evil.example", b"http://192.168.1.66"),
    ],
)
@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_pages_of_other_sites_are_refused(origin: bytes, host: str) -> None:
    assert kind(HERE, *from_page(origin), host=host) == "origin"
    assert kind(HERE, (b"origin", origin), host=host) == "origin"
    assert kind(HERE, (b"origin", b"http://localhost"), (b"origin", origin), host=host) == "origin"


def test_without_an_origin_only_another_site_is_refused() -> None:
    assert kind(HERE, (b"sec-fetch-site", b"cross-site"), (b"sec-fetch-mode", b"no-cors")) == "site"
    for site in (b"none", b"same-origin", b"same-site"):
        assert kind(HERE, (b"sec-fetch-site", site)) is None


def test_more_pages_may_be_allowed() -> None:
    allowed = ["https://chat.example.com", "http://*.lan:3000"]
    for origin in (b"https://chat.example.com", b"http://box.lan:3000"):
        assert kind(HERE, *from_page(origin), allowed_origins=allowed) is None
    for origin in (b"http://chat.example.com", b"https://chat.example.com:444", b"null"):
        assert kind(HERE, *from_page(origin), allowed_origins=allowed) == "origin"
    assert kind(HERE, *from_page(b"null"), allowed_origins=["null"]) is None


# --- where the rules hold ------------------------------------------------------------------------


def test_off_loopback_any_name_will_do_until_one_is_set() -> None:
    asked = (b"host", b"llm.corp.example")
    assert kind(asked, host="0.0.0.0") is None
    assert kind(asked, host="0.0.0.0", allowed_hosts=["proxy"]) == "host"
    assert kind((b"host", b"proxy:8484"), host="0.0.0.0", allowed_hosts=["proxy"]) is None


def test_off_loopback_a_page_of_the_name_that_it_asks_must_be_known() -> None:
    page = [(b"host", b"llm.corp.example"), (b"origin", b"http://llm.corp.example")]
    assert kind(*page, host="0.0.0.0") == "origin"
    assert kind(*page, host="0.0.0.0", allowed_hosts=["llm.corp.example"]) is None
    assert kind((b"host", b"192.168.1.5:84"), (b"origin", b"http://192.168.1.5:84"), host="0.0.0.0") is None


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_with_keys_a_page_needs_one_and_no_more(host: str) -> None:
    assert kind((b"host", b"llm.example"), *from_page(b"https://chat.example"), has_keys=True, host=host) is None
    assert kind((b"host", b"llm.example"), has_keys=True, host=host, allowed_hosts=["other"]) == "host"


# --- the whole proxy -----------------------------------------------------------------------------


@pytest.fixture
def personal(upstream: ScriptedUpstream, tmp_path: Path) -> Iterator[Proxy]:
    """Holds a key, and has one memory for whoever asks."""
    with Proxy(tmp_path / "data", upstream.url, PERSONAL, HELD=HELD_KEY) as running:
        yield running


PLAIN = {"content-type": "text/plain;charset=UTF-8"}
EVIL = {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}
ASKED: list[tuple[str, str, bytes | None, dict[str, str]]] = [
    ("POST", "/v1/chat/completions", SAID, PLAIN | EVIL),
    ("POST", "/v1/chat/completions", SAID, PLAIN | {"origin": "null"}),
    ("POST", "/v1/messages", SAID, PLAIN | EVIL),
    ("POST", "/v1/chat/completions", SAID, {"host": "evil.example:8484"}),
    ("GET", "/v1/realtime?model=m", None, HANDSHAKE | EVIL),
    ("OPTIONS", "/v1/chat/completions", None, EVIL | {"access-control-request-method": "POST"}),
    *(("GET", path, None, EVIL) for path in ("/v1/models", "/metrics", "/readyz", "/healthz", "/", "/memory/v1/stats")),
    *(("GET", path, None, {"host": "evil.example"}) for path in ("/v1/files", "/metrics", "/readyz", "/healthz", "/x")),
    ("GET", "/v1/models", None, {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}),
]


@pytest.mark.slow
def test_nothing_that_a_foreign_page_asks_goes_upstream_or_is_kept(personal: Proxy, upstream: ScriptedUpstream) -> None:
    for method, path, body, headers in ASKED:
        got = request(personal.port, method, path, body, headers)
        error = got.json["error"]
        assert (path, got.status) == (path, 403)
        if path == "/v1/messages":
            assert got.json["type"] == "error" and error["type"] == "permission_error"
        else:
            assert error["code"] in ("foreign_host", "foreign_origin", "foreign_site")
        assert "evil.example" in error["message"] or headers.get("origin") != EVIL["origin"]
        assert "listen.allowed_" in error["message"]
        assert not any(name.startswith("access-control-") for name in got.headers)
    assert upstream.received == []
    assert rows(personal.data, "SELECT count(*) FROM turn") == [(0,)]
    assert personal.metric("palimpsest_refused_total") == len(ASKED)
    log = personal.log.read_text()
    assert log.count("a web page's request was refused") == len(ASKED)
    assert "evil.example" not in log


@pytest.mark.slow
def test_own_programs_and_own_pages_are_served(personal: Proxy, upstream: ScriptedUpstream) -> None:
    local = {"origin": "http://localhost:3000", "sec-fetch-site": "cross-site"}
    upstream.script = lambda body: "Noted."
    for headers in ({}, local, {"origin": "vscode-file://vscode-app"}, {"host": f"localhost:{personal.port}"}):
        assert request(personal.port, "POST", "/v1/chat/completions", SAID, headers).status == 200
    assert {r.headers["Authorization"] for r in upstream.received} == {f"Bearer {HELD_KEY}"}
    assert len(upstream.received) == 4
    assert personal.metric("palimpsest_refused_total") == 0
