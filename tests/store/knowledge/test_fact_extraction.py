"""Batches of the extraction are shared by lease, and what changed since a message was read counts."""

from __future__ import annotations

import functools

from palimpsest.domain import HeadFlag, Role
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.erasure.erasure import erase_messages
from palimpsest.store.families.family import Erased
from palimpsest.store.knowledge import fact_extraction as extraction

from tests.remembered import Past
from tests.store.knowledge.test_facts import NOW, extracted, held, key_of, proposal, saved

MINUTE_MS = 60_000


async def claim(database: Database, now_ms: int = 0) -> extraction.Claim | None:
    return await database.transact(lambda t: extraction.claim(t, now_ms, now_ms + 30_000))


async def test_a_batch_has_one_worker_until_its_lease_ends(past: Past) -> None:
    await past.say("city = Rome", user="ann", scope="shop")
    mine = await claim(past.database)
    assert mine and await claim(past.database, 1) is None
    other = await claim(past.database, MINUTE_MS)
    assert other and (other.after, other.last) == (mine.after, mine.last)
    assert await saved(past.database, mine) is None, "too late"
    assert await saved(past.database, other) == 1
    assert await claim(past.database, MINUTE_MS) is None
    assert await held(past.database) == ["city=Rome"]


async def test_what_was_erased_while_it_was_extracted_states_nothing(past: Past) -> None:
    occurrences = await past.say("city = Rome", user="ann", scope="shop")
    claimed = await claim(past.database)
    assert claimed
    read = await past.database.ask(lambda ask: extraction.sources(ask, claimed))
    await past.database.transact(lambda t: erase_messages(t, 1, occurrences, Erased()))
    found = {source.occurrence: proposal(source.text) for source in read}
    save = functools.partial(extraction.save, claimed=claimed, read=read, found=found, broken={}, version=1)
    assert await past.database.transact(functools.partial(save, key_of=key_of, now=NOW)) == 0


async def test_what_is_begun_anew_meanwhile_is_not_skipped(past: Past) -> None:
    await past.say("city = Rome", user="ann", scope="shop")
    await extracted(past.database)
    await past.say("likes + tea", user="ann", scope="shop")
    claimed = await claim(past.database)
    await past.database.transact(extraction.start_over)
    assert claimed and await saved(past.database, claimed) is None
    await past.database.write([("DELETE FROM task WHERE name = ?", [(extraction.LEASE,)])])
    await extracted(past.database)
    assert await held(past.database) == ["likes=tea", "city=Rome"]


async def test_another_version_of_the_extractor_makes_all_again_and_the_same_one_does_not(past: Past) -> None:
    assert not await past.database.transact(lambda t: extraction.begin(t, 1))
    await past.say("city = Rome")
    await extracted(past.database)
    assert not await past.database.transact(lambda t: extraction.begin(t, 1))
    assert not await past.database.ask(extraction.oldest_waiting_at)
    assert await past.database.transact(lambda t: extraction.begin(t, 2))
    assert await past.database.ask(extraction.oldest_waiting_at) == NOW


async def test_only_people_and_tools_state_facts(past: Past) -> None:
    await past.say("city = Rome", "city = Oslo")
    await past.say("city = Bonn", role=Role.SUBAGENT, conversation="c-2")
    await past.say("city = Kiel", role=Role.SIDE, conversation="c-3")
    summary = await past.say("city = Bern", conversation="c-4")
    await past.database.write([("UPDATE occurrence SET flags = ? WHERE id = ?", [(HeadFlag.SUMMARY, summary[0])])])
    claimed = await claim(past.database)
    assert claimed
    read = await past.database.ask(lambda ask: extraction.sources(ask, claimed))
    assert [source.text for source in read if source.may_state] == ["city = Rome"]
