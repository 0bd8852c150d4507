"""The counters of what language models used."""

from __future__ import annotations

from functools import partial

from palimpsest.domain import AssistRole
from palimpsest.domain.days import day_of
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.operation.assist_usage import KEPT_DAYS, AssistUsage, add, newest_use, usage_of_day

DAY_SECONDS = 86_400.0
NOON = 1_774_958_400.0  # 2026-03-31


async def count(database: Database, role: AssistRole, tenant: str, usage: AssistUsage, at: float = NOON) -> None:
    await database.transact(partial(add, day=day_of(at), role=role, tenant=tenant, usage=usage))


async def test_what_is_used_adds_up_by_day_and_role_whoever_used_it(database: Database) -> None:
    await database.write([("INSERT INTO tenant(name) VALUES (?)", [("key:acme",)])])
    await count(database, "writer", "key:acme", AssistUsage(1, 0, 100, 10, 0.25))
    await count(database, "writer", "key:acme", AssistUsage(1, 1, 50, 0, 0.5))
    await count(database, "writer", "nobody", AssistUsage(1, 0, 7, 3, 0.0))
    await count(database, "selector", "key:acme", AssistUsage(1, 0, 1, 1, 0.0))
    await count(database, "writer", "key:acme", AssistUsage(1), NOON + DAY_SECONDS)
    writer = AssistUsage(3, 1, 157, 13, 0.75)
    assert await database.ask(partial(usage_of_day, day=day_of(NOON), role="writer")) == writer
    assert await database.ask(newest_use) == ("2026-04-01", {"writer": AssistUsage(1)})
    ((rows,),) = await database.read("SELECT count(*) FROM assist_usage WHERE role = 'writer' AND day = '2026-03-31'")
    assert rows == 2  # one of the tenant, one of whoever is not stored


async def test_nothing_used_is_zero(database: Database) -> None:
    assert await database.ask(partial(usage_of_day, day=day_of(NOON), role="writer")) == AssistUsage()
    assert await database.ask(newest_use) == ("", {})


async def test_the_newest_day_is_told_by_role(database: Database) -> None:
    await count(database, "writer", "", AssistUsage(1, 0, 5, 2, 0.5))
    await count(database, "selector", "", AssistUsage(1, 1, 1, 1, 0.0))
    told = {"selector": AssistUsage(1, 1, 1, 1, 0.0), "writer": AssistUsage(1, 0, 5, 2, 0.5)}
    assert await database.ask(newest_use) == ("2026-03-31", told)


async def test_what_turned_out_not_to_be_used_is_taken_off_again(database: Database) -> None:
    await count(database, "writer", "", AssistUsage(0, 0, 100, 50, 1.0))
    await count(database, "writer", "", AssistUsage(1, 0, -20, -40, -0.75))
    found = await database.ask(partial(usage_of_day, day=day_of(NOON), role="writer"))
    assert found == AssistUsage(1, 0, 80, 10, 0.25) and found.tokens == 90


async def test_counters_go_after_a_quarter(database: Database) -> None:
    await count(database, "writer", "", AssistUsage(1), NOON)
    await count(database, "writer", "", AssistUsage(1), NOON + (KEPT_DAYS + 1) * DAY_SECONDS)
    assert len(await database.read("SELECT day FROM assist_usage")) == 1
