"""Who may retire what over HTTP, and take it back."""

from __future__ import annotations

import pytest
from palimpsest.core.archive.receipt import is_genuine

from tests.edge.admin.asking import ACME, SECRET, House


async def test_what_is_retired_is_listed_and_taken_back_once(house: House) -> None:
    status, counted = await house.send("POST", "retire", {"user": "ann/office", "dry_run": True})
    assert (status, counted["would_retire"]["messages"]) == (200, 8)
    assert await house.send("GET", "retirements") == (200, {"retirements": []})
    status, receipt = await house.send("POST", "retire", {"user": "ann/office"})
    assert status == 200
    assert is_genuine(receipt, SECRET)
    assert (await house.send("POST", "retire", {"user": "ann/office"}))[0] == 404
    _, listed = await house.send("GET", "retirements")
    assert [(one["id"], one["messages"], one["until"]) for one in listed["retirements"]] == [
        (receipt["id"], 8, receipt["until"])
    ]
    status, undone = await house.send("DELETE", f"retirements/{receipt['id']}")
    assert (status, undone["messages"]) == (200, 8)
    assert (await house.send("DELETE", f"retirements/{receipt['id']}"))[0] == 404


async def test_a_key_retires_and_takes_back_in_its_own_tenant_only(house: House) -> None:
    assert (await house.send("POST", "retire", {"user": "bob"}, ACME))[0] == 404
    assert (await house.send("POST", "retire", {"user": "bob", "tenant": "key:globex"}, ACME))[0] == 403
    _, receipt = await house.send("POST", "retire", {"user": "bob"})
    assert await house.send("GET", "retirements", headers=ACME) == (200, {"retirements": []})
    assert (await house.send("DELETE", f"retirements/{receipt['id']}", headers=ACME))[0] == 404
    assert (await house.send("DELETE", f"retirements/{receipt['id']}"))[0] == 200


@pytest.mark.parametrize("body", [{}, {"users": "ann/office"}, {"older_than": "soon"}])
async def test_what_cannot_be_read_is_said(house: House, body: dict[str, str]) -> None:
    status, told = await house.send("POST", "retire", body)
    assert status == 400
    assert told["error"]
