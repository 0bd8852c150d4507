from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from palimpsest.core.archive.chunking import ASKS
from palimpsest.core.recall.ranking import PassageTable
from palimpsest.core.recall.similarity import LARGE_PASSAGES, Meanings, signs_of
from palimpsest.domain import HeadFlag, Query, Reach
from palimpsest.domain.errors import MemoryFault
from palimpsest.memory.index import passage_tables as module
from palimpsest.memory.index.passage_tables import TABLE_PASSAGES, PassageTables
from palimpsest.store.engine import Ask, Row
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.search import passages
from palimpsest.store.search.passages import trim_changes
from palimpsest.store.search.scope import Scope, scope_of

from tests.remembered import DIMENSIONS, Past, Watched, WordEmbedder, meaning

MODEL = WordEmbedder.name
VECTOR = "INSERT INTO vector(tenant, memory, model, own) VALUES (1, ?, ?, ?)"


async def scope(
    past: Past, reach: Reach = Reach.CONVERSATION, tenant: str = "acme", conversation: str = "c-1"
) -> Scope:
    query = Query(tenant, conversation, "", reach=reach)
    found = await past.database.ask(lambda ask: scope_of(ask, query))
    assert found is not None
    return found[0]


async def look(sql: Database, tables: PassageTables, scope: Scope) -> PassageTable:
    return await sql.ask(lambda ask: tables.table(ask, scope))


async def test_passages_come_with_their_vectors(past: Past) -> None:
    await past.say("the red boat", "a blue house")
    await past.index()
    table = await look(past.database, PassageTables(MODEL, DIMENSIONS), await scope(past))
    assert len(table) == 2
    assert table.vectors @ meaning("blue house") == pytest.approx([0.0, 1.0], abs=1e-3)


async def test_a_passage_without_a_vector_is_there_already_and_gets_it_later(past: Past) -> None:
    tables = PassageTables(MODEL, DIMENSIONS)
    await past.say("the red boat")
    table = await look(past.database, tables, await scope(past))
    assert len(table) == 1 and not table.vectors.any()
    await past.index()
    table = await look(past.database, tables, await scope(past))
    assert len(table) == 1 and table.vectors @ meaning("red boat") == pytest.approx([1.0], abs=1e-3)


async def test_what_another_worker_wrote_is_seen_and_nothing_is_read_twice(past: Past) -> None:
    watched = Watched(past.database)
    tables = PassageTables(MODEL, DIMENSIONS)
    await past.say(*(f"text number {n}" for n in range(20)))
    await past.index()
    await look(watched, tables, await scope(past))
    watched.rows_read = 0
    await past.say("a new red boat")
    await past.index()
    assert len(await look(watched, tables, await scope(past))) == 21
    assert watched.rows_read <= 4
    watched.rows_read = 0
    await look(watched, tables, await scope(past))
    assert watched.rows_read == 0


async def test_vectors_that_come_out_of_order_find_their_passages(past: Past) -> None:
    tables = PassageTables(MODEL, DIMENSIONS)
    await past.say("alpha", "bravo", "charlie")
    ids = [row[0] for row in await past.database.read("SELECT id FROM memory ORDER BY id")]
    for memory, text in ((ids[2], "charlie"), (ids[0], "alpha")):
        own = meaning(text).astype(np.float16).tobytes()
        await past.database.write([(VECTOR, [(memory, MODEL, own)])])
        await look(past.database, tables, await scope(past))
    table = await look(past.database, tables, await scope(past))
    found = [(table.vectors @ meaning(text)).argmax() for text in ("alpha", "charlie")]
    assert found == [0, 2] and not table.vectors[1].any()


async def test_vectors_of_another_model_do_not_count(past: Past) -> None:
    await past.say("the red boat")
    await past.index("another")
    table = await look(past.database, PassageTables(MODEL, DIMENSIONS), await scope(past))
    assert len(table) == 1 and not table.vectors.any()


@pytest.mark.parametrize("dimensions", [512, 1024])
async def test_vectors_of_any_model_are_compared_small_scope_or_large(past: Past, dimensions: int) -> None:
    count = LARGE_PASSAGES + 500
    await past.say("the red boat")
    await past.database.write(
        [
            (
                "INSERT INTO memory(tenant, conversation, occurrence, start, stop)"
                " SELECT tenant, conversation, occurrence, start, stop FROM memory WHERE id = 1 AND ? > 0",
                [(n,) for n in range(1, count + 1)],
            )
        ]
    )
    drawn = np.random.default_rng(5).standard_normal((count + 1, dimensions), np.float32)
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    stored = [(at + 1, "large", own.astype(np.float16).tobytes()) for at, own in enumerate(drawn)]
    tables = PassageTables("large", dimensions)
    await past.database.write([(VECTOR, stored[:100])])
    assert (await look(past.database, tables, await scope(past))).vectors.shape == (count + 1, dimensions)
    await past.database.write([(VECTOR, stored[100:])])
    table = await look(past.database, tables, await scope(past))
    assert table.signs is not None and table.signs.shape == (dimensions // 64, count + 1)
    cosines, _ = Meanings(table.vectors, table.signs).cosines(drawn[777:778])
    assert int(cosines.argmax()) == 777 and cosines[777] == pytest.approx(1, abs=1e-3)


@pytest.mark.sqlite
async def test_damaged_vectors_do_not_count(past: Past) -> None:
    await past.say("the red boat")
    await past.database.write([(VECTOR, [(1, MODEL, b"\0\xff")])])
    assert not (await look(past.database, PassageTables(MODEL, DIMENSIONS), await scope(past))).vectors.any()


async def test_forgotten_passages_leave_the_table(past: Past) -> None:
    tables = PassageTables(MODEL, DIMENSIONS)
    await past.say("the red boat", "a blue house", "a green tree")
    await past.index()
    before = await look(past.database, tables, await scope(past))
    await past.forget([int(before.ids[1])])
    after = await look(past.database, tables, await scope(past))
    assert after.ids.tolist() == [before.ids[0], before.ids[2]] and after.before.tolist() == [-1, 0]
    assert len(before) == 3, "what was handed out stays as it was"


async def test_a_table_that_was_handed_out_leads_to_nothing_that_came_later(past: Past) -> None:
    tables = PassageTables(MODEL, DIMENSIONS)
    await past.say("one", "two")
    before = await look(past.database, tables, await scope(past))
    await past.say("three")
    after = await look(past.database, tables, await scope(past))
    assert (before.after.tolist(), after.after.tolist()) == ([1, -1], [1, 2, -1])


async def test_what_others_forget_disturbs_nobody(past: Past) -> None:
    watched = Watched(past.database)
    tables = PassageTables(MODEL, DIMENSIONS)
    await past.say("the red boat")
    await past.say("a blue house", tenant="other")
    await past.index()
    other = await look(watched, tables, await scope(past, tenant="other"))
    await look(watched, tables, await scope(past))
    await past.forget(other.ids.tolist())
    watched.rows_read = 0
    assert len(await look(watched, tables, await scope(past))) == 1
    assert watched.rows_read == 1


async def test_neighbours_are_those_of_the_same_conversation(past: Past) -> None:
    await past.say("one", conversation="c-1")
    await past.say("two", conversation="c-2")
    await past.say("three", conversation="c-1")
    table = await look(past.database, PassageTables(MODEL, DIMENSIONS), await scope(past, Reach.TENANT))
    assert table.before.tolist() == [-1, -1, 0] and table.after.tolist() == [2, -1, -1]
    assert table.centres.tolist() == [1.5, 1.5, 5.5]


async def test_a_label_in_front_of_a_statement_names_no_speaker_where_other_messages_have_none(past: Past) -> None:
    await past.say("The review is on Monday.", "Noted.", "Update: the review was moved.", "Ann: Hello.", "Fine.")
    await past.mark_users()
    table = await look(past.database, PassageTables(MODEL, DIMENSIONS), await scope(past))
    assert not table.names and not table.speakers.any()
    assert table.users.tolist() == [True, False, True, False, True]


async def test_table_tells_who_speaks_and_what_asks_and_what_mattered(past: Past) -> None:
    await past.say("Ann: How are you?", "Ben: I edited src/main.py", "Ann: Fine.")
    table = await look(past.database, PassageTables(MODEL, DIMENSIONS), await scope(past))
    assert table.speakers.tolist() == [table.names["ann"], table.names["ben"], table.names["ann"]]
    assert table.asks.tolist() == [True, False, False] and ASKS == "?"
    assert table.consequence.tolist() == pytest.approx([1.0, 1.3, 1.0])
    await past.database.write([("UPDATE occurrence SET flags = ?", [(HeadFlag.TOOL,)])])
    table = await look(past.database, PassageTables(MODEL, DIMENSIONS), await scope(past))
    assert table.consequence.tolist() == pytest.approx([1.5, 1.8, 1.5])


async def test_a_user_counts_as_such_where_the_text_names_nobody_else(past: Past) -> None:
    await past.say("I moved to Lyon.", "Lyon is a city in France.")
    await past.say("Ann: I moved too.", conversation="c-2")
    await past.mark_users()
    table = await look(past.database, PassageTables(MODEL, DIMENSIONS), await scope(past, Reach.TENANT))
    assert table.users.tolist() == [True, False, False]


async def test_what_a_conversation_held_before_it_learnt_its_user_is_among_what_that_user_said(past: Past) -> None:
    tables = PassageTables(MODEL, DIMENSIONS)
    anns, at_home = Scope(1, Reach.USER, user="ann"), Scope(1, Reach.USER, user="ann", project="home")
    await past.say("the red boat", conversation="c-late")
    await past.say("a blue house", conversation="c-1", user="ann", scope="home")
    assert len(await look(past.database, tables, anns)) == len(await look(past.database, tables, at_home)) == 1
    await past.say("a green tree", conversation="c-late", user="ann")
    assert len(await look(past.database, tables, anns)) == 3
    assert len(await look(past.database, tables, at_home)) == 1
    await past.say("a yellow car", conversation="c-late", user="ann", scope="home")
    for here in (anns, at_home):
        another_workers = await look(past.database, PassageTables(MODEL, DIMENSIONS), here)
        assert (await look(past.database, tables, here)).ids.tolist() == another_workers.ids.tolist()
        assert len(another_workers) == 4


async def test_tables_that_hold_little_are_bounded_in_number(past: Past) -> None:
    tables = PassageTables(MODEL, DIMENSIONS, room_passages=3 * (TABLE_PASSAGES + 1))
    for number in range(6):
        await past.say("the red boat", conversation=f"c-{number}")
        await look(past.database, tables, await scope(past, conversation=f"c-{number}"))
    assert repr(tables) == "<PassageTables [3 scopes, 3 passages]>"


@pytest.mark.sqlite
@pytest.mark.parametrize("reach", list(Reach))
async def test_where_the_room_begins_in_a_scope_is_read_from_its_own_index(past: Past, reach: Reach) -> None:
    for number in range(3):
        await past.say(*(f"message {number} {at}" for at in range(10)), conversation=f"c-{number}", user="lena")
    query = Query("acme", "c-1", "", reach=reach, user="lena")
    found = await past.database.ask(lambda ask: scope_of(ask, query))
    assert found is not None
    here = found[0]
    plans: list[str] = []

    def watched(ask: Ask) -> int:
        def read(sql: str, args: Sequence[Any] = ()) -> list[Row]:
            plans.extend(step for *_, step in ask(f"EXPLAIN QUERY PLAN {sql}", args))
            return ask(sql, args)

        return passages.passage_before(read, here, newest=4)

    before = await past.database.ask(watched)
    inside = await past.database.ask(lambda ask: [row[0] for row in passages.passages_after(ask, here, 0, 100)])
    assert inside[inside.index(before) + 1 :] == inside[-4:]
    index = "memory_by_tenant" if reach is Reach.TENANT else "memory_by_conversation"
    assert [step for step in plans if "memory USING INDEX" in step and index in step]
    assert await past.database.ask(lambda ask: passages.passage_before(ask, here, newest=30)) == 0


@pytest.mark.parametrize("is_known", [False, True])
async def test_of_a_scope_larger_than_the_room_the_newest_passages_are_kept(past: Past, is_known: bool) -> None:
    tables = PassageTables(MODEL, DIMENSIONS, room_passages=40)
    for number in range(6):
        await past.say(*(f"message {number} {at}" for at in range(10)), conversation=f"c-{number % 2}")
        if is_known:
            await look(past.database, tables, await scope(past, Reach.TENANT, conversation="c-1"))
    await past.index()
    here = await scope(past, Reach.TENANT, conversation="c-1")
    table = await look(past.database, tables, here)
    whole = await look(past.database, PassageTables(MODEL, DIMENSIONS), here)
    left_out = len(whole) - len(table)
    assert 40 <= len(table) <= 45 and table.ids.tolist() == whole.ids[left_out:].tolist()
    for ours, theirs in ((table.before, whole.before), (table.after, whole.after)):
        assert ours.tolist() == [max(row - left_out, -1) for row in theirs[left_out:].tolist()]
    assert np.array_equal(table.vectors, whole.vectors[left_out:])
    await past.forget([int(whole.ids[0])])
    assert len(await look(past.database, tables, here)) == len(table), "what is left out may go"


async def test_table_that_missed_changes_is_read_anew(past: Past) -> None:
    tables, changes = PassageTables(MODEL, DIMENSIONS), passages.CHANGES
    await past.say("the red boat", "a blue house", "a green tree")
    await past.index()
    here = await scope(past)
    first = (await look(past.database, tables, here)).ids.tolist()
    await past.forget(first[:1])
    await past.database.transact(trim_changes)
    assert await past.database.read("SELECT count(*) FROM forgotten") == [(1,)], "there is room for it"
    await past.database.write([("UPDATE forgotten SET seq = seq + ?", [(changes,)])])
    await past.database.write([("INSERT INTO forgotten(seq, memory) VALUES (?, 0)", [(2 * changes + 1,)])])
    await past.database.transact(trim_changes)
    assert await past.database.read("SELECT count(*) FROM forgotten") == [(1,)]
    assert (await look(past.database, tables, here)).ids.tolist() == first[1:]


async def test_tenants_never_share_a_table(past: Past) -> None:
    await past.say("the red boat")
    await past.say("the red boat", tenant="other")
    tables = PassageTables(MODEL, DIMENSIONS)
    ours = await look(past.database, tables, await scope(past, Reach.TENANT))
    theirs = await look(past.database, tables, await scope(past, Reach.TENANT, tenant="other"))
    assert len(ours) == len(theirs) == 1 and ours.ids[0] != theirs.ids[0]


@pytest.mark.sqlite
async def test_a_large_scope_is_read_in_slices_and_keeps_what_it_has_when_cut_short(past: Past) -> None:
    count = 2 * module.SLICE_PASSAGES + 7
    await past.say("the red boat")
    await past.database.write(
        [
            (
                "INSERT INTO memory(tenant, conversation, occurrence, start, stop)"
                " SELECT tenant, conversation, occurrence, start, stop FROM memory WHERE id = 1 AND ? > 0",
                [(n,) for n in range(1, count)],
            )
        ]
    )

    slices = 0

    def cut_short(ask: Ask) -> PassageTable:
        def read(sql: str, args: Sequence[Any] = ()) -> list[Row]:
            nonlocal slices
            slices += "memory.tags" in sql
            if slices == 2:
                raise sqlite3.OperationalError("interrupted")
            return ask(sql, args)

        return tables.table(read, here)

    tables = PassageTables(MODEL, DIMENSIONS)
    here = await scope(past)
    with pytest.raises(MemoryFault, match="interrupted"):
        await past.database.ask(cut_short)
    assert f"{module.SLICE_PASSAGES} passages" in repr(tables)
    assert len(await look(past.database, tables, await scope(past))) == count


async def test_questions_at_the_same_time_read_a_table_once(past: Past) -> None:
    await past.say(*(f"text number {n}" for n in range(30)))
    await past.index()
    watched = Watched(past.database)
    tables = PassageTables(MODEL, DIMENSIONS)
    here = await scope(past)
    found = await asyncio.gather(*(look(watched, tables, here) for _ in range(5)))
    assert {len(table) for table in found} == {30}
    assert watched.rows_read < 2 * 61


async def test_a_database_that_cannot_be_read_is_a_fault_and_not_an_empty_table(past: Past) -> None:
    await past.say("the red boat")
    watched = Watched(past.database)
    watched.fault = "FROM memory"
    with pytest.raises(MemoryFault):
        await look(watched, PassageTables(MODEL, DIMENSIONS), await scope(past))


async def test_a_scope_that_becomes_large_keeps_its_vectors_and_gets_signs(past: Past) -> None:
    tables = PassageTables(MODEL, DIMENSIONS)
    await past.say("the red boat", "a blue house")
    await past.index()
    small = await look(past.database, tables, await scope(past))
    assert small.signs is None and small.vectors.dtype == np.float32
    await past.database.write(
        [
            (
                "INSERT INTO memory(tenant, conversation, occurrence, start, stop)"
                " SELECT tenant, conversation, occurrence, start, stop FROM memory WHERE id = 1 AND ? > 0",
                [(n,) for n in range(1, LARGE_PASSAGES + 1)],
            )
        ]
    )
    large = await look(past.database, tables, await scope(past))
    assert large.signs is not None and large.signs.shape == (6, len(large)) == (6, LARGE_PASSAGES + 2)
    assert large.vectors[:2] == pytest.approx(small.vectors, abs=1e-3)
    assert (large.signs[:, :2] == signs_of(small.vectors)).all()
    last = int(large.ids[-1])
    own = meaning("green tree").astype(np.float16).tobytes()
    await past.database.write([(VECTOR, [(last, MODEL, own)])])
    large = await look(past.database, tables, await scope(past))
    assert large.signs is not None
    cosines = Meanings(large.vectors, large.signs).cosines(meaning("green tree")[None])[0]
    assert cosines.argmax() == len(large) - 1 and cosines.max() == pytest.approx(1.0, abs=1e-3)


async def test_words_are_dropped_and_what_is_found_stays_the_same(past: Past) -> None:
    tables = PassageTables(MODEL, DIMENSIONS)
    await past.say("the red boat", "Ann: a blue house")
    table = await look(past.database, tables, await scope(past))
    table.known["boat"] = (2, np.array([0]))
    assert table.names
    tables.forget()
    again = await look(past.database, tables, await scope(past))
    assert again is not table
    assert (table.known, again.known) == ({}, {})
    assert again.ids.tolist() == table.ids.tolist()


async def test_vector_that_was_provided_counts_until_the_stored_one_is_there(past: Past) -> None:
    tables, found = PassageTables(MODEL, DIMENSIONS), None
    await past.say("the red boat", "a blue house")
    found = await scope(past)
    table = await look(past.database, tables, found)
    tables.provide(found, [int(table.ids[1]), 99], np.array([meaning("green tree"), meaning("none")]))
    assert table.embedded.tolist() == [False, True]
    assert table.vectors @ meaning("green tree") == pytest.approx([0.0, 1.0], abs=1e-3)
    await past.index()
    tables.provide(found, [int(table.ids[0])], np.array([meaning("green tree")]))
    table = await look(past.database, tables, found)
    assert table.embedded.all()
    assert table.vectors @ meaning("blue house") == pytest.approx([0.0, 1.0], abs=1e-3)
    tables.provide(found, [int(table.ids[0])], np.array([meaning("green tree")]))
    assert table.vectors @ meaning("red boat") == pytest.approx([1.0, 0.0], abs=1e-3), "a stored vector stays"


async def test_nothing_is_provided_for_a_scope_that_nobody_asked_about(past: Past) -> None:
    tables = PassageTables(MODEL, DIMENSIONS)
    await past.say("the red boat")
    tables.provide(await scope(past), [1], np.array([meaning("red boat")]))
    assert repr(tables) == "<PassageTables [0 scopes, 0 passages]>"
