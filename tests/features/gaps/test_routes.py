"""What memory loses in writing and in recall, over HTTP."""

from __future__ import annotations

from palimpsest.store.operation.probes import save

from tests.edge.admin.asking import ACME, House
from tests.talking import NOW


async def test_gaps_are_of_all_tenants_and_the_operators(house: House) -> None:
    assert await house.get("gaps") == {"gaps": None}
    assert (await house.get("stats"))["gaps"] is None
    for stage in ("found", "found", "indexed", "packed"):
        await house.database.transact(lambda transaction, stage=stage: save(transaction, NOW, stage))  # type: ignore[misc]
    told = (await house.get("gaps"))["gaps"]
    assert (told["probes"], told["write_gap"], told["retrieval_gap"], told["verdict"]) == (4, 0.25, 0.25, "mixed")
    assert (told["since"], told["until"], told["stages"]["packed"]) == (NOW, NOW, 1)
    assert (await house.get("stats"))["gaps"] == told
    assert (await house.ask("/memory/v1/gaps", ACME))[0] == 403
