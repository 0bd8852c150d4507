"""Erasing beside clients that never stop sending what was erased, through the running proxy, by one worker and two."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from palimpsest.domain import Json
from palimpsest.evaluation.scripted import ScriptedUpstream

from tests.commands.test_cli import palimpsest
from tests.resending import HABITS, Client, files_with, load, of_tenant
from tests.running import Conversation, Proxy, memory_in, request, rows, until

pytestmark = pytest.mark.slow

CANARY = "The wire transfer to Bellerophon Shipping is 48,200 euro, reference ZQX-7741-KESTREL"
QUESTION = "What is the reference of the wire transfer to Bellerophon Shipping?"
KEPT = "The lighthouse of Skagen was painted white in 1858, says the plaque."
AFTER_SECONDS = 2.0  # of load after the erasure


def erase_over_http(proxy: Proxy, tenant: str) -> Json:
    assert request(proxy.port, "DELETE", "/memory/v1/users/ann").status == 400, "two tenants have a user of that name"
    answered = request(proxy.port, "DELETE", f"/memory/v1/users/ann?tenant={tenant}")
    assert answered.status == 200, str(answered.json.get("check", answered.body))
    return answered.json


def erase_from_the_command_line(proxy: Proxy, tenant: str) -> Json:
    done = palimpsest("forget", "--user", "ann", "--tenant", tenant, "--yes", "--data", str(proxy.data))
    assert done.returncode == 0, done.stderr
    receipt: Json = orjson.loads(done.stdout)
    return receipt


def erase_what_matches(proxy: Proxy, tenant: str) -> Json:
    body = orjson.dumps({"matching": "zqx-7741-kestrel"})
    answered = request(proxy.port, "POST", "/memory/v1/forget", body, {"content-type": "application/json"})
    assert answered.status == 200, str(answered.json.get("check", answered.body))
    return answered.json


@pytest.mark.parametrize(
    ("workers", "erase"),
    [(1, erase_over_http), (2, erase_over_http), (2, erase_from_the_command_line), (2, erase_what_matches)],
)
def test_what_clients_keep_resending_stays_away_from_answers_and_disk(
    tmp_path: Path, upstream: ScriptedUpstream, workers: int, erase: Callable[[Proxy, str], Json]
) -> None:
    upstream.script = lambda body: f"Message {len(body['messages'])} is read, and the crates are where they were."
    settings = {"listen": {"workers": workers}, "memory": {"reach": "user"}}
    with Proxy(tmp_path / "data", upstream.url, settings) as proxy:
        Conversation(proxy, "sk-other", headers={"x_palimpsest_user": "ann"}).say(KEPT)
        (other,) = rows(proxy.data, "SELECT name FROM tenant")[0]
        clients = [Client(proxy, "sk-mine", habit) for habit in HABITS]
        for client in clients:
            client.begin(CANARY)
        proxy.settle(vectors=False)
        stranger = of_tenant(proxy.data, other)
        assert "palimpsest.db" in str([*files_with(proxy, CANARY)])
        (mine,) = rows(proxy.data, f"SELECT name FROM tenant WHERE name <> '{other}'")[0]
        with load(clients, QUESTION):
            until(
                lambda: any(CANARY in memory_in(got.json) for got in list(upstream.received)), "a block that quotes it"
            )
            receipt = erase(proxy, mine)
            sent = len(upstream.received)
            assert files_with(proxy, CANARY) == []
            time.sleep(AFTER_SECONDS)
        proxy.settle(vectors=False)
        assert receipt["check"]["clean"]
        assert receipt["erased"]["messages"] > 0
        later = [got.json for got in upstream.received[sent:]]
        assert len(later) > len(clients)
        assert not [body for body in later if "Bellerophon Shipping is 48,200" in memory_in(body)]
        assert files_with(proxy, CANARY) == []
        assert files_with(proxy, "kestrel") == []
        assert {status for client in clients for status in client.statuses} == {200}
        assert proxy.metric("palimpsest_faults_total", where="pipeline") == 0
        assert of_tenant(proxy.data, other) == stranger
        fresh = "SELECT count(*) FROM content WHERE text LIKE '%I ask for the%' OR text LIKE '%I am back%'"
        assert rows(proxy.data, fresh)[0][0] > 0, "what is said anew is kept"
