"""Trails over HTTP."""

from __future__ import annotations

from tests.edge.admin.asking import ACME, House


async def test_the_stage_is_told_at_which_a_statement_got_lost(house: House) -> None:
    told = await house.get("conversations/c-1/why-not?q=a+zebrafish+in+nobodys+tank")
    assert (told["lost_at"], told["gap"]) == ("archived", "write")
    assert told["stages"][0]["advice"]


async def test_a_conversation_of_another_tenant_is_not_known(house: House) -> None:
    assert (await house.get("conversations/c-9/why-not?q=not+yours"))["stages"][0]["passed"]
    for conversation in ("c-9", "c-none"):
        status, _ = await house.ask(f"/memory/v1/conversations/{conversation}/why-not?q=not+yours", ACME)
        assert status == 404
