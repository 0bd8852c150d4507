"""Facts are told, found, pinned and forgotten for one person, and go with all else that is erased."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from palimpsest.core.archive.receipt import is_done
from palimpsest.domain import Block, BlockKind, Fact, FactCategory, FactScope
from palimpsest.domain.errors import PolicyError
from palimpsest.domain.facts import by_tool
from palimpsest.features.facts.extraction import FactExtraction
from palimpsest.features.facts.service import Facts, as_glob, escaped
from palimpsest.memory.erasure.forgetting import Forgetting
from palimpsest.memory.erasure.retention import Sweeper
from palimpsest.memory.erasure.retiring import DAY_SECONDS, DAYS, Retiring
from palimpsest.settings.policy import Policy, RetentionPolicy
from palimpsest.store.engine.sqlite.copying import copy
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.erasure.recorded_erasures import covered, record, recorded_in
from palimpsest.store.erasure.selection import Target
from palimpsest.telemetry.metrics import Metrics

from tests.databases import is_held
from tests.remembered import Past
from tests.store.knowledge.test_facts import key_of
from tests.talking import NOW, Talk

SECRET = b"a secret of thirty-two bytes ....."
CANARY = "the boathouse behind Kestrel Quarry, ZQX-7741"
ANN = FactScope("acme", "ann", "shop")
PORT = Fact(
    tenant="acme",
    user="ann",
    scope="shop",
    subject="project",
    slot="port",
    value="5432",
    category=FactCategory.SETTING,
    source=by_tool("remember_fact", "agent/1"),
)


class House:
    """One database, and all that works on its facts."""

    def __init__(self, database: Database) -> None:
        self.database, self.now = database, NOW + 1
        self.policy = Policy.model_validate({"facts": {"policy": "suggest"}})
        clock = self.clock
        self.past = Past(database)
        self.facts = Facts(database, SECRET, lambda: self.policy, clock)
        self.extraction = FactExtraction(database, SECRET, Metrics(), clock)
        self.forgetting = Forgetting(database, SECRET, clock, settle_seconds=0.0)
        self.retiring = Retiring(database, SECRET, clock, settle_seconds=0.0)

    def clock(self) -> float:
        return self.now

    async def say(self, text: str, user: str = "ann", scope: str = "shop", **more: Any) -> None:
        await self.past.say(text, user=user, scope=scope, created_at=self.now, **more)
        while await self.extraction.extract_batch():
            pass

    async def held(self, whose: FactScope = ANN) -> list[str]:
        return [fact.value for fact in await self.facts.recall(whose)]

    async def rows(self) -> int:
        ((rows,),) = await self.database.read("SELECT count(*) FROM fact")
        return int(rows)


@pytest.fixture
def house(database: Database) -> House:
    return House(database)


async def test_a_told_fact_is_found_with_who_told_it(house: House) -> None:
    fact = await house.facts.add(PORT)
    assert (fact.value, fact.source.tool, fact.source.who) == ("5432", "remember_fact", "agent/1")
    assert await house.facts.recall(ANN) == [fact] == [await house.facts.by_id("acme", fact.id)]


async def test_a_told_value_takes_the_place_of_the_one_before_wherever_that_comes_from(house: House) -> None:
    await house.say("My name is Bob.")
    name = (await house.facts.recall(ANN))[0]
    house.now += 1
    told = replace(PORT, subject=name.subject, slot=name.slot, value="Robert", category=FactCategory.IDENTITY)
    await house.facts.add(told)
    assert await house.held() == ["Robert"]
    house.now += 1
    await house.say("My name is Bobby.", conversation="c-2")
    assert await house.held() == ["Bobby"]


async def test_values_that_stand_beside_each_other_do_so_when_they_are_told(house: House) -> None:
    await house.say("I love figs.")
    liked = (await house.facts.recall(ANN))[0]
    assert not liked.is_single
    await house.facts.add(replace(PORT, subject=liked.subject, slot=liked.slot, value="tea"))
    assert len(await house.held()) == 2


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"subject": " "}, "subject: must be"),
        ({"slot": "s" * 101}, "slot: must be"),
        ({"value": "v" * 1001}, "value: must be"),
        ({"valid_until": NOW}, "valid_until: is in the past"),
    ],
)
async def test_what_is_no_fact_is_refused(house: House, more: dict[str, Any], words: str) -> None:
    with pytest.raises(PolicyError, match=words):
        await house.facts.add(replace(PORT, **more))


async def test_nothing_is_kept_where_facts_are_off(house: House) -> None:
    house.policy = Policy()
    with pytest.raises(PolicyError, match=r"facts\.policy is off"):
        await house.facts.add(PORT)
    assert await house.rows() == 0


async def test_credentials_in_what_is_told_are_not_kept(house: House) -> None:
    secret = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
    fact = await house.facts.add(replace(PORT, value=f"the key is {secret}"))
    assert secret not in fact.value and "redacted" in fact.value
    house.policy = Policy.model_validate({"facts": {"policy": "use"}, "archive": {"redact": False}})
    assert secret in (await house.facts.add(replace(PORT, slot="key", value=secret))).value


async def test_a_fact_is_found_by_words_by_a_pattern_and_by_its_category(house: House) -> None:
    await house.facts.add(PORT)
    await house.facts.add(
        replace(PORT, slot="favourite database", value="PostgreSQL", category=FactCategory.PREFERENCE)
    )

    async def found(pattern: str, category: FactCategory | None = None) -> list[str]:
        return [fact.value for fact in await house.facts.recall(ANN, pattern, category)]

    assert await found("which databases do I like?") == ["PostgreSQL"]
    assert await found("the port of the database") == ["PostgreSQL", "5432"]
    assert await found("project p*t 5") == ["5432"] and await found("nothing like it at all") == []
    assert await found("", FactCategory.SETTING) == ["5432"] and await found("what is it?") == ["PostgreSQL", "5432"]


def test_signs_of_patterns_mean_themselves_where_they_are_escaped() -> None:
    assert as_glob("words alone?") == "" and as_glob("a[0]*?") == "*a[[]0]*[?]*"
    assert escaped("a[0]*?") == "a[[]0][*][?]"


async def test_a_fact_that_was_forgotten_stays_away_when_all_is_made_again(house: House) -> None:
    await house.say("My name is Bob.")
    (fact,) = await house.facts.recall(ANN)
    assert await house.facts.forget("other", fact.id) == 0
    assert await house.facts.forget("acme", fact.id) == 1
    await house.facts.start_over()
    while await house.extraction.extract_batch():
        pass
    assert await house.held() == [] and await house.facts.by_id("acme", fact.id) is None
    await house.say("By the way, my name is Bob.", conversation="c-2")
    assert await house.held() == ["Bob"], "said anew, in another message"


async def test_a_fact_goes_with_its_message_and_an_older_one_stands_again(house: House) -> None:
    await house.say("My name is Bob.", conversation="c-1")
    house.now += 1
    await house.say("My name is Zebulon Kestrelmeyer.", conversation="c-2")
    receipt = await house.forgetting.erase(Target(tenant="acme", conversation="c-2"))
    assert receipt and is_done(receipt) and receipt["erased"]["facts"] == 1
    assert await house.held() == ["Bob"]


@pytest.mark.parametrize(
    "target",
    [
        Target(tenant="acme"),
        Target(tenant="acme", user="ann"),
        Target(tenant="acme", scope="shop"),
        Target(tenant="acme", user="ann", scope="shop"),
        Target(tenant="acme", matching="Kestrel quarry"),
        Target(before=NOW + 5),
    ],
    ids=["tenant", "user", "project", "both", "words", "age"],
)
async def test_told_facts_are_erased_by_whose_they_are_and_their_words_are_gone_from_the_disk(
    house: House, target: Target
) -> None:
    await house.facts.add(replace(PORT, value=CANARY))
    house.now += 10
    await house.facts.add(replace(PORT, tenant="other", user="bob", scope="barn"))
    preview = await house.forgetting.preview(target)
    assert preview and preview.counts["facts"] == 1
    receipt = await house.forgetting.erase(target)
    assert receipt and receipt["erased"] == {"facts": 1} and is_done(receipt)
    assert await house.held() == [] and await house.held(FactScope("other", "bob", "barn")) == ["5432"]
    assert not is_held(house.database, "Kestrel")


async def test_single_messages_and_conversations_hold_no_told_facts(house: House) -> None:
    await house.say("hello", conversation="c-1")
    await house.facts.add(PORT)
    await house.forgetting.erase(Target(tenant="acme", conversation="c-1"))
    assert await house.held() == ["5432"]


async def test_the_last_fact_takes_its_tenant_along(house: House) -> None:
    await house.facts.add(PORT)
    await house.forgetting.erase(Target(tenant="acme"))
    assert await house.database.read("SELECT name FROM tenant") == []


async def test_what_is_retired_states_nothing_until_it_is_taken_back(house: House) -> None:
    await house.say("My name is Bob.")
    await house.facts.add(PORT)
    receipt = await house.retiring.retire(Target(tenant="acme", user="ann"))
    assert receipt and receipt["retired"]["facts"] == 2
    assert await house.held() == []
    await house.retiring.undo(receipt["id"])
    assert sorted(await house.held()) == ["5432", "Bob"]


def sweeper(house: House, **periods: str) -> Sweeper:
    policy = RetentionPolicy.model_validate(periods)
    return Sweeper(house.database, SECRET, lambda: policy, Metrics(), house.clock)


async def test_what_was_not_taken_back_in_time_is_erased(house: House) -> None:
    await house.facts.add(PORT)
    await house.retiring.retire(Target(tenant="acme", user="ann"))
    house.now += (DAYS + 1) * DAY_SECONDS
    await sweeper(house).sweep(10.0)
    assert await house.rows() == 0


async def test_facts_are_kept_as_long_as_messages(house: House) -> None:
    await house.say("My name is Bob.")
    await house.facts.add(PORT)
    house.now += 20 * DAY_SECONDS
    await sweeper(house, turns="30d").sweep(10.0)
    assert await house.rows() == 2
    house.now += 20 * DAY_SECONDS
    sweep = await sweeper(house, turns="30d").sweep(10.0)
    assert await house.rows() == 0 and sweep.swept["facts"] == 1


@pytest.mark.sqlite
async def test_what_was_forgotten_or_erased_elsewhere_goes_from_a_backup(house: House, tmp_path: Path) -> None:
    """A second database, as it stood before."""
    await house.say("My name is Bob.")
    told = await house.facts.add(PORT)
    await house.facts.add(replace(PORT, user="bob", value="the other's"))
    await house.facts.add(replace(PORT, slot="city", value="Rome"))
    (said,) = await house.facts.recall(ANN, "*Bob*")
    path = tmp_path / "backup.db"
    await asyncio.to_thread(copy, house.database.path, path)
    await house.facts.forget("acme", told.id)
    await house.facts.forget("acme", said.id)
    house.now += 1
    await house.forgetting.erase(Target(tenant="acme", user="bob"))
    erasures = await asyncio.to_thread(recorded_in, house.database.path)
    backup = House(Database(path))
    await backup.database.open()
    await backup.database.transact(lambda t: record(t, erasures, house.now))
    plans = await backup.database.ask(lambda ask: covered(ask, erasures, key_of))
    await backup.forgetting.erase_again(plans)
    assert await backup.held() == ["Rome"] and await backup.rows() == 1
    await backup.database.close()


async def test_blocks_that_tell_a_fact_go_with_it_and_others_stay(house: House) -> None:
    first, second = await house.facts.add(PORT), await house.facts.add(replace(PORT, slot="city", value="Rome"))
    talk = Talk(house.past.journal)
    for fact in (first, second):
        told = Block(f"fact: {fact.value}", BlockKind.RECALL, (), 5, facts=((fact.id, 0),))
        await talk.say(f"about {fact.slot}", block=told, anchor=len(talk.history))

    async def blocks() -> list[str]:
        return [text for (text,) in await house.database.read("SELECT text FROM block WHERE retired = 0 ORDER BY 1")]

    receipt = await house.retiring.retire(Target(tenant="acme", matching="Rome"))
    assert receipt and await blocks() == ["fact: 5432"]
    await house.retiring.undo(receipt["id"])
    assert await blocks() == ["fact: 5432", "fact: Rome"]
    await house.facts.forget("acme", first.id)
    assert await blocks() == ["fact: Rome"]
    await house.forgetting.erase(Target(tenant="acme", user="ann"))
    assert await blocks() == []
