"""Counts of all tenants."""

from __future__ import annotations

from tests.edge.admin.asking import ACME, House


async def test_stats_are_the_journals_and_the_operators(house: House) -> None:
    assert await house.get("stats") == dict(await house.journal.stats())
    assert (await house.ask("/memory/v1/stats", ACME))[0] == 403
