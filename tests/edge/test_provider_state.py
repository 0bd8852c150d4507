"""Tenants that share the provider's account reach nothing that it keeps, but for what they were answered themselves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from palimpsest.domain import Json
from palimpsest.evaluation.scripted import ScriptedUpstream

from tests.running import Answered, Proxy, as_headers, request, until

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("words_only")]

HELD = {"HELD": "sk-held", "ACME": "pk-acme", "BETA": "pk-beta"}
HANDSHAKE = {
    "connection": "Upgrade",
    "upgrade": "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "eA==",
}


def settings(*names: str, **tenants: object) -> Json:
    keys = [{"name": name, "key_env": name.upper()} for name in names]
    return {"upstreams": [{"name": "held", "auth": "held", "key_env": "HELD"}], "tenants": {"keys": keys, **tenants}}


@pytest.fixture(scope="module")
def team(shared_upstream: ScriptedUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """Two tenants behind one held key."""
    folder = tmp_path_factory.mktemp("team") / "data"
    with Proxy(folder, shared_upstream.url, settings("acme", "beta"), **HELD) as running:
        yield running


def asked(proxy: Proxy, path: str, body: Json | None = None, key: str = "pk-acme", **headers: str) -> Answered:
    method = "GET" if body is None else "POST"
    return request(proxy.port, method, path, body and orjson.dumps(body), as_headers(key, headers))


def responded(proxy: Proxy, key: str, **more: object) -> Answered:
    return asked(proxy, "/v1/responses", {"model": "m", "input": "Which port did we choose?", **more}, key)


@pytest.mark.parametrize(
    "path",
    ["/v1/files", "/v1/responses/resp_beta_1", "/v1/conversations/conv_1/items", "/v1/chat/completions", "/v1/batches"],
)
def test_what_the_provider_keeps_is_out_of_reach(team: Proxy, upstream: ScriptedUpstream, path: str) -> None:
    got = asked(team, path)
    assert (got.status, got.json["error"]["code"], upstream.received) == (403, "provider_state_refused", [])
    assert "tenants.share_provider_state" in got.json["error"]["message"]


def test_a_websocket_is_refused(team: Proxy, upstream: ScriptedUpstream) -> None:
    got = request(team.port, "GET", "/v1/models", None, as_headers("pk-acme", HANDSHAKE))
    assert (got.status, upstream.received) == (403, [])


def test_an_answer_is_continued_by_the_key_that_was_given_it_alone(team: Proxy, upstream: ScriptedUpstream) -> None:
    upstream.script = lambda _: "Port 7431."
    mine = responded(team, "pk-acme").json
    assert responded(team, "pk-acme", previous_response_id=mine["id"]).status == 200
    reference = [{"type": "item_reference", "id": mine["output"][0]["id"]}, {"role": "user", "content": "And then?"}]
    assert responded(team, "pk-acme", input=reference).status == 200
    before = len(upstream.received)
    foreign = responded(team, "pk-beta", previous_response_id=mine["id"])
    unknown = responded(team, "pk-beta", previous_response_id="resp_unknown")
    assert foreign.status == 400 and foreign.json["error"]["code"] == "previous_response_not_found"
    assert foreign.body == unknown.body == responded(team, "pk-beta", input=reference).body
    assert len(upstream.received) == before


def test_users_projects_and_keys_that_only_read_continue_no_answer_of_each_other(
    upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    kinds: dict[str, Json] = {"ann": {"users": ["ann"]}, "bob": {"users": ["bob"]}, "reader": {"read_only": True}}
    upstream.script = lambda _: "Port 7431."
    made = settings() | {"tenants": {"require_key": True}}
    with Proxy(tmp_path / "data", upstream.url, made, HELD="sk-held") as proxy:
        keys = {}
        for name, more in (kinds | {"app": {}}).items():
            key = orjson.dumps({"name": name, "tenant": "acme", **more})
            told = request(proxy.port, "POST", "/memory/v1/keys", key, {"content-type": "application/json"})
            keys[name] = told.json["key"]
        until(lambda: asked(proxy, "/v1/models", key=keys["app"]).status == 200, "the keys to open")
        for path in ("/v1/files", "/v1/batches", "/v1/chat/completions", "/v1/conversations/conv_1"):
            assert asked(proxy, path, key=keys["app"]).status == 403
        anns = responded(proxy, keys["ann"]).json["id"]
        apps = responded(proxy, keys["app"], user="cleo").json["id"]
        before = len(upstream.received)
        for key, id, more in (
            (keys["bob"], anns, {}),
            (keys["reader"], anns, {}),
            (keys["app"], anns, {}),
            (keys["app"], anns, {"user": "dan"}),
            (keys["app"], apps, {}),
            (keys["app"], apps, {"user": "dan"}),
            (keys["reader"], apps, {"user": "cleo"}),
            (keys["ann"], apps, {}),
        ):
            assert responded(proxy, key, previous_response_id=id, **more).status == 400, (key, more)
        named = as_headers(keys["app"], {"x_palimpsest_scope": "web"})
        body = {"model": "m", "input": "And then?", "user": "cleo", "previous_response_id": apps}
        assert request(proxy.port, "POST", "/v1/responses", orjson.dumps(body), named).status == 400
        assert len(upstream.received) == before
        assert responded(proxy, keys["ann"], previous_response_id=anns).status == 200
        assert responded(proxy, keys["app"], previous_response_id=apps, user="cleo").status == 200


@pytest.mark.parametrize("more", [{"conversation": "conv_1"}, {"tools": [{"type": "x", "vector_store_ids": ["vs_1"]}]}])
def test_conversations_and_files_are_refused_by_their_names(
    team: Proxy, upstream: ScriptedUpstream, more: Json
) -> None:
    got = responded(team, "pk-acme", **more)
    assert (got.status, upstream.received) == (403, [])
    assert (
        next(iter(more if "conversation" in more else more["tools"][0].keys() - {"type"}))
        in got.json["error"]["message"]
    )


def test_what_cannot_be_read_is_not_forwarded(team: Proxy, upstream: ScriptedUpstream) -> None:
    for path in ("/v1/responses", "/v1/embeddings"):
        got = request(team.port, "POST", path, b'{"previous_response_id":', as_headers("pk-acme", {}))
        assert (got.status, upstream.received) == (400, [])


def test_everything_stateless_passes(team: Proxy, upstream: ScriptedUpstream) -> None:
    upstream.script = lambda _: "fine"
    said = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    for path, body in (("/v1/chat/completions", said), ("/v1/embeddings", {"input": "x"}), ("/v1/models", None)):
        assert asked(team, path, body).status == 200
    form = as_headers("pk-acme", {"content-type": "multipart/form-data; boundary=x"})
    assert request(team.port, "POST", "/v1/audio/transcriptions", b"--x--", form).status == 200
    assert len(upstream.received) == 4


@pytest.mark.parametrize("alone", [settings("acme"), settings("acme", "beta", share_provider_state=True)])
def test_one_key_has_the_account_to_itself_and_several_may_share_it(
    upstream: ScriptedUpstream, tmp_path: Path, alone: Json
) -> None:
    upstream.script = lambda _: "fine"
    with Proxy(tmp_path / "data", upstream.url, alone, **HELD) as proxy:
        assert asked(proxy, "/v1/files").status == 200
        responded(proxy, "pk-acme", previous_response_id="resp_elsewhere", conversation="conv_1")
        assert len(upstream.received) == 2


@pytest.mark.sqlite
def test_without_the_archive_no_id_is_taken_on_trust(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    upstream.script = lambda _: "fine"
    with Proxy(tmp_path / "data", upstream.url, settings("acme", "beta"), **HELD) as proxy:
        mine = responded(proxy, "pk-acme").json["id"]
        proxy.stop()
        for file in proxy.data.glob("palimpsest.db*"):
            file.write_bytes(b"no database" * 1000)
        proxy.start()
        got = responded(proxy, "pk-acme", previous_response_id=mine)
        assert (got.status, got.json["error"]["code"]) == (503, "archive_unavailable")
        assert responded(proxy, "pk-acme").status == 200
