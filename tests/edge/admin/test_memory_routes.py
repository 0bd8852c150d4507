"""Memories: what can be found, and where it comes from."""

from __future__ import annotations

import pytest

from tests.edge.admin.asking import ACME, House


async def test_a_memory_is_shown_with_the_place_that_it_comes_from(house: House) -> None:
    shown = (await house.get("memories?conversation=c-1&role=user"))["memories"][0]
    turn = await house.get(f"turns/{shown['turn']}")
    (message,) = [one for one in turn["new_messages"] if one["occurrence"] == shown["occurrence"]]
    assert shown["text"] == message["text"][shown["start"] : shown["stop"]] == "second in c-1"
    assert (shown["conversation"], shown["role"], shown["is_indexed"]) == ("c-1", "user", False)
    assert not any(tag.startswith("=") for tag in shown["tags"])
    assert await house.get(f"memories/{shown['memory']}", ACME) == shown


@pytest.mark.parametrize(
    ("asked", "count"),
    [("", 10), ("conversation=c-1", 4), ("role=assistant", 5), ("user=bob", 2), ("scope=site", 8), ("user=b", 0)],
)
async def test_memories_are_listed_by_whose_they_are(house: House, asked: str, count: int) -> None:
    assert len((await house.get(f"memories?{asked}"))["memories"]) == count


async def test_an_unknown_memory_is_404_and_another_tenants_too(house: House) -> None:
    (foreign, *_) = (await house.get("memories?tenant=key:globex"))["memories"]
    for number, headers in ((foreign["memory"], ACME), (999, ACME)):
        assert (await house.ask(f"/memory/v1/memories/{number}", headers))[0] == 404


async def test_what_was_erased_is_no_memory(house: House) -> None:
    assert (await house.ask("/memory/v1/conversations/c-1", method="DELETE"))[0] == 200
    assert (await house.get("memories?conversation=c-1"))["memories"] == []
