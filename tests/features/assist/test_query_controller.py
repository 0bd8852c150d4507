"""The controller of recall, with scripted models on real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import orjson
import pytest
from palimpsest.domain import Json, Plan, Query, Teller
from palimpsest.evaluation.scripted import Reply, ScriptedUpstream
from palimpsest.features.assist.assistants import ModelAssistants
from palimpsest.features.assist.query_controller import QueryController
from palimpsest.settings.load import validated
from palimpsest.settings.policy import RecallPolicy
from palimpsest.store.engine.sqlite.database import Database

from tests.clock import Clock
from tests.features.assist.helping import AssistTally

QUERY = Query("key:acme", "c-1", "When did Ana move, and who helped her?")
PLAN: Json = {"questions": ["Ana moved to Porto"], "first_day": "", "last_day": "", "said_by": "user"}
SECONDS = 10.0


@asynccontextmanager
async def controlled(database: Database) -> AsyncIterator[tuple[ScriptedUpstream, QueryController]]:
    async with ScriptedUpstream() as upstream:
        local = {"name": "local", "url": upstream.url, "auth": "held"}
        model = {"model": "tiny", "upstream": "local", "retries": 0}
        policy = validated({"upstreams": [local], "models": {"controller": model}, "recall": {"controller": "model"}})
        assistants = ModelAssistants(database, AssistTally(), Clock(), {})
        await assistants.apply(policy)
        try:
            yield upstream, QueryController(lambda: policy.recall, assistants, Clock())
        finally:
            await assistants.close()


async def planned(controller: QueryController, query: Query = QUERY, seconds: float = SECONDS) -> Query:
    return await controller.planned(query, asyncio.get_running_loop().time() + seconds)


async def test_off_nothing_is_planned_and_by_rules_no_model_is_asked(database: Database) -> None:
    nobody = ModelAssistants(database, AssistTally(), Clock(), {})
    for name, plan in (("off", None), ("rules", Plan(("When did Ana move", "who helped her")))):
        policy = RecallPolicy.model_validate({"controller": name})
        assert (await planned(QueryController(lambda policy=policy: policy, nobody, Clock()))).plan == plan  # type: ignore[misc]


async def test_a_model_plans_from_the_newest_message(database: Database) -> None:
    async with controlled(database) as (upstream, controller):
        upstream.play(orjson.dumps(PLAN).decode())
        found = await planned(controller)
    assert found.plan == Plan(("Ana moved to Porto",), (), Teller.USER)
    assert (found.tenant, found.conversation, found.text) == (QUERY.tenant, QUERY.conversation, QUERY.text)
    (got,) = upstream.received
    assert QUERY.text in got.json["messages"][1]["content"] and "2026-03-31" in got.json["messages"][1]["content"]


@pytest.mark.parametrize(
    "said",
    [
        '{"questions": []}',
        orjson.dumps(PLAN | {"tenant": "key:other", "user": "bob"}).decode(),
        orjson.dumps(PLAN | {"said_by": "everybody in all tenants"}).decode(),
        orjson.dumps(PLAN | {"questions": ["q"] * 50}).decode(),
        "I cannot help with that.",
    ],
    ids=["incomplete", "another tenant", "nobody that it may name", "too many", "words"],
)
async def test_a_plan_that_breaks_the_schema_is_none(database: Database, said: str) -> None:
    async with controlled(database) as (upstream, controller):
        upstream.play(said, said)
        assert await planned(controller) == QUERY


@pytest.mark.parametrize("reply", [Reply("no", status=500), Reply("later", status=429), Reply("", wait_seconds=30.0)])
async def test_a_model_that_fails_or_is_late_costs_the_plan_alone(database: Database, reply: Reply) -> None:
    async with controlled(database) as (upstream, controller):
        upstream.play(reply)
        started = asyncio.get_running_loop().time()
        assert await planned(controller, seconds=1.0) == QUERY
        assert asyncio.get_running_loop().time() - started < 1.0


async def test_where_nobody_asks_no_model_is_asked(database: Database) -> None:
    async with controlled(database) as (upstream, controller):
        query = Query("key:acme", "c-1", "go on", named=frozenset())
        assert await planned(controller, query) == query
        assert upstream.received == []
