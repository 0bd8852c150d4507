"""Who may erase what over HTTP, and what is answered."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, cast

import orjson
import pytest
from starlette.applications import Starlette

from proxy.core.archive.receipt import is_genuine
from proxy.edge.access import Access
from proxy.edge.admin.forget_routes import ForgetRoutes
from proxy.edge.admin.routes import admin_routes
from proxy.memory.forgetting import Forgetting
from proxy.memory.service import MemoryState
from proxy.metrics import Metrics
from proxy.ports import Remembering
from proxy.store.database import Database
from proxy.store.journal import Journal
from tests.talking import NOW, Talk

SECRET = b"a secret of thirty-two bytes ....."
ADMIN = {"authorization": "Bearer t0ken"}
ACME = {"authorization": "Bearer acme-key"}


async def ready() -> MemoryState:
    return MemoryState("ready", "ready")


class House:
    """The routes over a real database, asked as an ASGI server would ask."""

    def __init__(self, database: Database) -> None:
        self.journal = Journal(database)
        self.app = Starlette(
            routes=admin_routes(
                journal=self.journal,
                state=ready,
                remembering=cast(Remembering, None),
                metrics=Metrics(),
                access=Access("t0ken", {"acme-key": "key:acme"}, is_loopback=False),
                forgetting=ForgetRoutes(Forgetting(database, SECRET, lambda: NOW + 1), lambda: NOW + 1),
            )
        )

    async def ask(
        self, method: str, target: str, body: Any = None, headers: Mapping[str, str] = ADMIN
    ) -> tuple[int, dict[str, Any]]:
        path, _, query = target.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": f"/memory/v1/{path}",
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }
        sent: list[Any] = []
        data = body if isinstance(body, bytes) else orjson.dumps(body)

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": data, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        answer = b"".join(message.get("body", b"") for message in sent[1:])
        return sent[0]["status"], orjson.loads(answer) if answer.startswith(b"{") else {}

    async def conversations(self) -> int:
        return int((await self.journal.stats())["conversations"])


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    """Two tenants; of the first, two conversations of Ann's with two turns each."""
    database = Database(tmp_path / "palimpsest.db")
    await database.open()
    house = House(database)
    for name in ("c-1", "c-2"):
        talk = Talk(house.journal, "key:acme", name)
        await talk.say(f"first in {name}", user="ann/office")
        await talk.say(f"second in {name}", user="ann/office")
    await Talk(house.journal, "key:globex", "c-9").say("not yours", user="bob")
    yield house
    await database.close()


@pytest.mark.parametrize(
    ("target", "gone"),
    [("conversations/c-1", 1), ("users/ann/office", 2), ("tenants/key:acme", 2), ("conversations/c-1/turns/2", 0)],
)
async def test_delete_answers_with_a_receipt_and_then_knows_nothing_of_it(house: House, target: str, gone: int) -> None:
    status, counted = await house.ask("DELETE", f"{target}?dry_run=true")
    assert (status, counted["dry_run"], counted["would_erase"]["conversations"]) == (200, True, gone)
    assert await house.conversations() == 3
    status, receipt = await house.ask("DELETE", target)
    assert status == 200
    assert is_genuine(receipt, SECRET)
    assert receipt["check"]["clean"]
    assert await house.conversations() == 3 - gone
    assert (await house.ask("DELETE", target))[0] == 404


async def test_a_turn_is_deleted_by_its_id(house: House) -> None:
    asked = await Talk(house.journal, "key:acme", "c-3").say("one more")
    path = f"turns/{asked.turn.id}"
    assert (await house.ask("GET", path))[0] == 200
    assert (await house.ask("DELETE", path))[0] == 200
    assert (await house.ask("GET", path))[0] == 200, "that it was made stays"
    assert (await house.ask("DELETE", path))[0] == 404


async def test_a_key_erases_in_its_own_tenant_only(house: House) -> None:
    for method, target, body in (
        ("DELETE", "conversations/c-9", None),
        ("DELETE", "users/bob", None),
        ("POST", "forget", {"matching": "not yours"}),
    ):
        assert (await house.ask(method, target, body, ACME))[0] == 404, target
    for method, target, body in (
        ("DELETE", "tenants/key:globex", None),
        ("DELETE", "conversations/c-9?tenant=key:globex", None),
        ("POST", "forget", {"user": "bob", "tenant": "key:globex"}),
    ):
        assert (await house.ask(method, target, body, ACME))[0] == 403, target
    assert (await house.ask("DELETE", "users/ann/office", None, ACME))[0] == 200
    assert await house.conversations() == 1
    assert (await house.ask("DELETE", "conversations/c-9", None, {}))[0] == 401


async def test_post_forgets_what_the_body_says(house: House) -> None:
    asked = {"user": "ann/office", "matching": "FIRST in"}
    _, counted = await house.ask("POST", "forget", asked | {"dry_run": True})
    assert counted["would_erase"]["messages"] == 4
    status, receipt = await house.ask("POST", "forget", asked)
    assert (status, receipt["erased"]["messages"]) == (200, 4)
    assert (await house.ask("POST", "forget", asked))[0] == 404


@pytest.mark.parametrize(
    "body", [b"", b"[]", {}, {"users": "ann"}, {"dry_run": 1, "user": "a"}, {"older_than": "soon"}, {"turn": 1.5}]
)
async def test_what_cannot_be_read_is_400_and_erases_nothing(house: House, body: Any) -> None:
    status, told = await house.ask("POST", "forget", body)
    assert (status, told["error"]["type"]) == (400, "palimpsest_error")
    assert await house.conversations() == 3


async def test_an_erasure_is_never_a_get(house: House) -> None:
    assert (await house.ask("GET", "forget"))[0] == 405
    assert (await house.ask("GET", "users/ann/office"))[0] == 405
    assert await house.conversations() == 3
