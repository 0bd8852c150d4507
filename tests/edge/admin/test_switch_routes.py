"""The switches over HTTP, the operator's alone."""

from __future__ import annotations

from tests.edge.admin.asking import ACME, House


async def test_memory_is_switched_off_and_on(house: House) -> None:
    _, said = await house.ask("/memory/v1/disable", method="POST", body={"tenant": "acme", "reason": "they asked"})
    assert [(off["tenant"], off["reason"]) for off in said["switched_off"]] == [("key:acme", "they asked")]
    assert (await house.get("stats"))["switched_off"] == said["switched_off"]
    _, said = await house.ask("/memory/v1/enable", method="POST", body={"tenant": "acme"})
    assert said == {"switched_off": []}
    assert (await house.ask("/memory/v1/disable", ACME, method="POST", body={}))[0] == 403
