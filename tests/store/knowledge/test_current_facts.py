"""A request is told facts of its own user, with all that state them, and only what changed since it was told."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from palimpsest.core.facts.choice import LAG_SECONDS
from palimpsest.domain import CurrentFacts, FactQuery, FactScope, Reach
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.knowledge.current_facts import current_facts

from tests.remembered import Past
from tests.store.knowledge.test_facts import ANN, say, tell_all, told
from tests.talking import NOW, print_of, user

LATER = NOW + 1000


async def looked_up(database: Database, query: FactQuery | None = None, now: float = LATER) -> CurrentFacts:
    return await database.ask(lambda ask: current_facts(ask, query or FactQuery(ANN), now))


async def values(database: Database, query: FactQuery | None = None, now: float = LATER) -> list[str]:
    return [one.fact.value for one in (await looked_up(database, query, now)).facts]


async def test_fact_comes_with_every_message_that_states_it(past: Past) -> None:
    await say(past, "likes + tea", conversation="c-1")
    await say(past, "likes + TEA", conversation="c-2", at=NOW + 1)
    (one,) = (await looked_up(past.database)).facts
    assert {stated.full for stated in one.stated} == {
        print_of("acme", user(text)).full for text in ("likes + tea", "likes + TEA")
    }
    assert one.earlier == () and one.fact.source.occurrence == max(stated.occurrence for stated in one.stated)


async def test_value_of_one_comes_with_those_of_before(past: Past) -> None:
    await say(past, "city = Rome", at=NOW)
    await say(past, "city = Oslo", at=NOW + 1)
    (one,) = (await looked_up(past.database)).facts
    assert (one.fact.value, [stated.value for stated in one.earlier]) == ("Oslo", ["Rome"])


async def test_facts_of_others_and_of_other_projects_never_come(past: Past) -> None:
    await say(past, "city = Rome")
    await say(past, "city = Oslo", user="bob", conversation="c-2")
    await say(past, "city = Bern", scope="garden", conversation="c-3")
    await say(past, "city = Riga", tenant="other", conversation="c-4")
    assert await values(past.database) == ["Rome"]
    for reach in Reach:
        assert await values(past.database, FactQuery(replace(ANN, reach=reach, conversation="c-1"))) == ["Rome"]
    assert await values(past.database, FactQuery(FactScope("acme", reach=Reach.TENANT))) == []


async def test_nothing_comes_where_nothing_changed_since(past: Past) -> None:
    await say(past, "city = Rome", at=NOW - 2 * LAG_SECONDS)
    (since,) = await past.say("mood = good", user="ann", scope="shop", conversation="c-2", created_at=NOW)
    found = await looked_up(past.database, FactQuery(ANN, since))
    assert (found.facts, found.since) == ((), NOW)
    await say(past, "pet = Rex", at=NOW + 1, conversation="c-3")
    assert await values(past.database, FactQuery(ANN, since)) == ["Rex", "good", "Rome"]


async def test_fact_that_begins_to_hold_is_a_change(past: Past) -> None:
    (since,) = await past.say("hello", user="ann", scope="shop", created_at=NOW)
    await tell_all(past.database, told("6432", said_at=NOW - 1e6, valid_from=NOW + 10))
    assert await values(past.database, FactQuery(ANN, since), NOW + 5) == []
    assert await values(past.database, FactQuery(ANN, since), NOW + 15) == ["6432"]


@pytest.mark.parametrize("is_told", [True, False])
async def test_fact_that_was_told_and_is_over_comes_as_such(past: Past, is_told: bool) -> None:
    (since,) = await past.say("hello", user="ann", scope="shop", created_at=NOW)
    (id,) = await tell_all(past.database, told("6432", said_at=NOW - 1e6, valid_until=NOW + 10))
    query = FactQuery(ANN, since, (id,) if is_told else ())
    assert (await looked_up(past.database, query, NOW + 5)).ended == ()
    assert [fact.value for fact in (await looked_up(past.database, query, NOW + 15)).ended] == ["6432"] * is_told


def test_the_script_says_how_look_ups_grow(tmp_path: Path) -> None:
    script = Path(__file__).parents[3] / "scripts" / "fact_growth.py"
    said = subprocess.run([sys.executable, script, "60"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert [line.split(" ms")[0].rsplit(None, 1)[0] for line in said.stdout.splitlines()] == [
        "       60 statements, each another fact  begins",
        "       60 statements, of 50 slots        begins",
    ]


async def test_fact_that_was_told_and_denied_comes_as_over(past: Past) -> None:
    await say(past, "home = Rome", at=NOW - 2 * LAG_SECONDS)
    ((id,),) = await past.database.read("SELECT public FROM fact")
    (since,) = await past.say("good morning now", user="ann", scope="shop", created_at=NOW - 1.5 * LAG_SECONDS)
    await say(past, "no_longer_home + Rome", at=NOW, conversation="c-2")
    found = await looked_up(past.database, FactQuery(ANN, since, (id,)))
    assert [(fact.slot, fact.value) for fact in found.ended] == [("home", "Rome")]
    assert "Rome" not in [one.fact.value for one in found.facts]
    assert (await looked_up(past.database, FactQuery(ANN, since))).ended == ()
