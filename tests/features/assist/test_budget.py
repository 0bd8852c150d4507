"""The daily caps of a role."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import pytest
from palimpsest.domain.days import day_of
from palimpsest.domain.errors import AssistFault
from palimpsest.features.assist.budget import Budget
from palimpsest.settings.policy import AssistantPolicy
from palimpsest.settings.prices import Price
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.operation.assist_usage import AssistUsage, usage_of_day

from tests.clock import Clock
from tests.databases import database_in
from tests.features.assist.helping import BLUE, PROMPT, TENANT, AssistTally, helped

DAY_SECONDS = 86_400.0


def budget(database: Database, clock: Clock, price: Price | None = None, **caps: float | None) -> Budget:
    return Budget("writer", AssistantPolicy(model="openai/x", **caps), price, database, clock)  # type: ignore[arg-type]


async def usage(database: Database, at: float) -> AssistUsage:
    return await database.ask(partial(usage_of_day, day=day_of(at), role="writer"))


async def test_calls_are_booked_before_they_are_made_and_settled_by_what_they_used(database: Database) -> None:
    clock = Clock()
    caps = budget(database, clock, Price(0.001, 0.01))
    booking = await caps.reserve(TENANT, 100, 50)
    assert await usage(database, clock.now) == AssistUsage(1, 0, 100, 50, pytest.approx(0.6))
    assert await caps.settle(booking, 80, 10, failed=False) == pytest.approx(0.18)
    assert await usage(database, clock.now) == AssistUsage(1, 0, 80, 10, pytest.approx(0.18))


async def test_a_call_that_might_exceed_the_tokens_of_a_day_is_not_made(database: Database) -> None:
    clock = Clock()
    caps = budget(database, clock, tokens_a_day=200)
    await caps.reserve(TENANT, 100, 50)
    assert caps.trouble == ""
    with pytest.raises(AssistFault, match="tokens_a_day") as caught:
        await caps.reserve(TENANT, 40, 11)
    assert caught.value.outcome == "capped" and "tokens_a_day (200)" in caps.trouble
    await caps.reserve(TENANT, 40, 10)


async def test_money_is_capped_as_well(database: Database) -> None:
    caps = budget(database, Clock(), Price(0.01, 0.1), dollars_a_day=1.0)
    await caps.reserve(TENANT, 40, 5)
    with pytest.raises(AssistFault, match="dollars_a_day"):
        await caps.reserve(TENANT, 6, 1)


async def test_a_cap_of_nothing_allows_nothing_and_none_allows_all(database: Database) -> None:
    with pytest.raises(AssistFault):
        await budget(database, Clock(), tokens_a_day=0).reserve(TENANT, 1, 0)
    await budget(database, Clock(), tokens_a_day=None).reserve(TENANT, 10**9, 0)


async def test_a_new_day_begins_anew(database: Database) -> None:
    clock = Clock()
    caps = budget(database, clock, tokens_a_day=100)
    await caps.reserve(TENANT, 100, 0)
    with pytest.raises(AssistFault):
        await caps.reserve(TENANT, 1, 0)
    clock.now += DAY_SECONDS
    assert caps.trouble == ""
    await caps.reserve(TENANT, 100, 0)


async def test_processes_share_a_cap_and_a_restart_keeps_it(tmp_path: Path) -> None:
    one, two = database_in(tmp_path), database_in(tmp_path)
    await one.open()
    await two.open()
    both = [budget(database, Clock(), tokens_a_day=100) for database in (one, two)]
    booked = await asyncio.gather(*(caps.reserve(TENANT, 10, 0) for caps in both * 10), return_exceptions=True)
    assert sum(not isinstance(one, AssistFault) for one in booked) == 10
    await one.close()
    await two.close()
    again = database_in(tmp_path)
    await again.open()
    with pytest.raises(AssistFault):
        await budget(again, Clock(), tokens_a_day=100).reserve(TENANT, 1, 0)
    await again.close()


async def test_what_cannot_be_counted_is_not_asked(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    broken = Database(tmp_path / "file" / "palimpsest.db")
    with pytest.raises(AssistFault) as caught:
        await budget(broken, Clock()).reserve(TENANT, 1, 0)
    assert caught.value.outcome == "failed"
    await broken.close()


async def test_at_the_cap_no_request_leaves(database: Database) -> None:
    counts = AssistTally()
    async with helped(database, counts, tokens_a_day=1000) as (upstream, assistant):
        upstream.script = lambda body: BLUE
        asked = 0
        while asked < 100:
            try:
                await assistant.answer(PROMPT, TENANT)
            except AssistFault as fault:
                assert fault.outcome == "capped"
                break
            asked += 1
        assert 0 < asked < 10 and len(upstream.received) == asked
    assert (await usage(database, Clock().now)).tokens <= 1000
