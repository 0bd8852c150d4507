"""Facts over HTTP: told, listed in pages, pinned and forgotten, each tenant's own."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from palimpsest.settings.policy import Policy

from tests.edge.admin.asking import ACME, ADMIN, House
from tests.talking import NOW

PORT: dict[str, Any] = {"subject": "project", "slot": "port", "value": "5432", "user": "ann", "category": "setting"}


@pytest.fixture
def house(house: House) -> House:
    house.policy = Policy.model_validate({"facts": {"policy": "suggest"}})
    return house


async def told(house: House, headers: Any = ACME, **more: Any) -> dict[str, Any]:
    status, fact = await house.ask("/memory/v1/facts", headers, "POST", PORT | more)
    assert status == 201, fact
    return dict(fact)


async def listed(house: House, query: str = "", headers: Any = ACME) -> list[str]:
    status, page = await house.ask(f"/memory/v1/facts?{query}", headers)
    assert status == 200, page
    return [fact["value"] for fact in page["facts"]]


async def test_a_fact_is_told_shown_and_listed(house: House) -> None:
    fact = await told(house)
    assert (fact["tenant"], fact["user"], fact["value"]) == ("key:acme", "ann", "5432")
    assert (fact["source"]["origin"], fact["source"]["tool"]) == ("tool", "api")
    assert await house.ask(f"/memory/v1/facts/{fact['id']}", ACME) == (200, fact)
    assert await house.get("facts?user=ann&category=setting&subject=pro*&matching=port*54") == {
        "facts": [fact],
        "next": None,
        "are_kept": True,
    }
    assert await listed(house, "user=bob") == [] == await listed(house, "category=note")


async def test_a_list_comes_in_pages_and_history_only_where_it_is_asked_for(house: House) -> None:
    for slot in ("a", "b", "c"):
        await told(house, slot=slot, value=slot)
    await told(house, slot="a", value="d")
    seen, cursor = [], ""
    while cursor is not None:
        page = (await house.ask(f"/memory/v1/facts?limit=2&cursor={cursor}", ACME))[1]
        seen += [fact["value"] for fact in page["facts"]]
        cursor = page["next"]
    assert seen == ["d", "c", "b"] and await listed(house, "history=true") == ["d", "c", "b", "a"]


async def test_a_fact_of_another_tenant_is_not_there(house: House) -> None:
    fact = await told(house, headers=ADMIN, tenant="other")
    path = f"/memory/v1/facts/{fact['id']}"
    for method, target in (("GET", path), ("DELETE", path), ("PUT", f"{path}/pin"), ("DELETE", f"{path}/pin")):
        assert (await house.ask(target, ACME, method))[0] == 404, (method, target)
    assert await listed(house) == [] and await listed(house, headers=ADMIN) == ["5432"]
    assert (await house.ask(path))[0] == 200


async def test_a_fact_is_pinned_and_forgotten(house: House) -> None:
    fact = await told(house)
    path = f"/memory/v1/facts/{fact['id']}"
    assert (await house.ask(f"{path}/pin", ACME, "PUT"))[1]["pinned"] is True
    assert (await house.ask(f"{path}/pin", ACME, "DELETE"))[1]["pinned"] is False
    assert await house.ask(path, ACME, "DELETE") == (200, {"id": fact["id"], "statements": 1})
    assert (await house.ask(path, ACME, "DELETE"))[0] == 404


async def test_a_fact_may_end(house: House) -> None:
    soon = datetime.fromtimestamp(NOW + 5, UTC).isoformat()
    assert (await told(house, valid_until=soon))["valid_until"] == NOW + 5
    status, said = await house.ask("/memory/v1/facts", ACME, "POST", PORT | {"valid_until": "2020-01-01T00:00:00Z"})
    assert status == 400 and "valid_until: is in the past" in said["error"]["message"]


async def test_what_is_wrong_with_a_fact_is_said(house: House) -> None:
    for body, words in (
        ({"subject": "x"}, "slot"),
        (PORT | {"value": " "}, "value"),
        (PORT | {"category": "rumour"}, "category"),
        (PORT | {"value": "v" * 1001}, "value"),
    ):
        status, said = await house.ask("/memory/v1/facts", ACME, "POST", body)
        assert status == 400 and words in said["error"]["message"]
    status, said = await house.ask("/memory/v1/facts", ADMIN, "POST", PORT)
    assert status == 400 and "tenant: required" in said["error"]["message"]
    house.policy = Policy()
    status, said = await house.ask("/memory/v1/facts", ACME, "POST", PORT)
    assert status == 400 and "facts.policy is off" in said["error"]["message"]


async def test_only_the_operator_has_all_made_again(house: House) -> None:
    assert (await house.ask("/memory/v1/facts/rebuild", ACME, "POST"))[0] == 403
    assert await house.ask("/memory/v1/facts/rebuild", ADMIN, "POST") == (202, {"rebuilding": True})
