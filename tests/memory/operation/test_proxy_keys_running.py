"""Keys and switches take effect in every worker of a running proxy within a moment, and outlive it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import orjson
import pytest
from palimpsest.domain import Json
from palimpsest.evaluation.scripted import ScriptedUpstream

from tests.commands.test_cli import palimpsest
from tests.running import Answered, Proxy, database, request, until, upstream_on_a_thread

pytestmark = pytest.mark.slow

LOOKS = 8  # over connections of their own, so that each worker is asked
SETTINGS: Json = {"listen": {"workers": 2}, "memory": {"deadline_ms": 10_000}, "tenants": {"require_key": True}}
BODY = orjson.dumps({"model": "gpt-4o", "messages": [{"role": "user", "content": "hello"}]})


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedUpstream]:
    with upstream_on_a_thread(ScriptedUpstream(lambda _: "hello")) as upstream:
        yield upstream


@pytest.fixture(scope="module")
def proxy(upstream: ScriptedUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    with Proxy(tmp_path_factory.mktemp("keys") / "data", upstream.url, SETTINGS) as running:
        yield running


def command(proxy: Proxy, *words: str) -> str:
    done = palimpsest(*words, "--data", str(proxy.data), "--config", str(proxy.config))
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def post(proxy: Proxy, path: str, **said: object) -> Json:
    answered = request(proxy.port, "POST", f"/memory/v1/{path}", orjson.dumps(said))
    assert answered.status in (200, 201), answered.body
    return answered.json


def ask(proxy: Proxy, key: str, **headers: str) -> Answered:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    sent = {"authorization": "Bearer sk-own", "x-api-key": key, "content-type": "application/json", **named}
    return request(proxy.port, "POST", "/v1/chat/completions", BODY, sent)


def everywhere(proxy: Proxy, key: str, status: int) -> None:
    until(lambda: all(ask(proxy, key).status == status for _ in range(LOOKS)), f"every worker to answer {status}")


def test_a_key_opens_every_worker_and_is_shut_in_every_worker(proxy: Proxy, upstream: ScriptedUpstream) -> None:
    assert ask(proxy, "plm_nobody").status == ask(proxy, "").status == 401
    made = orjson.loads(command(proxy, "key", "create", "--json", "laptop", "--tenant", "acme"))
    everywhere(proxy, made["key"], 200)
    got = {name.lower(): value for name, value in upstream.received[-1].headers.items()}
    assert got["authorization"] == "Bearer sk-own" and made["key"] not in str(got), "the provider sees its own"
    command(proxy, "key", "revoke", made["id"], "--yes")
    everywhere(proxy, made["key"], 401)


@pytest.mark.sqlite
def test_a_key_expires_while_the_proxy_runs(proxy: Proxy) -> None:
    made = post(proxy, "keys", name="short", expires="1h")
    everywhere(proxy, made["key"], 200)
    with closing(sqlite3.connect(database(proxy.data), isolation_level=None)) as beside:  # an hour later
        beside.execute("UPDATE proxy_key SET expires_at = created_at + 1 WHERE id = ?", (made["id"],))
        beside.execute("UPDATE change SET number = number + 1 WHERE name = 'keys'")
    everywhere(proxy, made["key"], 401)


def test_a_key_is_for_its_users_and_for_reading_as_it_says(proxy: Proxy) -> None:
    made = post(proxy, "keys", name="ada", users=["ada"], read_only=True)
    everywhere(proxy, made["key"], 200)
    assert ask(proxy, made["key"], x_palimpsest_user="ada").said("turn") == "", "nothing is archived"
    refused = ask(proxy, made["key"], x_palimpsest_user="bob")
    assert refused.status == 403 and "this key is not for user 'bob'; allowed: ada" in refused.json["error"]["message"]


def test_memory_is_off_in_every_worker_also_after_a_restart_which_knows_all_keys(proxy: Proxy) -> None:
    key = post(proxy, "keys", name="desktop", tenant="acme")["key"]
    everywhere(proxy, key, 200)

    def notes() -> set[str]:
        return {ask(proxy, key).said("note") for _ in range(LOOKS)}

    command(proxy, "disable", "--reason", "incident 7")
    until(lambda: notes() == {"disabled"}, "memory to be off in all workers")
    assert proxy.metric("palimpsest_memory_switched_off") == 1
    proxy.stop()
    proxy.start()
    assert notes() == {"disabled"}
    assert "switched off for all tenants" in str(proxy.ready()["reasons"]) and proxy.ready()["ready"]
    assert "incident 7" in command(proxy, "stats")
    post(proxy, "enable")
    until(lambda: "disabled" not in notes(), "memory to be on in all workers")
    post(proxy, "disable", tenant="acme")
    until(lambda: notes() == {"disabled"}, "memory to be off for this tenant")
    post(proxy, "enable", tenant="acme")


@pytest.mark.sqlite
def test_while_keys_cannot_be_read_nobody_is_let_in(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    proxy = Proxy(tmp_path / "data", upstream.url, SETTINGS | {"listen": {"workers": 1}})
    (proxy.data / "palimpsest.db").write_bytes(b"this is no database " * 500)
    with proxy:
        answered = ask(proxy, "plm_whatever")
    assert (answered.status, answered.json["error"]["code"]) == (503, "keys_unavailable")
