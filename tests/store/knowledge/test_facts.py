"""What is current in a scope follows from what was said and is still there, and nobody sees another's facts."""

from __future__ import annotations

import functools
import random
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
from palimpsest.core.caller.identity import tenant_key
from palimpsest.domain import Fact, FactCategory, FactOrigin, FactProposal, FactScope, HeadFlag, Reach
from palimpsest.domain.facts import by_tool
from palimpsest.store.engine import ids
from palimpsest.store.engine.dialect import SQLITE
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.families.facts import FACTS
from palimpsest.store.knowledge import fact_extraction as extraction
from palimpsest.store.knowledge.added_facts import add_facts, forget, pin
from palimpsest.store.knowledge.fact_consistency import wrong_facts
from palimpsest.store.knowledge.facts import PAGE, FactFilter, current, list_facts, place_of

from tests.remembered import Past
from tests.talking import NOW

SECRET = b"a secret of thirty-two bytes ....."
key_of = functools.partial(tenant_key, SECRET)
ANN = FactScope("acme", "ann", "shop")


def proposal(text: str) -> list[FactProposal]:
    """`slot = value` is a slot of one value, `slot + value` one of many; `_` in a slot is a blank."""
    slot, sign, value = text.split(" ", 2)
    return [
        FactProposal("user", slot.replace("_", " "), value, FactCategory.PREFERENCE, 0, len(text), sign == "=", 0.9)
    ]


async def extracted(database: Database) -> None:
    """Extract all that waits."""
    while await database.ask(extraction.oldest_waiting_at):
        claimed = await database.transact(lambda t: extraction.claim(t, 0, 30_000))
        assert claimed is not None
        await saved(database, claimed)


async def saved(database: Database, claimed: extraction.Claim) -> int | None:
    """Extract what was claimed."""
    read = await database.ask(functools.partial(extraction.sources, claimed=claimed))
    found = {source.occurrence: proposal(source.text) for source in read if source.may_state}
    save = functools.partial(
        extraction.save, claimed=claimed, read=read, found=found, broken={}, version=1, key_of=key_of, now=NOW
    )
    return await database.transact(save)


@pytest.fixture
def past(database: Database) -> Past:
    return Past(database)


async def say(past: Past, *texts: str, at: float = NOW, user: str = "ann", scope: str = "shop", **more: str) -> None:
    """Said by a user, one after the other, and extracted."""
    for text in texts:
        await past.say(text, user=user, scope=scope, created_at=at, **more)  # type: ignore[arg-type]
    await extracted(past.database)


async def held(database: Database, whose: FactScope = ANN, now: float = NOW + 100) -> list[str]:
    found = await database.ask(lambda ask: current(ask, whose, now))
    return [f"{fact.slot}={fact.value}" for fact in found]


async def stored(database: Database, **wanted: object) -> list[Fact]:
    wanted_facts = FactFilter("acme", **wanted)  # type: ignore[arg-type]
    return await database.ask(lambda ask: list_facts(ask, wanted_facts, NOW + 100, 50))


def told(value: str, slot: str = "port", **more: object) -> Fact:
    one = Fact(
        id=f"f-{value:0>16}",
        tenant="acme",
        user="ann",
        scope="shop",
        said_at=NOW,
        subject="project",
        slot=slot,
        value=value,
        category=FactCategory.SETTING,
        source=by_tool("test"),
    )
    return replace(one, **more)  # type: ignore[arg-type]


async def tell_all(database: Database, *facts: Fact) -> list[str]:
    return await database.transact(lambda t: add_facts(t, facts, key_of))


async def test_the_newest_value_of_a_slot_of_one_value_is_current_and_the_others_stay_readable(past: Past) -> None:
    await say(past, "city = Rome", at=NOW)
    await say(past, "city = Oslo", at=NOW + 1)
    assert await held(past.database) == ["city=Oslo"]
    newest, older = await stored(past.database, has_history=True)
    assert (newest.value, newest.is_current, newest.superseded_by) == ("Oslo", True, None)
    assert (older.value, older.is_current, older.superseded_by) == ("Rome", False, newest.id)
    assert (newest.source.quote, older.source.quote) == ("city = Oslo", "city = Rome")


async def test_values_of_other_slots_stand_beside_each_other_newest_first(past: Past) -> None:
    await say(past, "likes + tea", at=NOW)
    await say(past, "likes + figs", at=NOW + 1)
    assert await held(past.database) == ["likes=figs", "likes=tea"]


async def test_what_is_said_again_is_one_fact_of_its_newest_source(past: Past) -> None:
    await say(past, "likes + tea", at=NOW, conversation="c-1")
    await say(past, "likes + Tea", at=NOW + 1, conversation="c-2")
    (fact,) = await stored(past.database)
    assert (fact.repeats, fact.source.conversation, fact.said_at) == (2, "c-2", NOW + 1)
    assert (fact.source.origin, fact.source.role) == (FactOrigin.MESSAGE, "user")


async def test_an_older_value_stands_again_when_the_newer_one_is_gone(past: Past) -> None:
    await say(past, "city = Rome", at=NOW)
    await say(past, "city = Oslo", at=NOW + 1)
    (newest,) = await stored(past.database)
    await past.database.transact(lambda t: forget(t, "acme", newest.id, Reach.USER, key_of("acme"), NOW))
    assert await held(past.database) == ["city=Rome"]


async def test_a_fact_holds_from_and_until_its_times(database: Database) -> None:
    await tell_all(database, told("5432"))
    await tell_all(database, told("6432", said_at=NOW + 1, valid_from=NOW + 10, valid_until=NOW + 20))
    assert await held(database, now=NOW + 5) == ["port=5432"]
    assert await held(database, now=NOW + 15) == ["port=6432"]
    assert await held(database, now=NOW + 20) == ["port=5432"]


async def test_nobody_sees_facts_of_another_tenant_user_or_project(past: Past) -> None:
    await say(past, "city = Rome")
    await tell_all(past.database, told("5432"))
    for other in ({"tenant": "other"}, {"user": "bob"}, {"user": ""}, {"scope": "barn"}, {"scope": ""}):
        for reach in Reach:
            assert await held(past.database, replace(ANN, reach=reach, **other)) == []  # type: ignore[arg-type]
    assert len(await held(past.database)) == 2


async def test_each_project_of_a_user_is_seen_where_all_are_asked_for(past: Past) -> None:
    await say(past, "city = Rome", scope="shop", conversation="c-1")
    await say(past, "city = Oslo", scope="barn", conversation="c-2", at=NOW + 1)
    assert await held(past.database, replace(ANN, scope=None)) == ["city=Oslo", "city=Rome"]


async def test_those_who_are_not_named_see_their_conversation_alone_unless_they_share_one_memory(past: Past) -> None:
    await say(past, "city = Rome", user="", scope="", conversation="c-1")
    await say(past, "city = Oslo", user="", scope="", conversation="c-2", at=NOW + 1)
    nobody = FactScope("acme", conversation="c-1")
    assert await held(past.database, nobody) == ["city=Rome"]
    assert await held(past.database, replace(nobody, conversation="")) == []
    assert await held(past.database, replace(nobody, reach=Reach.TENANT)) == ["city=Oslo"]
    assert [fact.value for fact in await stored(past.database)] == ["Oslo", "Rome"]


async def test_facts_of_a_user_who_names_himself_late_are_his(past: Past) -> None:
    await say(past, "city = Rome", user="", scope="")
    await say(past, "likes + tea", user="ann", scope="shop")
    assert await held(past.database) == ["likes=tea", "city=Rome"]


async def test_a_pin_comes_first_and_holds_for_whatever_a_slot_of_one_value_holds(past: Past) -> None:
    await say(past, "city = Rome", "likes + tea")
    city = (await stored(past.database))[1]
    assert await past.database.transact(lambda t: pin(t, "acme", city.id, Reach.USER, True))
    await say(past, "city = Oslo", at=NOW + 1)
    await say(past, "likes + figs", at=NOW + 2)
    assert (await held(past.database))[0] == "city=Oslo"
    await past.database.transact(lambda t: pin(t, "acme", city.id, Reach.USER, False))
    assert not any(fact.is_pinned for fact in await stored(past.database, has_history=True))


async def test_pins_are_kept_and_what_was_forgotten_stays_away_when_all_is_made_again(past: Past) -> None:
    await say(past, "city = Rome", "likes + tea", "likes + figs")
    figs, tea, city = await stored(past.database)
    await past.database.transact(lambda t: pin(t, "acme", tea.id, Reach.USER, True))
    await past.database.transact(lambda t: forget(t, "acme", figs.id, Reach.USER, key_of("acme"), NOW))
    await past.database.transact(lambda t: forget(t, "acme", city.id, Reach.USER, key_of("acme"), NOW))
    await past.database.transact(extraction.start_over)
    await extracted(past.database)
    (left,) = await stored(past.database)
    assert (left.id, left.is_pinned) == (tea.id, True)
    await say(past, "likes + figs", conversation="c-2")
    assert await held(past.database) == ["likes=tea"], "the same message, sent again by the same user"
    await say(past, "likes + figs", user="bob", conversation="c-3")
    assert await held(past.database, replace(ANN, user="bob")) == ["likes=figs"]


async def test_told_facts_are_not_made_again(past: Past) -> None:
    await tell_all(past.database, told("5432"))
    await say(past, "city = Rome")
    await past.database.transact(extraction.start_over)
    await extracted(past.database)
    assert await held(past.database) == ["city=Rome", "port=5432"]


async def test_what_is_told_again_as_it_stands_is_the_fact_that_is_there(database: Database) -> None:
    first, *_ = await tell_all(database, told("5432"))
    assert await tell_all(database, told("5432", id="f-0000000000000002", said_at=NOW + 5)) == [first]
    (fact,) = await stored(database)
    assert (fact.said_at, fact.repeats, fact.source.origin) == (NOW + 5, 1, FactOrigin.TOOL)


async def test_a_told_fact_that_was_forgotten_does_not_come_back_under_its_id(database: Database) -> None:
    (id,) = await tell_all(database, told("5432"))
    assert await database.transact(lambda t: forget(t, "acme", id, Reach.USER, key_of("acme"), NOW)) == 1
    assert await tell_all(database, told("5432")) == [""]
    assert await stored(database) == []


async def test_a_list_goes_on_behind_its_last_fact(past: Past) -> None:
    await say(past, *(f"likes + {n}" for n in range(5)))
    seen: list[str] = []
    page = functools.partial(list_facts, wanted=FactFilter("acme"), now=NOW, limit=2)
    after = (0, 0)
    while facts := await past.database.ask(functools.partial(page, after=after)):
        seen += [fact.value for fact in facts]
        after = place_of(facts[-1])
    assert seen == ["4", "3", "2", "1", "0"]


async def test_filters_restrict_together(past: Past) -> None:
    await say(past, "city = Rome", "likes + tea")
    await tell_all(past.database, told("5432"))
    assert [f.value for f in await stored(past.database, pattern="*user*T?a*")] == ["tea"]
    assert [f.value for f in await stored(past.database, subject="pro*")] == ["5432"]
    assert [f.value for f in await stored(past.database, category=FactCategory.SETTING)] == ["5432"]
    assert [f.value for f in await stored(past.database, category=FactCategory.SETTING, user="bob")] == []


def steps(database: Database, whose: FactScope) -> int:
    """Steps of SQLite's virtual machine that a look at what is current takes, in tens."""
    taken = 0

    def step() -> int:
        nonlocal taken
        taken += 1
        return 0

    with closing(sqlite3.connect(database.path)) as connection:
        connection.set_progress_handler(step, 10)
        current(lambda sql, args=(): connection.execute(SQLITE[sql], args).fetchall(), whose, NOW + 1e6)
    return taken


@pytest.mark.sqlite
@pytest.mark.parametrize("user", ["ann", ""])
@pytest.mark.parametrize("sign", ["=", "+"])
async def test_what_is_current_is_found_without_reading_what_it_superseded(past: Past, user: str, sign: str) -> None:
    whose = replace(ANN, user=user, conversation="c-1")
    await say(past, f"city {sign} Rome", "likes + tea", user=user)
    few = steps(past.database, whose)
    await say(past, *[f"city {sign} Rome"] * 200, user=user, at=NOW + 1)
    assert await held(past.database, whose) == ["city=Rome", "likes=tea"]
    assert steps(past.database, whose) < 1.5 * few


@pytest.mark.sqlite
async def test_of_many_that_stand_only_those_are_read_that_are_asked_for(past: Past) -> None:
    await say(past, *(f"likes + {number}" for number in range(PAGE + 20)))
    many = steps(past.database, ANN)
    await say(past, *(f"likes + more {number}" for number in range(200)))
    assert steps(past.database, ANN) < 1.1 * many
    found = await past.database.ask(lambda ask: current(ask, ANN, NOW, 2 * PAGE))
    assert len({fact.value for fact in found}) == PAGE + 220


async def happens(past: Past, chance: random.Random) -> None:
    """Something that changes what is current."""
    at, conversation = NOW + chance.randrange(9), f"c-{chance.randrange(4)}"
    owner = {"user": "ann" if conversation < "c-2" else "", "scope": chance.choice(["shop", ""])}
    slot, value = chance.choice(["city =", "pet =", "likes +"]), chance.choice("abAB")
    rows = await past.database.read("SELECT public, occurrence FROM fact ORDER BY id")
    id, occurrence = chance.choice(rows) if rows else ("", None)
    match chance.randrange(7):
        case 0 | 1:
            await say(past, f"{slot} {value}", at=at, conversation=conversation, **owner)
        case 2:
            times = chance.choice([{}, {"valid_from": NOW + 90}, {"valid_until": NOW + 110}, {"valid_until": NOW + 90}])
            one = told(value, slot[:-2], subject="user", id=f"f-{chance.random()}", said_at=at, user=owner["user"])
            await tell_all(past.database, replace(one, is_single=slot[-1] == "=", **times))  # type: ignore[arg-type]
        case 3:
            await past.database.transact(lambda t: forget(t, "acme", id, Reach.USER, key_of("acme"), NOW))
        case 4:
            flipped = f"(flags | {HeadFlag.RETIRED}) - (flags & {HeadFlag.RETIRED})"
            sql = f"UPDATE occurrence SET flags = {flipped} WHERE id = ?"
            await past.database.write([(sql, [(occurrence,)])])
            of_it = "SELECT flags FROM occurrence WHERE id = ?"
            is_hidden = any(flags & HeadFlag.RETIRED for (flags,) in await past.database.read(of_it, (occurrence,)))
            await past.database.transact(lambda t: FACTS.retire(t, ids([occurrence]), is_hidden))
        case 5:
            await past.database.transact(lambda t: FACTS.remove(t, 1, ids([occurrence])))
        case 6:
            await past.database.transact(lambda t: pin(t, "acme", id, Reach.USER, chance.random() < 0.7))


def stated_once(fact: Fact) -> Fact:
    """Without what only a list says of it."""
    return replace(fact, repeats=1, source=replace(fact.source, quote=""))


@pytest.mark.parametrize("seed", range(8))
async def test_whatever_happens_what_is_current_is_what_follows_from_all_that_is_there(past: Past, seed: int) -> None:
    chance, later = random.Random(seed), NOW + 100
    for _ in range(60):
        await happens(past, chance)
    assert [words for count, words in await past.database.ask(lambda ask: list(wrong_facts(ask))) if count] == []
    views = [
        (FactScope("acme", "ann", "shop"), FactFilter("acme", "ann", "shop")),
        (FactScope("acme", "ann", None), FactFilter("acme", "ann")),
        (FactScope("acme", "", "shop", reach=Reach.TENANT), FactFilter("acme", "", "shop", reach=Reach.TENANT)),
        (FactScope("acme", "", "shop", "c-3"), FactFilter("acme", conversation="c-3", reach=Reach.CONVERSATION)),
    ]
    for whose, same in views:
        all_that_hold = await past.database.ask(functools.partial(list_facts, wanted=same, now=later, limit=500))
        found = await past.database.ask(functools.partial(current, whose=whose, now=later))
        expected = sorted(all_that_hold, key=lambda fact: not fact.is_pinned)
        assert [stated_once(fact) for fact in found] == [stated_once(fact) for fact in expected]


async def test_a_denial_ends_what_it_denies_and_is_no_fact_itself(past: Past) -> None:
    await say(past, "home = Rome", "likes + tea", at=NOW)
    await say(past, "no_longer_home + Rome", at=NOW + 1)
    assert await held(past.database) == ["likes=tea"]
    assert {
        (one.slot, one.is_current, bool(one.superseded_by)) for one in await stored(past.database, has_history=True)
    } == {
        ("home", False, True),
        ("likes", True, False),
        ("no longer home", False, False),
    }
    await say(past, "home = Rome", at=NOW + 2)
    assert await held(past.database) == ["home=Rome", "likes=tea"]


async def test_what_was_denied_holds_again_without_its_denial(past: Past) -> None:
    await say(past, "likes + tea", conversation="c-1")
    await say(past, "no_longer_likes + tea", conversation="c-2", at=NOW + 1)
    assert await held(past.database) == []
    await past.database.write([("DELETE FROM fact WHERE slot = 'no longer likes'", [()])])
    assert await held(past.database) == ["likes=tea"]


async def test_a_pinned_fact_holds_whatever_is_denied(past: Past) -> None:
    await say(past, "home = Rome", at=NOW)
    await past.database.write([("UPDATE fact SET pinned = 1", [()])])
    await say(past, "no_longer_home + Rome", at=NOW + 1)
    assert await held(past.database) == ["home=Rome"]
