"""What holds for every operation: who may ask, and how failures are answered."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import MISSING, fields
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import orjson
import pytest
from palimpsest.core.caller.proxy_keys import ProxyKeys, digest_of
from palimpsest.domain import ProxyKey
from palimpsest.edge.access import Access
from palimpsest.edge.admin.guard import Guard, PathEndpoint
from palimpsest.edge.admin.operation import PREFIX, Call, Nothing, OfTenant, Operation
from palimpsest.edge.admin.routes import all_operations
from palimpsest.features.registry import OPERATIONS as OF_FEATURES
from palimpsest.settings.policy import FactsPolicy, Policy
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.knowledge import consolidations
from starlette.responses import Response, StreamingResponse

from tests.edge.admin.asking import ACME, AT_HOME, LOCAL, House
from tests.talking import NOW, Talk

OPERATIONS = [pytest.param(one, id=f"{one.method} {one.path}") for one in all_operations(OF_FEATURES)]
PATHS = ["conversations", "conversations/c-1/turns", "turns/newest", "memories", "search?q=x", "stats", "policy"]
FOREIGN_WORDS = ("not yours", "c-9", "bob", "globex")


async def names_of_globex(house: House) -> dict[str, Any]:
    """A value for each parameter, all of the tenant whose key is not sent."""
    (turn,) = (await house.get("turns?tenant=key:globex"))["turns"]
    newest = (await house.get("memories?tenant=key:globex"))["memories"][0]
    await Talk(house.journal, "key:globex", "c-8").say("no longer yours either", user="eve")
    _, retired = await house.send("POST", "retire", {"tenant": "key:globex", "user": "eve"})
    house.policy = Policy(facts=FactsPolicy(policy="suggest"))
    told = {"tenant": "key:globex", "subject": "not yours", "slot": "not yours", "value": "not yours"}
    _, fact = await house.send("POST", "facts", told)
    ((tenant,),) = await house.database.read("SELECT id FROM tenant WHERE name = 'key:globex'")
    await house.database.transact(partial(consolidations.begin, key="n-1", tenant=tenant, at=NOW))
    return {
        "tenant": "key:globex",
        "conversation": "c-9",
        "turn": turn["turn"],
        "number": "1",
        "memory": newest["memory"],
        "user": "bob",
        "retirement": retired["id"],
        "q": "not yours",
        "matching": "not yours",
        "name": "not yours",
        "id": "k-1",
        "fact": fact["id"],
        "run": "n-1",
        "api": "chat/completions",
        "request": {"model": "m", "messages": [{"role": "user", "content": "hello"}]},
        "answer": {},
        "client": "claude-code",
        "session": "s-1",
        **{name: told[name] for name in ("subject", "slot", "value")},
    }


OF_ITS_OWN = {"/sessions": {"event": "cleared"}}  # what a name means to one operation alone


def request_to(operation: Operation[Any], names: dict[str, Any], *, with_tenant: bool) -> tuple[str, Any]:
    """Path and body of a request that names them wherever they can be named."""
    known = {field.name: field for field in fields(operation.asks)}
    names = names | OF_ITS_OWN.get(operation.path, {})
    lacking = [n for n, f in known.items() if f.default is MISSING and f.default_factory is MISSING and n not in names]
    assert not lacking, f"say in names_of_globex what a stranger would put for {lacking}"
    path = PREFIX + operation.path.replace(":path", "")
    for name in operation.path_names:
        path = path.replace("{" + name + "}", quote(str(names[name]), safe=""))
    asked = {n: v for n, v in names.items() if n in known and n not in operation.path_names}
    if not with_tenant:
        asked.pop("tenant", None)
    return (path, asked) if operation.body else (f"{path}?{urlencode(asked)}", None)


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_a_proxy_key_neither_sees_nor_changes_what_is_another_tenants(
    house: House, operation: Operation[Any]
) -> None:
    names = await names_of_globex(house)
    before = await house.get("tenants?tenant=key:globex"), await house.get("memories?tenant=key:globex")
    for with_tenant in (True, False):
        target, body = request_to(operation, names, with_tenant=with_tenant)
        status, said = await house.ask(target, ACME, operation.method, body)
        can_name_it = issubclass(operation.asks, OfTenant) and (with_tenant or "tenant" in operation.path_names)
        if operation.for_operator or can_name_it:
            assert status == 403, said
        if status == 201:  # its own, in the words that it sent
            assert said["tenant"] == "key:acme"
            continue
        assert status in (200, 403, 404), said
        if operation.path not in ("/search", "/openapi.json"):  # the one has a stand-in, the other nothing of anybody's
            assert [word for word in FOREIGN_WORDS if word in orjson.dumps(said).decode()] == []
    assert (await house.get("tenants?tenant=key:globex"), await house.get("memories?tenant=key:globex")) == before
    assert {query.tenant for query, _ in house.remembers.asked} <= {"key:acme"}


OF_NOBODY = ("/health", "/openapi.json")
OF_THE_CREDENTIAL = (
    "/link",
    "/link/{turn}",
    "/link/{turn}",
    "/prepare",
    "/turns",
)  # of the tenant whose request or turn it is, as on the proxied paths


def test_every_operation_is_within_a_tenant_or_the_operators() -> None:
    strays = [one for one in all_operations(OF_FEATURES) if not (one.for_operator or issubclass(one.asks, OfTenant))]
    assert sorted(one.path for one in strays) == sorted((*OF_NOBODY, *OF_THE_CREDENTIAL))


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_a_key_that_only_reads_changes_nothing(database: Database, operation: Operation[Any]) -> None:
    key = ProxyKey("k-2", "plm_", "readers", "key:acme", read_only=True)
    house = House(database, Access("t0ken", ProxyKeys({}, {digest_of(b"acme-key"): key}), is_loopback=False))
    target, body = request_to(operation, await names_of_globex(house), with_tenant=False)
    status, said = await house.ask(target, ACME, operation.method, body)
    assert status in ((200, 403, 404) if operation.method == "GET" else (403,)), said


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_strangers_are_refused_everywhere(home: House, house: House, operation: Operation[Any]) -> None:
    target, body = request_to(operation, await names_of_globex(house), with_tenant=False)
    stored = await house.conversations()
    assert (await home.ask(target, {"host": "evil.example"}, operation.method, body))[0] == 403
    assert (await house.ask(target, LOCAL, operation.method, body))[0] == 401
    assert house.headers[b"www-authenticate"] == b"Bearer"
    assert await house.conversations() == stored


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_a_wrong_method_is_405_and_told_which_are_right(house: House, operation: Operation[Any]) -> None:
    target, _ = request_to(operation, await names_of_globex(house), with_tenant=False)
    status, said = await house.ask(target, method="PATCH")
    assert status == 405
    assert operation.method in house.headers[b"allow"].decode().split(", ")
    assert said["error"] == {
        "message": f"PATCH is not allowed here; allowed: {house.headers[b'allow'].decode()}",
        "type": "palimpsest_error",
        "code": 405,
    }


@pytest.mark.parametrize("path", PATHS)
async def test_head_is_answered_as_get(house: House, path: str) -> None:
    status, _ = await house.ask(f"/memory/v1/{path}", method="HEAD")
    assert status == (await house.ask(f"/memory/v1/{path}"))[0]
    assert house.headers[b"content-type"] == b"application/json"


async def test_a_stream_is_not_kept_and_head_of_it_reads_nothing() -> None:
    read: list[int] = []

    async def lines() -> AsyncIterator[bytes]:
        for number in range(3):
            read.append(number)
            yield b"line\n"

    async def run(_call: Call[Nothing]) -> Response:
        return StreamingResponse(lines(), media_type="application/jsonl")

    endpoint = PathEndpoint(Guard(AT_HOME), [Operation("GET", "/lines", "Lines", run, Nothing, str)])

    async def ask(method: str) -> list[Any]:
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(name.encode(), value.encode()) for name, value in LOCAL.items()]
        scope = {"type": "http", "asgi": {"spec_version": "2.4"}, "method": method, "query_string": b""}
        await endpoint(scope | {"headers": headers}, receive, send)
        return sent

    head, *body = await ask("HEAD")
    assert (head["status"], b"".join(one["body"] for one in body), read) == (200, b"", [])
    head, *body = await ask("GET")
    assert (b"".join(one["body"] for one in body), read) == (b"line\n" * 3, [0, 1, 2])
    assert dict(head["headers"])[b"cache-control"] == b"no-store"


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.parametrize("path", ["/memory", "/memory/", "/memory/v1/unknown", "/memory/v1/stats/", "/memory/v2/stats"])
async def test_nothing_below_memory_falls_through(house: House, path: str, method: str) -> None:
    status, said = await house.ask(path, method=method)
    assert (status, said["error"]["code"], said["error"]["type"]) == (404, 404, "palimpsest_error")


@pytest.mark.parametrize("path", [path for path in PATHS if path not in ("policy", "search?q=x")])
async def test_a_fault_of_memory_is_503_and_tells_no_path(tmp_path: Path, path: str) -> None:
    status, said = await House(Database(tmp_path)).ask(f"/memory/v1/{path}")  # a folder is no database
    assert status == 503
    assert str(tmp_path) not in said["error"]["message"]


async def test_no_cache_and_no_page_of_another_origin_may_keep_what_is_said(home: House) -> None:
    assert (await home.ask("/memory/v1/conversations", LOCAL))[0] == 200
    assert home.headers[b"cache-control"] == b"no-store"
    assert b"access-control-allow-origin" not in home.headers


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("conversations?limit=0", "limit: must be a number from 1 to 200"),
        ("conversations?limit=201", "limit: must be a number from 1 to 200"),
        ("conversations?limit=x", "limit: must be a number from 1 to 200"),
        ("conversations?limt=5", "limt: not known here; did you mean limit?"),
        ("stats?tenant=a", "tenant: not known here; allowed: none"),
        ("conversations?limit=5&limit=6", "limit: given more than once"),
        ("conversations?role=boss", "role: must be 'main', 'subagent' or 'side'"),
        ("conversations?since=yesterday", "since: must be a valid datetime"),
        ("conversations?cursor=x", "cursor: not one of this list"),
        ("turns?added=maybe", "added: must be a valid boolean"),
        ("search", "q is required"),
        ("search?q=+", "q is required"),
        ("search?q=x&limit=0&role=", "limit: must be a number from 1 to 200"),
    ],
)
async def test_what_is_asked_wrongly_is_400_and_told_how_it_is_right(house: House, path: str, words: str) -> None:
    status, said = await house.ask(f"/memory/v1/{path}")
    assert (status, said["error"]["code"], said["error"]["type"]) == (400, 400, "palimpsest_error")
    assert words in said["error"]["message"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "nothing is selected"),
        (b"{", "the body must be a JSON object"),
        (b"[]", "the body must be a JSON object"),
        (b'{"user":' + b"[" * 600 + b"]" * 600 + b"}", "the body is nested too deeply"),
        (b'{"user":' + b"[" * 5000 + b"]" * 5000 + b"}", "the body must be a JSON object"),
        ({"users": "ann"}, "users: not known here; did you mean user?"),
        ({"user": "ann", "dry_run": 1}, "dry_run: must be a valid boolean"),
        ({"turn": 1.5}, "turn: must be a valid string"),
        ({}, "nothing is selected"),
        ({"user": ""}, "user is required"),
        ({"older_than": "soon"}, "older_than: not understood; expected: age of messages: 90d, 12h, 4w"),
    ],
)
async def test_a_body_is_read_as_strictly(house: House, body: Any, words: str) -> None:
    status, said = await house.ask("/memory/v1/forget", method="POST", body=body)
    assert status == 400
    assert words in said["error"]["message"]


async def test_a_body_that_is_too_large_is_not_read(house: House) -> None:
    body = {"matching": "x" * (1 << 20)}
    assert (await house.ask("/memory/v1/forget", method="POST", body=body))[0] == 413


@pytest.mark.parametrize("number", ["0", "-1", "01", "1.0", "last", "9" * 5000])
async def test_what_is_wrong_in_a_path_names_nothing(house: House, number: str) -> None:
    for path in (f"conversations/c-1/turns/{number}", f"memories/{number.replace('01', 'x').replace('1.0', 'y')}"):
        assert (await house.ask(f"/memory/v1/{path}"))[0] == 404
