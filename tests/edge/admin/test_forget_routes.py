"""Who may erase what over HTTP, and what is answered."""

from __future__ import annotations

from typing import Any

import pytest
from palimpsest.core.archive.receipt import is_genuine

from tests.edge.admin.asking import ACME, SECRET, House
from tests.talking import Talk


@pytest.mark.parametrize(
    ("target", "gone"),
    [("conversations/c-1", 1), ("users/ann/office", 2), ("tenants/key:acme", 2), ("conversations/c-1/turns/2", 0)],
)
async def test_delete_answers_with_a_receipt_and_then_knows_nothing_of_it(house: House, target: str, gone: int) -> None:
    status, counted = await house.send("DELETE", f"{target}?dry_run=true")
    assert (status, counted["dry_run"], counted["would_erase"]["conversations"]) == (200, True, gone)
    assert await house.conversations() == 3
    status, receipt = await house.send("DELETE", target)
    assert status == 200
    assert is_genuine(receipt, SECRET)
    assert receipt["check"]["clean"]
    assert await house.conversations() == 3 - gone
    assert (await house.send("DELETE", target))[0] == 404


async def test_a_turn_is_deleted_by_its_id(house: House) -> None:
    asked = await Talk(house.journal, "key:acme", "c-3").say("one more")
    path = f"turns/{asked.turn.id}"
    assert (await house.send("GET", path))[0] == 200
    assert (await house.send("DELETE", path))[0] == 200
    assert (await house.send("GET", path))[0] == 200, "that it was made stays"
    assert (await house.send("DELETE", path))[0] == 404


async def test_a_key_erases_in_its_own_tenant_only(house: House) -> None:
    for method, target, body in (
        ("DELETE", "conversations/c-9", None),
        ("DELETE", "users/bob", None),
        ("POST", "forget", {"matching": "not yours"}),
    ):
        assert (await house.send(method, target, body, ACME))[0] == 404, target
    for method, target, body in (
        ("DELETE", "tenants/key:globex", None),
        ("DELETE", "conversations/c-9?tenant=key:globex", None),
        ("POST", "forget", {"user": "bob", "tenant": "key:globex"}),
    ):
        assert (await house.send(method, target, body, ACME))[0] == 403, target
    assert (await house.send("DELETE", "users/ann/office", None, ACME))[0] == 200
    assert await house.conversations() == 1
    assert (await house.send("DELETE", "conversations/c-9", None, {}))[0] == 401


async def test_post_forgets_what_the_body_says(house: House) -> None:
    asked = {"user": "ann/office", "matching": "FIRST in"}
    _, counted = await house.send("POST", "forget", asked | {"dry_run": True})
    assert counted["would_erase"]["messages"] == 4
    status, receipt = await house.send("POST", "forget", asked)
    assert (status, receipt["erased"]["messages"]) == (200, 4)
    assert (await house.send("POST", "forget", asked))[0] == 404
    assert (await house.send("POST", "forget", {"credentials": True, "dry_run": True}))[0] == 404


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        {},
        {"users": "ann"},
        {"dry_run": 1, "user": "a"},
        {"older_than": "soon"},
        {"turn": 1.5},
        {"credentials": 1},
    ],
)
async def test_what_cannot_be_read_is_400_and_erases_nothing(house: House, body: Any) -> None:
    status, told = await house.send("POST", "forget", body)
    assert (status, told["error"]["type"]) == (400, "palimpsest_error")
    assert await house.conversations() == 3


async def test_an_erasure_is_never_a_get(house: House) -> None:
    assert (await house.send("GET", "forget"))[0] == 405
    assert (await house.send("GET", "users/ann/office"))[0] == 405
    assert await house.conversations() == 3
