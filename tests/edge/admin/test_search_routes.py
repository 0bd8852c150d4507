"""Search over HTTP."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from palimpsest.domain import Memory, Reach
from palimpsest.store.engine.sqlite.database import Database

from tests.databases import database_in
from tests.edge.admin.asking import ACME, AT_HOME, LOCAL, House
from tests.talking import NOW


async def test_search_shows_each_signals_rank_and_score(house: House) -> None:
    said = await house.get("search?q=which+port&tenant=key:acme&limit=5")
    assert (said["admitted"], said["reason"], said["next"]) == (True, "cosine", None)
    assert said["results"][0]["text"] == "port 7431"
    assert said["results"][0]["signals"] == {"dense": [1, 0.8]}
    ((query, _),) = house.remembers.asked
    assert (query.tenant, query.text, query.reach) == ("key:acme", "which port", Reach.TENANT)


async def test_searches_go_one_after_the_other_so_that_requests_find_readers(house: House) -> None:
    asking = [house.ask(f"/memory/v1/search?q=port+{n}&tenant=key:acme") for n in range(4)]
    assert [status for status, _ in await asyncio.gather(*asking)] == [200] * 4
    assert (len(house.remembers.asked), house.remembers.most_at_once) == (4, 1)


async def test_search_stays_where_it_is_told(house: House) -> None:
    await house.get("search?q=port&conversation=c-1", ACME)
    await house.get("search?q=port&user=ann/office&scope=site", ACME)
    (first, _), (second, _) = house.remembers.asked
    occurrences = await house.journal.occurrences("key:acme", "c-1")
    assert (first.conversation, first.reach, first.lost) == ("c-1", Reach.CONVERSATION, occurrences)
    assert (second.user, second.scope, second.reach) == ("ann/office", "site", Reach.USER)


async def test_search_means_the_static_tenant_where_there_is_one_else_the_only_one(database: Database) -> None:
    house = House(database, AT_HOME, default_tenant="me")
    await house.get("search?q=port", LOCAL)
    house = House(database, AT_HOME)
    await house.get("search?q=port&conversation=c-9", LOCAL)
    status, said = await house.ask("/memory/v1/search?q=port", LOCAL)
    assert (status, said["error"]["message"]) == (
        *(400, "tenant is required, such as key:globex, key:acme; /memory/v1/tenants lists all 2"),
    )
    assert [query.tenant for query, _ in house.remembers.asked] == ["key:globex"]


async def test_where_nothing_is_stored_nothing_is_found_and_no_tenant_is_asked_for(tmp_path: Path) -> None:
    database = database_in(tmp_path, "empty.db")
    await database.open()
    said = await House(database, AT_HOME).get("search?q=port", LOCAL)
    assert (said["admitted"], said["reason"], said["results"]) == (False, "nothing is stored yet", [])
    await database.close()


async def test_a_conversation_that_is_not_stored_cannot_be_searched(database: Database) -> None:
    status, _ = await House(database, AT_HOME).ask("/memory/v1/search?q=port&conversation=c-none", LOCAL)
    assert status == 404


def found(count: int) -> list[Memory]:
    roles = ("user", "assistant")
    return [Memory(n + 1, n, "c-1", n, roles[n % 2], f"text {n}", NOW + n) for n in range(count)]


async def test_results_come_in_pages_without_what_was_stored_meanwhile(house: House) -> None:
    house.remembers.found = found(10)
    first = await house.get("search?q=x&limit=4", ACME)
    house.remembers.found = [Memory(99, 99, "c-2", 99, "user", "newer", NOW), *found(10)]
    second = await house.get(f"search?q=x&limit=4&cursor={first['next']}", ACME)
    third = await house.get(f"search?q=x&limit=4&cursor={second['next']}", ACME)
    pages = [[one["memory"] for one in page["results"]] for page in (first, second, third)]
    assert pages == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10]]
    assert third["next"] is None
    assert len({limit for _, limit in house.remembers.asked}) == 1, "the order depends on how many are looked at"


@pytest.mark.parametrize(
    ("asked", "memories"),
    [("role=assistant", [2, 4, 6]), (f"since={NOW + 4}", [5, 6]), (f"until={NOW + 1}&role=user", [1])],
)
async def test_results_are_filtered_by_role_and_period(house: House, asked: str, memories: list[int]) -> None:
    house.remembers.found = found(6)
    said = await house.get(f"search?q=x&{asked}", ACME)
    assert [one["memory"] for one in said["results"]] == memories


async def test_the_stage_is_told_at_which_a_statement_got_lost(house: House) -> None:
    told = await house.get("conversations/c-1/why-not?q=a+zebrafish+in+nobodys+tank")
    assert (told["lost_at"], told["gap"]) == ("archived", "write")
    assert told["stages"][0]["advice"]


async def test_a_conversation_of_another_tenant_is_not_known(house: House) -> None:
    assert (await house.get("conversations/c-9/why-not?q=not+yours"))["stages"][0]["passed"]
    for conversation in ("c-9", "c-none"):
        status, _ = await house.ask(f"/memory/v1/conversations/{conversation}/why-not?q=not+yours", ACME)
        assert status == 404
