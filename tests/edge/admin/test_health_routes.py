"""Health, as people are told."""

from __future__ import annotations

from palimpsest.memory.service import MemoryState

from tests.edge.admin.asking import ACME, ADMIN, House


async def test_health_says_the_same_to_people_and_is_always_an_answer(house: House) -> None:
    house.now = MemoryState("failed", "ready", None, ("the store does not answer",))
    for headers in (ADMIN, ACME):
        said = await house.get("health", headers)
        assert (said["ready"], said["reasons"]) == (False, ["the store does not answer"])
        assert said["version"]
