"""What is retired is neither recalled nor found nor repeated, stays stored, and is taken back exactly."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from palimpsest.core.archive.receipt import is_done, is_genuine
from palimpsest.core.archive.tombstones import scope_prints
from palimpsest.core.caller.identity import tenant_key
from palimpsest.domain import Block, BlockKind, Json, Record
from palimpsest.domain.errors import MemoryFault, PolicyError
from palimpsest.memory.erasure.forgetting import Forgetting
from palimpsest.memory.erasure.retiring import DAY_SECONDS, DAYS, Retiring
from palimpsest.store.engine import Row
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.erasure.selection import Target
from palimpsest.store.journal import Journal
from palimpsest.store.search.derived import Derived

from tests.clock import Clock
from tests.databases import is_held
from tests.talking import NOW, Talk, heard, look, record, user

SECRET = b"a secret of thirty-two bytes ....."
CANARY = "The wire transfer to Bellerophon Shipping is 48,200 euro, reference ZQX-7741-KESTREL"
LATER = NOW + 100
INDEX = (
    "SELECT * FROM memory ORDER BY id",
    "SELECT rowid, tokens FROM memory_text ORDER BY rowid",
    "SELECT * FROM term ORDER BY tenant, term",
    "SELECT id, flags FROM occurrence ORDER BY id",
    "SELECT turn, listing FROM head ORDER BY turn",
    "SELECT occurrence, retired FROM block ORDER BY occurrence",
    "SELECT * FROM erased ORDER BY fingerprint",
)


@pytest.fixture
def clock() -> Clock:
    return Clock(NOW + 1)


@pytest.fixture
def retiring(database: Database, clock: Clock) -> Retiring:
    return Retiring(database, SECRET, clock, settle_seconds=0.0)


def said_by(key: str, asked: Record) -> Record:
    """The record as the archivist makes it, with what it belongs to."""
    return replace(asked, scopes=scope_prints(asked.turn, tenant_key(SECRET, key)))


async def retired(retiring: Retiring, target: Target) -> Json:
    receipt = await retiring.retire(target)
    assert receipt is not None
    assert is_genuine(receipt, SECRET)
    assert CANARY not in str(receipt)
    return receipt


async def found(database: Database, words: str) -> list[Row]:
    """Passages that a search for these words could find."""
    sql = "SELECT content.text FROM memory JOIN occurrence ON occurrence.id = memory.occurrence JOIN content"
    return await database.read(f"{sql} ON content.id = occurrence.content WHERE content.text LIKE ?", (f"%{words}%",))


async def stored(database: Database, words: str) -> bool:
    return bool(await database.read("SELECT 1 FROM content WHERE text LIKE ?", (f"%{words}%",)))


async def test_what_is_retired_is_stored_and_not_found_and_is_taken_back_exactly(
    database: Database, journal: Journal, retiring: Retiring
) -> None:
    talk = Talk(journal)
    await talk.say("hello there, archive")
    await talk.say(CANARY)
    block = Block(f"<palimpsest-memory>{CANARY}</palimpsest-memory>", BlockKind.RECALL, (3,), 9)
    await talk.say("and good night", block=block, anchor=4)
    before = [await database.read(sql) for sql in INDEX]
    receipt = await retired(retiring, Target(conversation="c-1", number=2))
    assert receipt["retired"]["messages"] == 2
    assert await found(database, "Bellerophon") == []
    assert await found(database, "good night") != []
    assert await database.read("SELECT 1 FROM term WHERE term = 'kestrel'") == []
    assert await stored(database, "Bellerophon")
    assert [head.blocks for head in (await look(journal, talk.history)).heads] == [()]
    undone = await retiring.undo(receipt["id"])
    assert undone is not None
    assert undone["messages"] == 2
    assert [await database.read(sql) for sql in INDEX] == before
    assert await retiring.undo(receipt["id"]) is None


async def test_a_retired_turn_that_is_sent_again_stays_retired_and_comes_back_with_the_rest(
    database: Database, journal: Journal, retiring: Retiring
) -> None:
    talk = Talk(journal)
    await talk.say(CANARY)
    receipt = await retired(retiring, Target(conversation="c-1", number=1))
    await talk.say("and what else did I say?")
    again = said_by("acme", record([*talk.history, user("third time?")], conversation="c-2", created_at=LATER))
    await journal.write([again])
    assert await found(database, "Bellerophon") == []
    assert len(await found(database, "what else")) == 4
    assert await database.read("SELECT count(*) FROM retired") == [(4,)]
    assert await retiring.undo(receipt["id"]) is not None
    assert len(await found(database, "Bellerophon")) == 4
    later = said_by("acme", record([*talk.history, user("fourth time?")], conversation="c-3", created_at=LATER))
    await journal.write([later])
    assert len(await found(database, "Bellerophon")) == 6


async def test_what_was_on_its_way_is_retired_too_and_what_is_said_afterwards_is_not(
    database: Database, journal: Journal, retiring: Retiring
) -> None:
    await Talk(journal).say("hello there, archive", user="ann")
    open_turn = said_by("acme", record([user("an open question")], user="ann", conversation="c-5"))
    await journal.write([open_turn])
    receipt = await retired(retiring, Target(user="ann"))
    await journal.write(answers=[heard(open_turn, "its late answer")])
    late = said_by("acme", record([user(CANARY)], user="ann", conversation="c-6"))
    await journal.write([late])
    await journal.write(answers=[heard(late, f"You said {CANARY}")])
    after = said_by("acme", record([user("I am back")], user="ann", conversation="c-9", created_at=LATER))
    await journal.write([after])
    assert [text for (text,) in await found(database, "")] == ["I am back"]
    assert await stored(database, "Bellerophon")
    assert await stored(database, "its late answer")
    assert await retiring.undo(receipt["id"]) is not None
    assert len(await found(database, "")) == 7


async def test_a_block_that_was_made_of_it_meanwhile_is_not_repeated(journal: Journal, retiring: Retiring) -> None:
    await Talk(journal).say(CANARY)
    await retired(retiring, Target(conversation="c-1"))
    block = Block(f"<palimpsest-memory>{CANARY}</palimpsest-memory>", BlockKind.RECALL, (1,), 9)
    other = Talk(journal, conversation="c-2")
    await other.say("what was the reference?", block=block, anchor=0)
    assert [head.blocks for head in (await look(journal, other.history)).heads] == [()]


async def test_what_is_not_in_use_cannot_be_retired_and_what_is_unknown_cannot_be_taken_back(
    journal: Journal, retiring: Retiring, clock: Clock
) -> None:
    await Talk(journal).say(CANARY, user="ann")
    await Talk(journal, tenant="globex").say(CANARY, user="ann")
    with pytest.raises(PolicyError, match="tenant: required"):
        await retiring.retire(Target(user="ann"))
    assert await retiring.retire(Target(user="bob")) is None
    receipt = await retired(retiring, Target(tenant="acme", user="ann"))
    assert await retiring.preview(Target(tenant="acme", user="ann")) is None
    assert await retiring.retire(Target(tenant="acme", user="ann")) is None
    assert [one["id"] for one in await retiring.list_retirements()] == [receipt["id"]]
    assert await retiring.list_retirements("globex") == []
    assert await retiring.undo("r-unknown") is None
    assert await retiring.undo(receipt["id"], "globex") is None
    clock.now += DAYS * DAY_SECONDS
    assert await retiring.list_retirements() == []
    assert await retiring.undo(receipt["id"]) is None


async def test_what_is_retired_can_be_erased_and_does_not_come_back(
    database: Database, journal: Journal, retiring: Retiring, clock: Clock
) -> None:
    dice = random.Random(7)
    words = ["".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=dice.randint(4, 14))) for _ in range(3000)]
    talk = Talk(journal)
    await talk.say(CANARY)
    for number in range(40):
        other = Talk(journal, conversation=f"c-{number + 10}")
        await other.say(" ".join(dice.choices(words, k=dice.choice((8, 30, 100)))))
        await talk.say(f"the crates of shelf {number} and the kestrel, please", created_at=NOW - 1)
    receipt = await retired(retiring, Target(conversation="c-1"))
    without_vacuum = Forgetting(database, SECRET, clock, vacuum_bytes=0, settle_seconds=0.0)
    erased = await without_vacuum.erase(Target(conversation="c-1"))
    assert erased is not None
    assert is_done(erased)
    assert not any(is_held(database, words) for words in ("kestrel", "Kestrel", "KESTREL"))
    await retiring.undo(receipt["id"])
    again = said_by("acme", record([*talk.history, user("again?")], conversation="c-2", created_at=LATER))
    await journal.write([again])
    assert not await stored(database, "Bellerophon")


async def test_a_rebuild_leaves_out_what_is_retired(database: Database, journal: Journal, retiring: Retiring) -> None:
    await Talk(journal).say(CANARY)
    await Talk(journal, conversation="c-2").say("other words")
    receipt = await retired(retiring, Target(conversation="c-1"))
    derived = Derived(database, lambda: NOW)
    await derived.start_rebuild()
    with pytest.raises(MemoryFault, match="being rebuilt"):
        await retiring.undo(receipt["id"])
    while await derived.rebuild_step():
        pass
    assert await found(database, "Bellerophon") == []
    assert await retiring.undo(receipt["id"]) is not None
    assert len(await found(database, "Bellerophon")) == 2


async def test_a_block_is_repeated_again_when_the_last_retirement_of_what_it_quotes_is_undone(
    database: Database, journal: Journal, retiring: Retiring
) -> None:
    talk = Talk(journal)
    await talk.say(CANARY)
    await talk.say("hello there, archive")
    block = Block("<palimpsest-memory>both</palimpsest-memory>", BlockKind.RECALL, (1, 3), 9)
    await talk.say("and now?", block=block, anchor=4)
    first = await retired(retiring, Target(conversation="c-1", number=1))
    second = await retired(retiring, Target(conversation="c-1", number=2))
    await retiring.undo(first["id"])
    assert await database.read("SELECT count(*) FROM block WHERE retired = 0") == [(0,)]
    await retiring.undo(second["id"])
    assert await database.read("SELECT count(*) FROM block WHERE retired = 0") == [(1,)]
