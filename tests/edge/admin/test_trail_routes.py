"""Trails over HTTP."""

from __future__ import annotations

from tests.edge.admin.asking import ACME, House


async def test_the_stage_is_told_at_which_a_statement_got_lost(house: House) -> None:
    told = await house.get("conversations/c-1/why-not?q=a+zebrafish+in+nobodys+tank")
    assert (told["lost_at"], told["gap"]) == ("archived", "write")
    assert told["stages"][0]["advice"]


async def test_a_conversation_of_another_tenant_is_not_known(house: House) -> None:
    status, _ = await house.ask("/memory/v1/conversations/c-none/why-not?q=port", ACME)
    assert status == 404
