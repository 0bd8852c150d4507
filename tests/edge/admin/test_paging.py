"""Pages: each thing once, whatever is written between two of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.edge.admin.asking import ACME, House
from tests.talking import NOW, Talk


async def pages(house: House, path: str, name: str, limit: int) -> list[Any]:
    """All of a list, page by page; between two of them something is written."""
    found, cursor = [], ""
    for number in range(20):
        page = await house.get(f"{path}{'&' if '?' in path else '?'}limit={limit}&cursor={cursor}", ACME)
        assert len(page[name]) <= limit
        found += page[name]
        cursor = page["next"]
        if cursor is None:
            return found
        await Talk(house.journal, "key:acme", f"c-new{number}").say(f"new {number}", user="ann/office")
    raise AssertionError("the pages have no end")


@pytest.mark.parametrize(
    ("path", "name", "key"),
    [
        ("conversations", "conversations", "conversation"),
        ("turns", "turns", "turn"),
        ("memories", "memories", "memory"),
        ("memories?conversation=c-1", "memories", "memory"),
        ("conversations/c-1/turns", "turns", "turn"),
    ],
)
async def test_every_thing_comes_once_though_others_are_stored_meanwhile(
    house: House, path: str, name: str, key: str
) -> None:
    before = [one[key] for one in (await house.get(path, ACME))[name]]
    assert len(before) > 1
    assert [one[key] for one in await pages(house, path, name, 1)] == before


async def test_a_cursor_is_of_one_list(house: House) -> None:
    cursor = (await house.get("turns?limit=1"))["next"]
    assert (await house.ask(f"/memory/v1/memories?cursor={cursor}"))[0] == 400
    assert (await house.ask(f"/memory/v1/conversations/c-1/turns?cursor={cursor}"))[0] == 400


@pytest.mark.parametrize(
    ("since", "until", "count"),
    [
        ("2023-11-14", "2023-11-15", 3),
        ("2023-11-14T22:13:20Z", "", 3),
        ("2023-11-14T22:13:20", "", 3),
        ("2023-11-14T23:13:21%2B01:00", "", 0),
        ("", "2023-11-14T22:13:20Z", 0),
        (f"{NOW}", f"{NOW + 1}", 3),
        (f"{NOW + 1}", "", 0),
    ],
)
async def test_a_period_holds_its_beginning_and_not_its_end(house: House, since: str, until: str, count: int) -> None:
    asked = "&".join(f"{name}={value}" for name, value in (("since", since), ("until", until)) if value)
    assert len((await house.get(f"conversations?{asked}"))["conversations"]) == count
    assert bool((await house.get(f"turns?{asked}"))["turns"]) is bool(count)
    assert bool((await house.get(f"memories?{asked}"))["memories"]) is bool(count)
