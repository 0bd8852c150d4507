"""Consolidation merges, replaces, bounds and relates; it can be interrupted, repeated and taken back."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest
from palimpsest.core.archive.receipt import is_done
from palimpsest.core.consolidation.queues import Verdict
from palimpsest.core.consolidation.relations import Edge, Node
from palimpsest.domain.errors import MemoryFault
from palimpsest.domain.memories import Item, Span
from palimpsest.evaluation.scripted import Reply, ScriptedUpstream
from palimpsest.features.items.consolidation import Consolidator, ItemSelection
from palimpsest.features.items.consolidation_batches import Batches, Outcome
from palimpsest.features.items.model_consolidator import ModelConsolidator
from palimpsest.memory.erasure.forgetting import Forgetting
from palimpsest.memory.erasure.retiring import Retiring
from palimpsest.settings.load import validated
from palimpsest.store.engine import Row, Transaction
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.erasure.selection import Target
from palimpsest.store.knowledge import graph
from palimpsest.store.knowledge.items import StoredItem
from palimpsest.telemetry.metrics import Metrics

from tests.databases import database_in
from tests.features.assist.helping import assistants_of
from tests.kept_items import DAY_SECONDS, in_use, keep, tell, texts
from tests.remembered import Past, WordEmbedder
from tests.running import Proxy, request, until, upstream_on_a_thread
from tests.talking import NOW

T = TypeVar("T")

SECRET = b"a secret of thirty-two bytes ....."
RED, BLUE, GREEN = (f"My favourite colour is {colour}." for colour in ("red", "blue", "green"))
BOATS = "The boats of Leith sail on Sundays."
DAYS = ("Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays", "Sundays")
QUEUES = len(DAYS) - 1  # of what is said of all days in turn: nothing is newer than the last
TABLES = ("item", "item_source", "item_vector", "consolidation", "consolidation_step", "node", "edge", "edge_evidence")
STATES = ("item", "node", "edge", "edge_evidence")


def clock() -> float:
    return NOW + 10 * DAY_SECONDS


@pytest.fixture
def embedder() -> WordEmbedder:
    return WordEmbedder()


@pytest.fixture
def consolidator(database: Database, embedder: WordEmbedder) -> Consolidator:
    return Consolidator(database, embedder, Metrics(), clock)


async def everything(database: Database, tables: Sequence[str] = TABLES) -> dict[str, list[Row]]:
    return {table: sorted(await database.read(f"SELECT * FROM {table}")) for table in tables}


async def states(database: Database) -> list[tuple[str, int]]:
    return [(state, heir) for state, heir in await database.read("SELECT state, heir FROM item ORDER BY id")]


async def edges(database: Database, tenant: int = 1) -> list[str]:
    found = await database.ask(functools.partial(graph.edges_of_tenant, tenant=tenant))
    return [f"{one.edge.source.name} {one.edge.relation} {one.edge.target.name}" for one in found]


@pytest.mark.parametrize("has_model", [True, False])
async def test_repeats_are_merged_and_values_replaced_by_newer_ones(
    database: Database, past: Past, consolidator: Consolidator, embedder: WordEmbedder, has_model: bool
) -> None:
    embedder.ready = has_model
    await tell(past, RED, BOATS, user="ann")
    await tell(past, BOATS, BLUE, "I like tea.", days=1, user="ann")
    outcome = await consolidator.run()
    assert (outcome.done["merged"], outcome.done["superseded"], outcome.items) == (1, 1, 5)
    assert await texts(database) == [BOATS, BLUE, "I like tea."]
    assert await states(database) == [("superseded", 4), ("merged", 3), ("current", 0), ("current", 0), ("current", 0)]
    assert len(await database.read("SELECT * FROM item_vector")) == (5 if has_model else 0)


async def test_a_second_run_changes_nothing(database: Database, past: Past, consolidator: Consolidator) -> None:
    await tell(past, RED, BOATS, BLUE, BOATS, "Oscar is a guinea pig.", user="ann")
    first = await consolidator.run()
    assert first.keys
    before = await everything(database)
    again = await consolidator.run()
    assert (again.keys, sum(again.done.values())) == ({}, 0)
    assert await everything(database) == before


async def test_a_dry_run_says_what_would_be_done_and_writes_nothing(
    database: Database, past: Past, consolidator: Consolidator
) -> None:
    await tell(past, RED, BLUE, "Oscar is a guinea pig.", user="ann")
    before = await everything(database)
    outcome = await consolidator.run(dry_run=True)
    assert [(action.item, action.what, action.heir) for action in outcome.actions] == [(1, "superseded", 2)]
    assert outcome.to_json()["would"][0]["why"] == "a newer value of: favorite color"
    assert await everything(database) == before
    assert await database.read("SELECT * FROM task") == []


async def test_users_projects_and_tenants_are_not_compared_with_each_other(
    database: Database, past: Past, consolidator: Consolidator
) -> None:
    others = ({"user": "bob"}, {"user": "ann", "scope": "sea"}, {"tenant": "other", "user": "ann"}, {})
    await tell(past, RED, BOATS, user="ann")
    for at, more in enumerate(others):
        await tell(past, BLUE, BOATS, days=at + 1, conversation=f"c-{at}", **more)
    outcome = await consolidator.run()
    assert not outcome.done["merged"] + outcome.done["superseded"]


async def test_only_what_is_meant_is_consolidated(database: Database, past: Past, consolidator: Consolidator) -> None:
    for user, scope in (("ann", ""), ("ann", "sea"), ("bob", "")):
        await tell(past, RED, BLUE, user=user, scope=scope, conversation=f"c-{user}{scope}")
    assert (await consolidator.run(ItemSelection(user="nobody"))).items == 0
    assert (await consolidator.run(ItemSelection(tenant="elsewhere"))).items == 0
    outcome = await consolidator.run(ItemSelection(tenant="acme", user="ann", scope=""))
    assert (outcome.items, outcome.done["superseded"]) == (2, 1)
    assert [state for state, _ in await states(database)].count("superseded") == 1


class Interrupted(Batches):
    """Ends after some transactions, as a process that is killed."""

    def __init__(self, database: Database, after: int) -> None:
        super().__init__(database, Metrics(), clock)
        self.left = after

    async def transact(self, work: Callable[[Transaction], T], tenant: str = "") -> T:
        if not self.left:
            raise MemoryFault("killed")
        self.left -= 1
        return await super().transact(work, tenant)


async def test_a_run_that_was_cut_off_anywhere_is_finished_by_the_next(
    past: Past, database: Database, embedder: WordEmbedder
) -> None:
    await tell(past, RED, BOATS, BLUE, BOATS, "Oscar is a guinea pig.", GREEN, user="ann")
    cut_off = 0
    for after in range(12):
        try:
            batches = Interrupted(database, after=1)
            await Consolidator(database, embedder, Metrics(), clock, batches=batches).run()
            break
        except MemoryFault:
            cut_off = after + 1
    assert cut_off >= 2
    assert await states(database) == [
        ("superseded", 3), ("merged", 4), ("superseded", 6), ("current", 0), ("current", 0), ("current", 0)
    ]  # fmt: skip
    assert await edges(database) == ["Oscar is-a guinea pig"]


async def test_one_process_consolidates_at_a_time(
    database: Database, past: Past, consolidator: Consolidator, embedder: WordEmbedder
) -> None:
    await tell(past, RED, BLUE, user="ann")
    other = Batches(database, Metrics(), clock)
    assert await other.hold()
    outcome = await consolidator.run()
    assert (outcome.was_alone, outcome.items) == (False, 0)
    await other.release()
    assert (await consolidator.run()).done["superseded"] == 1


async def test_one_run_goes_on_at_a_time_in_one_process(past: Past, consolidator: Consolidator) -> None:
    await tell(past, RED, BLUE, user="ann")
    both = await asyncio.gather(consolidator.run(), consolidator.run())
    assert sorted(outcome.was_alone for outcome in both) == [False, True]


async def test_undo_restores_what_a_run_did_and_the_next_run_does_not_do_it_again(
    database: Database, past: Past, consolidator: Consolidator
) -> None:
    await tell(past, RED, BOATS, BLUE, BOATS, "Oscar is a guinea pig.", user="ann")
    before = await states(database)
    outcome = await consolidator.run()
    (key,) = outcome.keys.values()
    ((run,),) = [await consolidator.runs()]
    assert (run["run"], run["superseded"], run["undone_at"]) == (key, 1, None)
    assert await consolidator.undo(key, tenant="somebody else") is None
    undone = await consolidator.undo(key, tenant="acme")
    assert undone == {"run": key, "merged": 1, "superseded": 1, "evicted": 0, "related": 1}
    assert await states(database) == before
    assert await edges(database) == []
    assert await database.read("SELECT * FROM node") == []
    assert await consolidator.undo(key) is None
    for days in (1, 2):
        again = await consolidator.run()
        assert not again.done["merged"] + again.done["superseded"]
        assert "Oscar is-a guinea pig" not in await edges(database)
        await tell(past, f"The cat sleeps {days} hours.", days=days, user="ann")
    assert await states(database) == [*before, ("current", 0), ("current", 0)]


async def test_a_tenant_takes_back_what_was_done_to_its_own_items_alone(
    database: Database, past: Past, consolidator: Consolidator
) -> None:
    for tenant in ("acme", "other"):
        await tell(past, RED, BLUE, tenant=tenant, user="ann", conversation=f"c-{tenant}")
    outcome = await consolidator.run()
    assert [run["tenant"] for run in await consolidator.runs()] == ["other", "acme"]
    assert [run["run"] for run in await consolidator.runs("acme")] == [outcome.keys[1]]
    assert await consolidator.undo(outcome.keys[2], tenant="acme") is None
    await consolidator.undo(outcome.keys[1], tenant="acme")
    assert [state for state, _ in await states(database)] == ["current", "current", "superseded", "current"]


async def test_a_run_ends_when_its_time_is_over_and_the_next_goes_on(
    database: Database, past: Past, consolidator: Consolidator
) -> None:
    await tell(past, RED, BLUE, user="ann")
    outcome = await consolidator.run(seconds=0)
    assert (outcome.is_complete, outcome.keys) == (False, {})
    assert (await consolidator.run()).done["superseded"] == 1


async def test_undo_leaves_what_a_later_run_did(database: Database, past: Past, consolidator: Consolidator) -> None:
    await tell(past, RED, BLUE, user="ann")
    first = await consolidator.run()
    await tell(past, GREEN, days=1, user="ann")
    second = await consolidator.run()
    assert await states(database) == [("superseded", 2), ("superseded", 3), ("current", 0)]
    await consolidator.undo(second.keys[1])
    assert await states(database) == [("superseded", 2), ("current", 0), ("current", 0)]
    await consolidator.undo(first.keys[1])
    assert await texts(database) == [RED, BLUE, GREEN]


async def test_whoever_names_no_user_is_one_where_conversations_see_each_other(
    database: Database, past: Past, embedder: WordEmbedder
) -> None:
    await tell(past, RED, BOATS)
    await tell(past, BOATS, BLUE, days=1)
    apart = await Consolidator(database, embedder, Metrics(), clock).run()
    assert not apart.done["merged"] and not apart.done["superseded"]
    await database.write([("UPDATE item SET judged = 0", [()])])
    shared = Consolidator(database, embedder, Metrics(), clock, lambda: None, lambda: 1, lambda: True)
    together = await shared.run()
    assert (together.done["merged"], together.done["superseded"], together.done["evicted"]) == (1, 1, 1)
    assert await texts(database) == [BLUE]


async def test_a_user_has_no_more_items_than_the_bound_and_the_least_used_go(
    database: Database, past: Past, embedder: WordEmbedder
) -> None:
    said = await tell(past, *(f"Boat number {at} sails." for at in range(6)), user="ann")
    await tell(past, "Something of Bob's.", user="bob", conversation="c-2")
    await database.write([("UPDATE item SET uses = 3, used_at = ? WHERE id = ?", [(clock(), said[0])])])
    consolidator = Consolidator(database, embedder, Metrics(), clock, capacity_items=lambda: 3)
    outcome = await consolidator.run()
    assert outcome.done["evicted"] == 3
    assert [item.id for item in await in_use(database)] == [said[0], said[4], said[5], 7]
    assert not (await consolidator.run()).done["evicted"]
    await consolidator.undo(outcome.keys[1])
    assert len(await in_use(database)) == 7


async def test_what_gave_way_a_month_ago_is_removed_with_what_it_stood_for(
    database: Database, past: Past, embedder: WordEmbedder
) -> None:
    await tell(past, BOATS, BOATS, "Tea is drunk.", user="ann")
    await Consolidator(database, embedder, Metrics(), clock, capacity_items=lambda: 1).run()
    assert len(await in_use(database)) == 1
    later = Consolidator(database, embedder, Metrics(), lambda: clock() + 31 * DAY_SECONDS, capacity_items=lambda: 1)
    assert (await later.run()).spent == 2
    assert len(await database.read("SELECT * FROM item")) == 1
    assert (await later.run()).spent == 0


async def test_erasing_the_newer_value_brings_the_older_one_back(
    database: Database, past: Past, consolidator: Consolidator
) -> None:
    await tell(past, RED, BLUE, "Oscar is a guinea pig.", user="ann")
    await consolidator.run()
    receipt = await Forgetting(database, SECRET, clock, settle_seconds=0.0).erase(
        Target(tenant="acme", matching="is blue")
    )
    assert receipt is not None
    assert is_done(receipt)
    assert await texts(database) == [RED, "Oscar is a guinea pig."]
    assert await database.read("SELECT what FROM consolidation_step") == [("related",)]
    await Forgetting(database, SECRET, clock, settle_seconds=0.0).erase(Target(tenant="acme", matching="guinea"))
    assert await edges(database) == []
    assert await database.read("SELECT * FROM node") == []


async def test_what_is_retired_speaks_for_nothing_meanwhile(
    database: Database, past: Past, consolidator: Consolidator
) -> None:
    await tell(past, "Oscar is a guinea pig.", user="ann")
    await consolidator.run()
    retiring = Retiring(database, SECRET, clock, settle_seconds=0.0)
    receipt = await retiring.retire(Target(tenant="acme", matching="guinea"))
    assert receipt is not None
    assert await edges(database) == []
    await retiring.undo(receipt["id"])
    assert await edges(database) == ["Oscar is-a guinea pig"]


async def test_words_that_stand_together_are_related_and_users_are_not(
    database: Database, past: Past, consolidator: Consolidator
) -> None:
    told = ("I talked to Wilma about medlars and pottery.", "Now pottery and medlars keep me busy.", "I like tea.")
    await tell(past, *told, "My friend Fergus is a pilot.", "Fergus is a sailor.", user="ann")
    await tell(past, "hello", user="wilma", conversation="c-w")
    await consolidator.run()
    assert await edges(database) == ["medlar related-to pottery"]  # nothing of Wilma, a user, or Fergus, a friend
    await consolidator.run()
    ((evidence,),) = await database.read("SELECT count(*) FROM edge_evidence")
    assert evidence == 2


async def test_who_becomes_a_user_is_no_longer_seen_in_the_graph(
    database: Database, past: Past, consolidator: Consolidator
) -> None:
    await tell(past, "Oscar is a guinea pig.", user="ann")
    await consolidator.run()
    assert await edges(database) == ["Oscar is-a guinea pig"]
    await past.say("hello", user="oscar.lee@example.com", conversation="c-oscar")
    assert await edges(database) == []


class ScriptedJudge:
    """Answers as it is told, and notes what it was asked."""

    def __init__(self, verdict: Verdict | None, related: Mapping[int, Sequence[Edge]] | None = None) -> None:
        self.verdict, self.related = verdict, related or {}
        self.asked: list[tuple[int, list[int]]] = []

    async def judge(self, older: StoredItem, queue: Sequence[StoredItem], tenant: str) -> Verdict | None:
        self.asked.append((older.id, [item.id for item in queue]))
        return self.verdict if self.verdict and self.verdict.item == older.id else None

    async def relate(self, items: Sequence[StoredItem], tenant: str) -> Mapping[int, Sequence[Edge]]:
        return self.related


def with_judge(database: Database, embedder: WordEmbedder, judge: ScriptedJudge) -> Consolidator:
    return Consolidator(database, embedder, Metrics(), clock, judge=lambda: judge)


async def test_a_model_judges_what_rules_leave_and_only_within_the_queue(
    database: Database, past: Past, embedder: WordEmbedder
) -> None:
    said = ("The boats of Leith sail on Sundays.", "On Sundays the boats of Leith sail at dawn.", "I like tea.")
    await tell(past, *said, user="ann")
    hostile = ScriptedJudge(Verdict(1, 3, "superseded", "the text said so"))
    await with_judge(database, embedder, hostile).run()
    assert hostile.asked == [(1, [2])]
    assert await texts(database) == list(said)
    await database.write([("UPDATE item SET judged = 0", [()])])
    await with_judge(database, embedder, ScriptedJudge(Verdict(1, 2, "merged", "by the model"))).run()
    assert await texts(database) == [*said[1:]]


@pytest.mark.parametrize("cap", [1, 4])
async def test_queues_are_judged_at_once_as_many_as_the_cap_allows(
    database: Database, past: Past, embedder: WordEmbedder, cap: int
) -> None:
    await tell(past, *(f"The boats of Leith sail on {day} at dawn." for day in DAYS), user="ann")
    async with ScriptedUpstream() as upstream:
        local = {"name": "local", "url": upstream.url, "auth": "held"}
        model = {"model": "tiny", "upstream": "local", "calls_at_once": cap}
        policy = validated({"upstreams": [local], "models": {"consolidator": model}})
        upstream.script = lambda _: Reply('{"note": 0, "verdict": "leave", "relations": []}', lockstep=True)
        async with assistants_of(policy, database) as assistants:
            assistant = assistants.of("consolidator")
            assert assistant is not None
            judge = ModelConsolidator(assistant)
            run = asyncio.create_task(
                Consolidator(database, embedder, Metrics(), clock, judge=lambda: judge).run(seconds=10)
            )
            while len(upstream.received) < cap:  # noqa: ASYNC110  # nothing tells that a request is there
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.1)  # for calls that may not come: all of these wait for their answers
            assert len(upstream.received) == cap
            upstream.permit(1000)
            assert (await run).is_complete
    assert len(upstream.received) >= QUEUES


def at_least(upstream: ScriptedUpstream, calls: int) -> bool:
    return len(upstream.received) >= calls


@pytest.mark.slow
@pytest.mark.parametrize("cap", [1, 4])
async def test_a_running_proxy_keeps_as_many_calls_in_flight_as_the_cap_allows(tmp_path: Path, cap: int) -> None:
    database = database_in(tmp_path / "data")
    await database.open()
    await tell(Past(database), *(f"The boats of Leith sail on {day} at dawn." for day in DAYS), user="ann")
    await database.close()
    with upstream_on_a_thread() as helper:
        helper.script = lambda _: Reply('{"note": 0, "verdict": "leave", "relations": []}', lockstep=True)
        local = {"name": "local", "url": helper.url, "auth": "held"}
        model = {"model": "tiny", "upstream": "local", "calls_at_once": cap, "retries": 0}
        settings = {"upstreams": [local], "models": {"consolidator": model}}
        with Proxy(tmp_path / "data", "", settings) as proxy, ThreadPoolExecutor() as pool:
            asked = (proxy.port, "POST", "/memory/v1/consolidation", b"{}", {"content-type": "application/json"})
            run = pool.submit(request, *asked)
            for cycle in range(1, -(-QUEUES // cap) + 1):
                due = min(cycle * cap, QUEUES)
                until(functools.partial(at_least, helper, due), f"{due} calls")
                assert len(helper.received) <= cycle * cap
                helper.permit(2 * cap)  # each answer comes in two pieces
            helper.permit(1000)
            assert run.result().json["complete"] is True


async def test_what_a_model_relates_names_no_user(database: Database, past: Past, embedder: WordEmbedder) -> None:
    await tell(past, "Oscar eats hay.", user="ann")
    hay, oscar, ann = Node("concept", "hay"), Node("entity", "Oscar"), Node("entity", "Ann")
    judge = ScriptedJudge(None, {1: [Edge(oscar, "implies", hay), Edge(ann, "implies", hay)]})
    await with_judge(database, embedder, judge).run()
    assert await edges(database) == ["Oscar implies hay"]


def test_an_outcome_is_told_as_json() -> None:
    told = Outcome({1: "k-1"}).to_json()
    assert told["runs"] == ["k-1"]
    assert told["would"] == []


async def test_items_of_a_conversation_of_nobodys_are_compared_within_it(
    database: Database, past: Past, consolidator: Consolidator
) -> None:
    first = await past.say(RED, conversation="c-1")
    second = await past.say(BLUE, conversation="c-2", created_at=NOW + 5)
    for said, text in ((first, RED), (second, BLUE)):
        await keep(database, said, Item(text, (Span(said[0], 0, 5),)))
    assert not (await consolidator.run()).done["superseded"]
