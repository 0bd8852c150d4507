"""What is due, and erasing it now: the operator's alone."""

from __future__ import annotations

from palimpsest.settings.policy import RetentionPolicy

from tests.edge.admin.asking import ACME, House


async def test_what_is_due_is_counted_and_erased_at_once(house: House) -> None:
    told = await house.get("retention")
    assert told["kinds"]["turns"] == {"due": 0, "oldest_seconds": None}
    house.retention = RetentionPolicy(turns="0d")
    assert (await house.get("retention"))["kinds"]["turns"]["due"] == 10
    status, told = await house.send("POST", "retention", {})
    assert (status, told["swept"], told["complete"]) == (200, {"turns": 10}, True)
    assert await house.conversations() == 0


async def test_a_proxy_key_neither_sees_nor_starts_it(house: House) -> None:
    assert (await house.send("GET", "retention", headers=ACME))[0] == 403
    assert (await house.send("POST", "retention", {}, ACME))[0] == 403
