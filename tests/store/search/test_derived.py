"""Vectors come by lease, and all that is derived can be made again from the journal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from palimpsest.core.archive.chunking import split_into_passages
from palimpsest.core.archive.records import entry_of
from palimpsest.domain import Ending, HeadFlag, Role
from palimpsest.store.engine import Row
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.journal import Journal
from palimpsest.store.search import derived as module
from palimpsest.store.search.derived import Derived

from tests.clock import Clock
from tests.talking import Talk, assistant, heard, record, system, user

LEASE_SECONDS = 30.0


@pytest.fixture
def clock() -> Clock:
    return Clock(1000.0)


@pytest.fixture
def derived(database: Database, clock: Clock) -> Derived:
    return Derived(database, clock)


async def claim(derived: Derived, limit: int = 10, worker: str = "w", model: str = "m") -> list[str]:
    return [waiting.text for waiting in await derived.claim(limit, worker, LEASE_SECONDS, model)]


def windows(text: str) -> list[str]:
    return [text[passage.start : passage.stop] for passage in split_into_passages(text, "user")]


async def embed(derived: Derived, model: str = "m") -> None:
    waiting = await derived.claim(1000, "w", LEASE_SECONDS, model)
    await derived.save_vectors(model, {w.memory: np.full(4, len(w.text), np.float32) for w in waiting})


async def test_newest_passages_are_claimed_first(journal: Journal, derived: Derived) -> None:
    talk = Talk(journal)
    await talk.say("one", "first")
    await talk.say("two", "second")
    assert await claim(derived, 3) == ["second", "two", "first"]
    assert await claim(derived) == ["one"]
    assert await journal.pending() == 4, "claimed is not done"


async def test_work_of_a_worker_that_died_goes_to_another(journal: Journal, derived: Derived, clock: Clock) -> None:
    await Talk(journal).say("one", "first")
    assert len(await claim(derived, worker="dead")) == 2
    assert await claim(derived, worker="alive") == []
    clock.now += LEASE_SECONDS
    assert len(await claim(derived, worker="alive")) == 2


async def test_lease_that_no_clock_of_now_can_have_given_holds_nothing_up(
    journal: Journal, derived: Derived, clock: Clock
) -> None:
    await Talk(journal).say("one", "first")
    clock.now += 86_400.0
    assert len(await claim(derived, worker="ahead")) == 2
    clock.now -= 86_400.0
    assert len(await claim(derived, worker="right")) == 2
    assert await claim(derived, worker="another") == []


@pytest.mark.sqlite
async def test_vectors_of_another_model_are_dropped_in_pieces_and_found_by_their_index(
    journal: Journal, derived: Derived, database: Database
) -> None:
    count = 2 * module.OTHERS_BATCH + 3
    await journal.write([record((user("one"),))])
    await database.write(
        [
            (
                "INSERT INTO memory(tenant, conversation, occurrence, start, stop)"
                " SELECT tenant, conversation, occurrence, start, stop FROM memory WHERE id = 1 AND ? > 0",
                [(n,) for n in range(1, count)],
            ),
            ("DELETE FROM unindexed", [()]),
            ("INSERT INTO vector(tenant, memory, model, own) SELECT tenant, id, 'old', zeroblob(8) FROM memory", [()]),
        ]
    )
    assert len(await claim(derived, model="new")) == 10
    assert await database.read("SELECT count(*) FROM vector") == [(count - module.OTHERS_BATCH,)]
    for _ in range(2):
        await claim(derived, model="new")
    assert await database.read("SELECT count(*) FROM vector") == [(0,)]
    assert await database.read("SELECT count(*) FROM unindexed") == [(count,)]
    plan = await database.read(f"EXPLAIN QUERY PLAN {module.OTHERS}", ("new", 10))
    looks = [row[3] for row in plan if "vector" in row[3]]
    assert len(looks) == 2 and all(look.startswith("SEARCH vector USING INDEX vector_by_model") for look in looks)


async def test_passages_of_a_long_text_are_its_windows(journal: Journal, derived: Derived) -> None:
    text = " ".join(f"word{n}" for n in range(500))
    await journal.write([record((user(text),))])
    pieces = (await claim(derived))[::-1]
    assert len(pieces) > 3 and text.startswith(pieces[0]) and text.endswith(pieces[-1])


async def test_saved_vectors_are_half_floats_and_end_the_work(
    journal: Journal, derived: Derived, database: Database
) -> None:
    await Talk(journal).say("one", "first")
    await embed(derived)
    assert await journal.pending() == 0
    rows = await database.read("SELECT model, own FROM vector ORDER BY memory")
    assert [(model, np.frombuffer(own, np.float16).tolist()) for model, own in rows] == [
        ("m", [3.0] * 4),
        ("m", [5.0] * 4),
    ]


async def test_passages_that_were_embedded_before_take_their_vector_from_there(
    journal: Journal, derived: Derived, database: Database
) -> None:
    text = " ".join(f"word{n}" for n in range(500))
    await Talk(journal).say(text, "first")
    await embed(derived)
    await Talk(journal, conversation="c-2").say(text, "another answer")
    await Talk(journal, tenant="umbrella").say(text, "another tenant's")
    assert set(await claim(derived, 1000)) - {"another answer", "another tenant's"} <= set(windows(text))
    assert await database.read("SELECT count(*) FROM vector") == [(2 * len(windows(text)) + 1,)]


async def test_a_batch_of_nothing_but_repetitions_is_no_end_of_the_work(journal: Journal, derived: Derived) -> None:
    await Talk(journal).say("one", "first")
    await embed(derived)
    await Talk(journal, conversation="c-2").say("new", "words")
    for n in range(5):
        await Talk(journal, conversation=f"c-{n}").say("one", "first")
    assert await claim(derived, 2) == ["words", "new"]


async def test_another_model_makes_all_vectors_again(journal: Journal, derived: Derived, database: Database) -> None:
    await Talk(journal).say("one", "first")
    await embed(derived)
    before = await database.read("SELECT max(seq) FROM vector")
    assert await claim(derived, model="better") == ["first", "one"]
    assert await database.read("SELECT count(*) FROM vector") == [(0,)]
    assert await database.read("SELECT count(*) FROM forgotten") == [(2,)]
    await derived.save_vectors("better", {1: np.ones(4, np.float32)})
    assert (await database.read("SELECT min(seq) FROM vector")) > before


async def test_vector_of_a_forgotten_memory_is_left_out(journal: Journal, derived: Derived, database: Database) -> None:
    await journal.check()
    await derived.save_vectors("m", {99: np.ones(4, np.float32)})
    assert await database.read("SELECT count(*) FROM vector") == [(0,)]


async def contents(database: Database) -> list[list[Row]]:
    """What is derived, by what it says."""
    return [
        await database.read(
            "SELECT memory.tenant, memory.conversation, occurrence, start, stop, tags, kind, tokens"
            " FROM memory JOIN memory_text ON memory_text.rowid = memory.id ORDER BY occurrence, start"
        ),
        await database.read("SELECT tenant, term, memories FROM term ORDER BY tenant, term"),
        await database.read("SELECT count(*) FROM unindexed"),
    ]


async def fill(journal: Journal) -> None:
    for tenant in ("acme", "umbrella"):
        talk = Talk(journal, tenant, f"c-{tenant}", history=(system("be brief"),))
        for n in range(5):
            await talk.say(f"look at src/file_{n}.py please", f"it says ERROR{n}")
    call = {"id": "1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a/b.py"}'}}
    await journal.write([record((user("go"), assistant("") | {"tool_calls": [call]}), conversation="c-tools")])
    side = record((user("write a title"),), conversation="c-side", role=Role.SIDE, links=())
    await journal.write([side])
    await journal.write(answers=[heard(side, "Title")])
    summary = record((user("what happened so far"),), conversation="c-summary")
    flagged = replace(summary.entries[0], new=replace(summary.entries[0].new, flags=HeadFlag.SUMMARY), passages=())
    await journal.write([replace(summary, entries=(flagged,))])
    parts = [{"type": "text", "text": text} for text in ("We spoke of files. " * 9, "Now look at src/late.py.")]
    summary = record(({"role": "user", "content": parts},), conversation="c-typed")
    new = replace(summary.entries[0].new, flags=HeadFlag.SUMMARY | HeadFlag.TYPED)
    await journal.write([replace(summary, entries=(entry_of(new, Role.MAIN, b"key", str),))])


async def test_rebuilding_makes_the_same_again(journal: Journal, derived: Derived, database: Database) -> None:
    await fill(journal)
    before = await contents(database)
    await embed(derived)
    await derived.start_rebuild()
    assert await database.read("SELECT count(*) FROM memory") == [(0,)]
    while await derived.rebuild_step():
        pass
    assert await contents(database) == before
    assert not await derived.rebuild_step()


async def test_rebuild_that_was_cut_off_is_finished_by_somebody_else(
    journal: Journal, derived: Derived, database: Database, clock: Clock
) -> None:
    talk = Talk(journal)
    long = [user(f"message number {n}") for n in range(module.REBUILD_BATCH + 20)]
    await journal.write([record(long)])
    await derived.start_rebuild()
    assert await derived.rebuild_step()
    assert await journal.pending() == module.REBUILD_BATCH
    talk.history = tuple(long)
    await talk.say("said while it was being rebuilt")
    heir = Derived(database, clock)
    while await heir.rebuild_step():
        pass
    said = await database.read("SELECT occurrence, count(*) FROM memory GROUP BY occurrence")
    assert len(said) == await journal.pending() == (await journal.stats())["messages"]
    assert {count for _, count in said} == {1}


@pytest.mark.sqlite
async def test_message_that_a_rebuild_cannot_take_is_set_aside_and_all_others_are_findable(
    journal: Journal, derived: Derived, database: Database
) -> None:
    await journal.write([record([user(f"message number {n}") for n in range(9)])])
    newer = record((user("of a newer version"),), conversation="c-2")
    await journal.write([newer])
    await database.write([("UPDATE turn SET role = 'dreaming' WHERE key = ?", [(newer.turn.id,)])])
    await derived.start_rebuild()
    refuse = (
        "CREATE TRIGGER refuse BEFORE INSERT ON memory WHEN new.occurrence = 4 BEGIN SELECT RAISE(ABORT, 'no'); END"
    )
    await database.write([(refuse, [()])])
    while await derived.rebuild_step():
        pass
    found = {row[0] for row in await database.read("SELECT occurrence FROM memory")}
    assert found == {1, 2, 3, 5, 6, 7, 8, 9}
    listed = await database.read("SELECT part, reason, chars, length(digest) > 0 FROM quarantine ORDER BY id")
    assert [(part, chars, known) for part, _, chars, known in listed] == [("message", 16, 1), ("message", 18, 1)]
    assert listed[0][1].endswith(": no") and listed[1][1] == "rebuilding: ValueError"


async def test_taking_back_a_refused_request_takes_its_terms_back(journal: Journal, database: Database) -> None:
    await Talk(journal).say("one", "first")
    before = await contents(database)
    asked = record((user("one more thing about src/file.py"),), conversation="c-2")
    await journal.write([asked])
    await journal.write(answers=[heard(asked, None, Ending.REFUSED)])
    assert await contents(database) == before
