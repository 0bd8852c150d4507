"""Export over HTTP: the lines of the command, of the caller's own tenant."""

from __future__ import annotations

from palimpsest.features.transfer.lines import export
from palimpsest.store.turns.transcript import Selection

from tests.edge.admin.asking import ACME, House


async def test_an_operator_exports_what_the_command_does(house: House) -> None:
    status, said = await house.ask("/memory/v1/export")
    lines = [lines async for lines in export(house.database, Selection(), str.encode)]
    assert (status, said) == (200, b"".join(lines).decode())
    assert house.headers[b"content-type"] == b"application/jsonl"
    _, one = await house.ask("/memory/v1/export?conversation=c-2&user=ann/office&scope=site")
    assert one.count("\n") == 3 and "first in c-2" in one and "c-1" not in one


async def test_a_key_exports_its_own_tenant_only(house: House) -> None:
    _, said = await house.ask("/memory/v1/export", ACME)
    assert said.count("\n") == 5 and "not yours" not in said
    assert (await house.ask("/memory/v1/export?tenant=key:globex", ACME))[0] == 403
    assert (await house.ask("/memory/v1/export?user=bob", ACME))[0] == 404


async def test_nothing_that_matches_is_not_found(house: House) -> None:
    assert (await house.ask("/memory/v1/export?user=nobody"))[0] == 404
