"""What is current in a scope follows from what was said and is still there, and nobody sees another's facts."""

from __future__ import annotations

import functools
from dataclasses import replace

import pytest

from proxy.core.caller.identity import tenant_key
from proxy.domain import Fact, FactCategory, FactOrigin, FactProposal, FactScope, Reach, ToldFact
from proxy.store import fact_extraction as extraction
from proxy.store.database import Database
from proxy.store.facts import FactFilter, current, listed, place_of
from proxy.store.told_facts import forget, pin, tell
from tests.remembered import Past
from tests.talking import NOW

SECRET = b"a secret of thirty-two bytes ....."
key_of = functools.partial(tenant_key, SECRET)
ANN = FactScope("acme", "ann", "shop")


def proposal(text: str) -> list[FactProposal]:
    """`slot = value` is a slot of one value, `slot + value` one of many."""
    slot, sign, value = text.split(" ", 2)
    return [FactProposal("user", slot, value, FactCategory.PREFERENCE, 0, len(text), sign == "=", 0.9)]


async def extracted(database: Database) -> None:
    """Extract all that waits."""
    while await database.ask(extraction.waiting):
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
    filter = FactFilter("acme", **wanted)  # type: ignore[arg-type]
    return await database.ask(lambda ask: listed(ask, filter, NOW + 100, 50))


def told(value: str, slot: str = "port", **more: object) -> ToldFact:
    one = ToldFact(f"f-{value:0>16}", "acme", "ann", "shop", "project", slot, value, FactCategory.SETTING, NOW, "test")
    return replace(one, **more)  # type: ignore[arg-type]


async def tell_all(database: Database, *facts: ToldFact) -> list[str]:
    return await database.transact(lambda t: tell(t, facts, key_of))


async def test_the_newest_value_of_a_slot_of_one_value_is_current_and_the_others_stay_readable(past: Past) -> None:
    await say(past, "city = Rome", at=NOW)
    await say(past, "city = Oslo", at=NOW + 1)
    assert await held(past.database) == ["city=Oslo"]
    newest, older = await stored(past.database, has_history=True)
    assert (newest.value, newest.is_current, newest.superseded_by) == ("Oslo", True, "")
    assert (older.value, older.is_current, older.superseded_by) == ("Rome", False, newest.id)


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
    page = functools.partial(listed, wanted=FactFilter("acme"), now=NOW, limit=2)
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
