"""Items, relations and runs over HTTP: a tenant sees and changes its own."""

from __future__ import annotations

from tests.edge.admin.asking import ACME, ADMIN, House
from tests.kept_items import tell
from tests.remembered import Past

RED, BLUE = (f"My favourite colour is {colour}." for colour in ("red", "blue"))


async def fill(house: House) -> None:
    past = Past(house.database)
    for tenant in ("key:acme", "key:globex"):
        about = dict(tenant=tenant, user="ann", scope="sea", conversation=f"c-{tenant}")
        await tell(past, RED, BLUE, "Oscar is a guinea pig.", **about)


async def test_items_come_page_by_page_with_their_sources_and_states(house: House) -> None:
    await fill(house)
    assert (await house.send("POST", "consolidation", {"user": "ann"}))[0] == 200
    page = await house.get("items?tenant=key:acme&user=ann&scope=sea&limit=2")
    assert [(item["text"], item["state"]) for item in page["items"]] == [
        ("Oscar is a guinea pig.", "current"),
        (BLUE, "current"),
    ]
    rest = await house.get(f"items?tenant=key:acme&user=ann&scope=sea&limit=2&cursor={page['next']}")
    (red,) = rest["items"]
    assert (red["text"], red["state"], red["heir"], rest["next"]) == (RED, "superseded", page["items"][1]["item"], None)
    assert red["sources"] == [{"occurrence": red["sources"][0]["occurrence"], "start": 0, "stop": len(RED)}]
    assert (await house.get("items?user=bob"))["items"] == []


async def test_a_key_sees_and_consolidates_its_own_tenant_alone(house: House) -> None:
    await fill(house)
    assert {item["tenant"] for item in (await house.get("items", ACME))["items"]} == {"key:acme"}
    status, told = await house.send("POST", "consolidation", {}, ACME)
    assert (status, told["superseded"], told["complete"], len(told["runs"])) == (200, 1, True, 1)
    assert [item["state"] for item in (await house.get("items?tenant=key:globex"))["items"]] == ["current"] * 3
    (relation,) = (await house.get("relations", ACME))["relations"]
    assert (relation["source"], relation["relation"], relation["target"], relation["users"]) == (
        *("Oscar", "is-a", "guinea pig"),
        1,
    )


async def test_a_run_is_shown_with_its_reasons_and_taken_back(house: House) -> None:
    await fill(house)
    _, told = await house.send("POST", "consolidation", {"tenant": "key:globex"}, ADMIN)
    (run,) = told["runs"]
    assert [one["run"] for one in (await house.get("consolidation"))["runs"]] == [run]
    steps = (await house.get(f"consolidation/{run}"))["steps"]
    assert [(step["what"], step["why"]) for step in steps] == [
        ("superseded", "a newer value of: favorite color"),
        ("related", "1 relations"),
    ]
    assert (await house.ask(f"/memory/v1/consolidation/{run}", ACME))[0] == 404
    assert (await house.send("DELETE", f"consolidation/{run}", headers=ACME))[0] == 404
    status, undone = await house.send("DELETE", f"consolidation/{run}")
    assert (status, undone["superseded"]) == (200, 1)
    assert (await house.send("DELETE", f"consolidation/{run}"))[0] == 404


async def test_a_dry_run_says_what_would_be_done(house: House) -> None:
    await fill(house)
    _, told = await house.send("POST", "consolidation", {"dry_run": True, "tenant": "key:acme"})
    assert (told["runs"], [action["what"] for action in told["would"]]) == ([], ["superseded"])
    assert (await house.get("consolidation"))["runs"] == []
