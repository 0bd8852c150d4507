"""What is forgotten is gone from the disk, comes back with no resend, and leaves everybody else's words alone."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from palimpsest.core.archive.receipt import is_done, is_genuine
from palimpsest.core.archive.tombstones import scope_prints
from palimpsest.core.caller.identity import tenant_key
from palimpsest.core.redaction.redaction import redacted_name
from palimpsest.domain import Block, BlockKind, HeadFlag, Json, Record, ResentTurn, Role
from palimpsest.domain.errors import PolicyError
from palimpsest.domain.word_cache import CACHES, forget_words
from palimpsest.memory.erasure.forgetting import Forgetting
from palimpsest.memory.erasure.targets import target_of
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.erasure.erasure import erase_messages, mark_scopes
from palimpsest.store.erasure.selection import Target, plans
from palimpsest.store.families.family import Erased
from palimpsest.store.journal import Journal
from palimpsest.store.search.derived import Derived
from palimpsest.wire.fingerprint import fingerprint_of
from palimpsest.wire.message import read_message

from tests.databases import is_held
from tests.talking import NOW, Talk, heard, record, system, user

SECRET = b"a secret of thirty-two bytes ....."
CANARY = "The wire transfer to Bellerophon Shipping is 48,200 euro, reference ZQX-7741-KESTREL"
LATER = NOW + 100
DAY_SECONDS = 86_400


@pytest.fixture
def forgetting(database: Database) -> Forgetting:
    return Forgetting(database, SECRET, lambda: NOW + 1, settle_seconds=0.0)


def is_on_disk(database: Database, words: str = CANARY) -> bool:
    return is_held(database, words)


async def erased(forgetting: Forgetting, target: Target) -> Json:
    """The receipt of an erasure that left nothing."""
    receipt = await forgetting.erase(target)
    assert receipt is not None
    assert is_done(receipt), receipt
    assert is_genuine(receipt, SECRET)
    assert CANARY not in str(receipt)
    return receipt


async def fill(journal: Journal, count: int = 60, **more: Any) -> Talk:
    """A talk that nobody wants forgotten."""
    talk = Talk(journal, conversation="c-other", **more)
    for number in range(count):
        await talk.say(f"What about harbour {number} and its {number * 37 % 101} cranes?")
    return talk


def said_by(key: str, asked: Record) -> Record:
    """The record as the archivist makes it, with what it belongs to."""
    return replace(asked, scopes=scope_prints(asked.turn, tenant_key(SECRET, key)))


async def texts(database: Database) -> set[str]:
    return {row[0] for row in await database.read("SELECT text FROM content")}


async def resend(journal: Journal, history: Sequence[Json], conversation: str = "c-again", **more: Any) -> Record:
    """A request that nothing leads back to what was erased."""
    asked = said_by("acme", record(history, conversation=conversation, **({"created_at": LATER} | more)))
    await journal.write([asked])
    return asked


async def test_an_erased_conversation_leaves_no_byte_and_no_row(
    database: Database, journal: Journal, forgetting: Forgetting
) -> None:
    await fill(journal)
    mine = Talk(journal, conversation="c-mine")
    await mine.say("hello there, archive")
    await mine.say(CANARY)
    assert is_on_disk(database)
    receipt = await erased(forgetting, Target(conversation="c-mine"))
    assert (receipt["erased"]["conversations"], receipt["erased"]["messages"], receipt["erased"]["turns"]) == (1, 4, 2)
    assert not is_on_disk(database)
    assert not is_on_disk(database, "kestrel")
    assert await database.read("SELECT count(*) FROM term WHERE term IN ('kestrel', 'transfer')") == [(0,)]
    assert await database.read("SELECT public FROM conversation") == [("c-other",)]
    assert ((await database.read("SELECT count(*) FROM turn"))[0][0], len(await texts(database))) == (60, 120)


async def test_messages_that_hold_a_credential_are_found_by_kind_and_erased_and_no_others(
    database: Database, journal: Journal, forgetting: Forgetting
) -> None:
    secret = "gh" + "p_" + "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zAbC5d"
    mine = Talk(journal, conversation="c-mine")
    await mine.say(f"export TOKEN={secret} before you push")
    await mine.say("The token was [redacted:github-token], and its password=[redacted:password].")
    await fill(journal, 3)
    target = target_of({"credentials": True}, NOW)
    preview = await forgetting.preview(target)
    assert preview is not None
    assert (preview.counts["messages"], preview.counts["credentials: github-token"]) == (2, 2), "the answer repeats it"
    receipt = await erased(forgetting, target)
    assert (receipt["asked"], receipt["erased"]["messages"]) == ({"credentials": True}, 2)
    assert not is_on_disk(database, secret) and await forgetting.preview(target) is None
    assert len(await texts(database) - {""}) == 2 + 6


async def test_a_message_in_parts_holds_what_its_texts_hold_and_each_credential_once(
    database: Database, journal: Journal, forgetting: Forgetting
) -> None:
    secret = "gh" + "p_" + "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zAbC5d"
    parts: list[Json] = [
        {"type": "text", "text": text}
        for text in ("connect by mysql -u root -p\nand then select 1;", f"use {secret} for it")
    ]
    inputs = ({"password": value} for value in ("ask the person", "", "[redacted:password]", "${DB_PASSWORD}"))
    parts += [{"type": "tool_use", "id": "t-1", "name": "login", "input": given} for given in inputs]
    for number, part in enumerate(parts):
        await journal.write([record([{"role": "assistant", "content": [part]}], conversation=f"c-{number}")])
    preview = await forgetting.preview(Target(credentials=True))
    assert preview is not None
    assert (preview.counts["messages"], preview.counts["credentials: github-token"]) == (1, 1)
    assert "credentials: password" not in preview.counts


async def test_rows_that_move_while_others_go_leave_no_copy_behind(database: Database, journal: Journal) -> None:
    dice = random.Random(7)
    words = ["".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=dice.randint(4, 14))) for _ in range(3000)]
    for number in range(200):
        messages = [user(" ".join(dice.choices(words, k=dice.choice((8, 30, 100))))) for _ in range(20)]
        await journal.write([record(messages, conversation=f"c-{number}", user=f"u-{number % 4}")])
    without_vacuum = Forgetting(database, SECRET, lambda: NOW + 1, vacuum_bytes=0, settle_seconds=0.0)
    receipt = await erased(without_vacuum, Target(user="u-1"))
    assert receipt["erased"]["messages"] == 1000


@pytest.mark.parametrize(
    ("backups", "until"), [("", "they are deleted"), ("forever", "they are deleted"), ("30d", "2023-12-14")]
)
async def test_the_receipt_says_until_when_backups_hold_it(
    database: Database, journal: Journal, backups: str, until: str
) -> None:
    await Talk(journal).say(CANARY)
    forgetting = Forgetting(database, SECRET, lambda: NOW + 1, backups=lambda: backups, settle_seconds=0.0)
    receipt = await erased(forgetting, Target(conversation="c-1"))
    backups = [place for place in receipt["not_covered"] if place.startswith("backups")]
    assert backups and all(place.endswith(f"hold it until {until}") for place in backups)


async def test_what_is_not_stored_is_never_a_success(journal: Journal, forgetting: Forgetting) -> None:
    await Talk(journal).say(CANARY, user="ann")
    for target in (
        Target(conversation="c-2"),
        Target(turn="t-99"),
        Target(conversation="c-1", number=2),
        Target(user="bob"),
        Target(tenant="nobody"),
        Target(matching="wire transfer to Chimera"),
        Target(before=NOW - 1),
    ):
        assert await forgetting.preview(target) is None
        assert await forgetting.erase(target) is None
    assert await forgetting.erase(Target(user="ann")) is not None
    assert await forgetting.erase(Target(user="ann")) is None


async def test_a_dry_run_counts_what_an_erasure_takes_and_takes_nothing(
    database: Database, journal: Journal, forgetting: Forgetting
) -> None:
    await Talk(journal).say(CANARY)
    preview = await forgetting.preview(Target(conversation="c-1"))
    assert preview is not None
    assert (preview.tenants, preview.counts["messages"], preview.counts["texts"]) == (1, 2, 2)
    assert CANARY in await texts(database)
    receipt = await erased(forgetting, Target(conversation="c-1"))
    counted = {name: preview.counts[name] for name in ("conversations", "messages", "turns", "passages", "texts")}
    assert receipt["erased"].items() >= counted.items()


async def test_the_history_of_an_erased_conversation_comes_back_without_its_text(
    database: Database, journal: Journal, forgetting: Forgetting
) -> None:
    talk = Talk(journal)
    await talk.say(CANARY)
    await erased(forgetting, Target(conversation="c-1"))
    asked = await resend(journal, [*talk.history, user("And what else did I say?")])
    assert await texts(database) == {"", "And what else did I say?"}
    request = await journal.request("acme", "c-again")
    assert [message["content"] for message in request] == ["", "", "And what else did I say?"]
    await journal.write(answers=[heard(asked, "Nothing that I could tell.")])
    assert "Nothing that I could tell." in await texts(database)
    assert not is_on_disk(database)


async def test_words_said_again_in_a_new_conversation_are_kept(
    database: Database, journal: Journal, forgetting: Forgetting
) -> None:
    await Talk(journal).say(CANARY)
    await erased(forgetting, Target(conversation="c-1"))
    await resend(journal, [user(CANARY)])
    assert CANARY in await texts(database)


async def test_the_same_first_message_of_the_same_conversation_is_a_retry(
    database: Database, journal: Journal, forgetting: Forgetting
) -> None:
    await Talk(journal).say(CANARY)
    await erased(forgetting, Target(conversation="c-1"))
    await resend(journal, [user(CANARY)], conversation="c-1")
    assert await texts(database) == {""}


async def test_a_conversation_that_lives_on_loses_one_turn_and_keeps_its_course(
    database: Database, journal: Journal, forgetting: Forgetting
) -> None:
    talk = Talk(journal)
    await talk.say("hello there, archive")
    await talk.say(CANARY)
    await talk.say("and good night")
    receipt = await erased(forgetting, Target(conversation="c-1", number=2))
    assert receipt["erased"]["messages"] == 2
    assert not is_on_disk(database)
    await talk.say("good morning")  # with the whole history again
    assert talk.head is not None
    assert len(talk.head.occurrences) == 8
    said = [message["content"] for message in await journal.request("acme", "c-1")]
    assert said[2:4] == ["", ""]
    assert said[0] == "hello there, archive"
    assert not is_on_disk(database)


async def test_what_a_long_conversation_lost_is_marked_where_its_listing_begins(
    database: Database, journal: Journal, forgetting: Forgetting
) -> None:
    talk = Talk(journal)
    await talk.say(CANARY)
    for number in range(40):
        await talk.say(f"What about harbour {number}?")
    assert await database.read("SELECT count(*) FROM listing") == [(1,)]
    await erased(forgetting, Target(conversation="c-1", number=1))
    await talk.say("good morning")
    assert talk.head is not None
    assert [at for at, flags in enumerate(talk.head.flags) if flags & HeadFlag.ERASED] == [0, 1]
    assert len(await journal.request("acme", "c-1")) == 83
    await erased(forgetting, Target(conversation="c-1"))
    assert await database.read("SELECT count(*) FROM listing") == [(0,)]


async def test_what_others_lost_costs_a_conversation_nothing_and_its_own_words_stay_gone(
    database: Database, journal: Journal, forgetting: Forgetting
) -> None:
    await Talk(journal, conversation="c-2").say(CANARY)
    await erased(forgetting, Target(conversation="c-2"))
    talk = Talk(journal)
    for number in range(40):
        await talk.say(f"What about harbour {number}?")
    assert await database.read("SELECT count(*) FROM listing") == [(1,)], "only what is new was written"
    await talk.say(CANARY, "noted", created_at=LATER)
    assert [message["content"] for message in await journal.request("acme", "c-1")][-1] == CANARY, "said anew, and kept"
    await erased(forgetting, Target(conversation="c-1", number=41))
    await talk.say("good morning")
    assert not is_on_disk(database)


async def test_a_turn_is_erased_by_its_id(database: Database, journal: Journal, forgetting: Forgetting) -> None:
    asked = await Talk(journal).say(CANARY)
    await erased(forgetting, Target(turn=asked.turn.id))
    assert await texts(database) == {""}


async def test_a_turn_leaves_the_instructions_that_others_send_too(
    database: Database, journal: Journal, forgetting: Forgetting
) -> None:
    first = record([system("be brief"), user("hello there")])
    await journal.write([first])
    await journal.write([record([system("be brief"), user(CANARY)])])
    await erased(forgetting, Target(conversation="c-1", number=2))
    assert await texts(database) == {"be brief", "hello there", ""}


async def test_a_text_goes_with_its_last_occurrence(
    database: Database, journal: Journal, forgetting: Forgetting
) -> None:
    await Talk(journal).say(CANARY)
    await Talk(journal, conversation="c-2").say(CANARY)
    receipt = await erased(forgetting, Target(conversation="c-1"))
    assert receipt["stays"]["texts_that_stand_elsewhere"] == 2
    assert CANARY in await texts(database)
    await erased(forgetting, Target(conversation="c-2"))
    assert not is_on_disk(database)


async def test_matching_words_go_wherever_they_stand_and_nothing_else(
    database: Database, journal: Journal, forgetting: Forgetting
) -> None:
    await Talk(journal).say(f"first\n{CANARY}", "noted, euro it is")
    await Talk(journal, conversation="c-2", tenant="globex").say("hm", f"You said: {CANARY.upper()}")
    receipt = await erased(forgetting, Target(matching="reference  zqx-7741-kestrel"))
    assert (receipt["tenants"], receipt["erased"]["messages"]) == (2, 2)
    assert await texts(database) == {"", "noted, euro it is", "hm"}
    assert "zqx" not in str(receipt).lower()


async def test_what_is_old_goes_and_conversations_that_ended_go_as_a_whole(
    database: Database, journal: Journal, forgetting: Forgetting
) -> None:
    old = {"created_at": NOW - 10 * DAY_SECONDS}
    await Talk(journal, conversation="c-old").say(CANARY, **old)
    await database.write([("UPDATE occurrence SET created_at = ?", [(NOW - 10 * DAY_SECONDS,)])])
    talk = Talk(journal)
    await talk.say("so old, too", **old)
    await database.write([("UPDATE occurrence SET created_at = ?", [(NOW - 10 * DAY_SECONDS,)])])
    await talk.say("but this is new")
    await erased(forgetting, target_of({"older_than": "9d"}, NOW))
    assert await texts(database) == {"", "but this is new", "answer to but this is new"}
    assert await database.read("SELECT public FROM conversation") == [("c-1",)]


@pytest.mark.sqlite
async def test_a_file_beside_the_database_that_still_holds_it_is_named(
    database: Database, journal: Journal, forgetting: Forgetting
) -> None:
    await Talk(journal).say(CANARY)
    assert database.files is not None
    copy = database.files.path.parent / "replaced-2031" / "old.db"
    copy.parent.mkdir()
    copy.write_text(CANARY)
    receipt = await forgetting.erase(Target(tenant="acme"))
    assert receipt is not None and not is_done(receipt)
    assert receipt["check"]["where"] == ("replaced-2031/old.db",)


async def test_other_tenants_keep_the_same_words(database: Database, journal: Journal, forgetting: Forgetting) -> None:
    await Talk(journal).say(CANARY)
    await Talk(journal, tenant="globex").say(CANARY)
    with pytest.raises(PolicyError, match="tenant: required"):
        await forgetting.erase(Target(conversation="c-1"))
    before = await database.read("SELECT * FROM content WHERE tenant = 2")
    receipt = await erased(forgetting, Target(tenant="acme", conversation="c-1"))
    assert receipt["check"]["said_elsewhere"] > 0 or not receipt["check"]["searched"]
    assert await database.read("SELECT * FROM content WHERE tenant = 2") == before
    await erased(forgetting, Target(tenant="globex"))
    assert not is_on_disk(database)
    for table in ("tenant", "term", "memory", "memory_text", "occurrence", "head", "link"):
        assert await database.read(f"SELECT count(*) FROM {table}") == [(0,)], table


async def test_blocks_that_quote_what_was_erased_go_wherever_they_stand(
    database: Database, journal: Journal, forgetting: Forgetting
) -> None:
    await Talk(journal).say(CANARY)
    block = Block(f"<palimpsest-memory>{CANARY}</palimpsest-memory>", BlockKind.RECALL, (1,), 9)
    other = Talk(journal, conversation="c-2")
    await other.say("what was the reference?", block=block, anchor=0)
    harmless = Block("<palimpsest-memory>what was</palimpsest-memory>", BlockKind.RECALL, (3,), 9)
    await other.say("and again?", block=harmless, anchor=2)
    receipt = await erased(forgetting, Target(conversation="c-1"))
    assert receipt["erased"]["blocks"] == 1
    assert await database.read("SELECT text FROM block") == [(harmless.text,)]
    assert not is_on_disk(database)
    late = said_by("acme", record([user("third?")], conversation="c-3", block=block, anchor=0))
    await journal.write([late])  # was on its way when its memory went
    assert await database.read("SELECT text FROM block") == [(harmless.text,)]


async def test_a_request_that_was_on_its_way_is_written_without_a_word_and_so_is_its_answer(
    database: Database, journal: Journal, forgetting: Forgetting
) -> None:
    await Talk(journal).say("hello there, archive", user="ann")
    await erased(forgetting, Target(user="ann"))
    late = said_by("acme", record([user(CANARY)], user="ann", explain={"query": {"text": CANARY}}))
    await journal.write([late])
    await journal.write(answers=[heard(late, f"You said {CANARY}")])
    assert await texts(database) == {""}
    assert await database.read("SELECT user_id FROM conversation") == [("",)]
    assert not is_on_disk(database)
    after = said_by("acme", record([user("I am back")], user="ann", conversation="c-9", created_at=LATER))
    await journal.write([after])
    assert "I am back" in await texts(database)


async def test_a_request_that_carries_answers_which_are_gone_by_then_is_written_without_its_history(
    database: Database, journal: Journal, forgetting: Forgetting
) -> None:
    """Decided before the erasure, against a head that knew the answers alone; the clock says after: it was held up."""
    talk = Talk(journal)
    for text in (CANARY, f"{CANARY}, once more", "hello there, archive"):
        await talk.say(text)
    head = talk.head
    assert head is not None
    answers = dict([row for row in zip(head.fulls, head.occurrences, strict=True)][1::2])
    known = replace(head, fulls=tuple(answers), occurrences=tuple(answers.values()))
    await erased(forgetting, Target(conversation="c-1"))
    late = record([*talk.history, user("I am back")], known, conversation="c-9", created_at=LATER)
    assert len(late.entries) == 4
    await journal.write([said_by("acme", late)])
    assert await texts(database) == {"", "I am back"}


@pytest.mark.parametrize("target", [Target(conversation="c-1"), Target(conversation="c-1", number=1)])
async def test_a_summary_that_is_asked_for_while_its_conversation_is_erased_keeps_no_text(
    database: Database, journal: Journal, forgetting: Forgetting, target: Target
) -> None:
    await Talk(journal).say(CANARY)
    await erased(forgetting, target)
    await journal.write([said_by("acme", record([user(f"Summarise: {CANARY}")], role=Role.SIDE, created_at=LATER))])
    assert not is_on_disk(database)


async def test_the_answer_to_a_turn_that_was_erased_meanwhile_is_not_kept(
    database: Database, journal: Journal, forgetting: Forgetting
) -> None:
    asked = record([user(CANARY)])
    await journal.write([asked])
    await erased(forgetting, Target(conversation="c-1", number=1))
    await journal.write(answers=[heard(asked, f"You said {CANARY}")])
    assert await texts(database) == {""}


async def test_what_was_looked_for_does_not_come_back_with_a_request_that_was_sent_once_more(
    database: Database, journal: Journal, forgetting: Forgetting
) -> None:
    talk = Talk(journal)
    await talk.say(CANARY)
    told = {"query": {"text": CANARY}, "gate": {"admitted": True, "reason": CANARY}}
    asked = said_by("acme", record([*talk.history, user("go on")], talk.head, explain=told))
    await journal.write([asked])
    await erased(forgetting, Target(conversation="c-1", number=1))
    said = heard(asked, "on it goes")
    await journal.write(answers=[replace(said, answer=replace(said.answer, bare=ResentTurn(7, told)))])
    assert "on it goes" in await texts(database)
    assert not is_on_disk(database)


async def test_what_was_looked_for_goes_with_the_words(
    database: Database, journal: Journal, forgetting: Forgetting
) -> None:
    talk = Talk(journal)
    gate = {"admitted": True, "reason": f"names {CANARY}"}
    await talk.say(CANARY, explain={"event": "start", "query": {"text": CANARY}, "gate": gate})
    await talk.say("go on", explain={"query": {"text": f"go on\n{CANARY}"}})
    await erased(forgetting, Target(conversation="c-1", number=1))
    assert not is_on_disk(database)
    told = {"query": {"text": CANARY}, "gate": gate}
    again = said_by("acme", record([*talk.history, user("yes?")], talk.head, explain=told))
    await journal.write([again])
    assert not is_on_disk(database)


async def test_a_request_beside_a_conversation_that_lost_something_keeps_no_text(
    database: Database, journal: Journal, forgetting: Forgetting
) -> None:
    await Talk(journal).say(CANARY)
    await Talk(journal, conversation="c-2").say("hello there")
    await erased(forgetting, Target(conversation="c-1", number=1))
    for conversation in ("c-1", "c-2"):
        words = f"Summarise for {conversation}: user: {CANARY}" if conversation == "c-1" else "A title for hello there"
        beside = said_by("acme", record([user(words)], conversation=conversation, role=Role.SIDE, created_at=LATER))
        await journal.write([beside])
        await journal.write(answers=[heard(beside, f"Summed up: {words}")])
    assert not is_on_disk(database)
    assert "Summed up: A title for hello there" in await texts(database)


async def test_conversations_of_sub_agents_go_with_the_one_that_they_serve(
    database: Database, journal: Journal, forgetting: Forgetting
) -> None:
    await Talk(journal).say("please research it")
    await Talk(journal, conversation="c-2").say(CANARY, parent_conversation="c-1")
    await Talk(journal, conversation="c-3").say("too", parent_conversation="c-2")
    receipt = await erased(forgetting, Target(conversation="c-1"))
    assert receipt["erased"]["conversations"] == 3


async def test_a_rebuild_that_had_read_the_words_does_not_bring_them_back(
    database: Database, journal: Journal, forgetting: Forgetting
) -> None:
    await Talk(journal).say(CANARY)
    await Talk(journal).say("other words")
    derived = Derived(database, lambda: NOW)
    await derived.start_rebuild()
    await erased(forgetting, Target(conversation="c-1", number=1))
    while await derived.rebuild_step():
        pass
    assert not is_on_disk(database, "kestrel")


def test_memory_of_words_is_emptied_everywhere() -> None:
    emptied: list[int] = []
    fingerprint_of(read_message(user(CANARY)), b"key")
    forget_words([lambda: emptied.append(1), lambda: emptied.append(2)])
    assert [cache.cache_info().currsize for cache in CACHES] == [0] * len(CACHES)
    assert emptied == [1, 2]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "nothing is selected"),
        ({"users": "ann"}, "users: not known"),
        ({"user": " "}, "user: must be text"),
        ({"user": ["ann"]}, "user: must be text"),
        ({"turn": "c-1/0"}, "turn: must be the value"),
        ({"turn": "c-1/x"}, "turn: must be the value"),
        ({"turn": 7}, "turn: must be text"),
        ({"turn": "c-1/2", "conversation": "c-2"}, "turn: must be the value"),
        ({"older_than": "90"}, "older_than: must be a number followed"),
    ],
)
def test_what_cannot_be_read_is_said(given: dict[str, Any], words: str) -> None:
    with pytest.raises(PolicyError, match=words):
        target_of(given, NOW)


def test_a_target_is_read() -> None:
    assert target_of({"turn": "c-1/2"}, NOW) == Target(conversation="c-1", number=2)
    assert target_of({"turn": "t-7", "tenant": "key:a"}, NOW) == Target(tenant="key:a", turn="t-7")
    assert target_of({"user": "ann", "older_than": "2w"}, NOW) == Target(user="ann", before=NOW - 14 * DAY_SECONDS)


async def test_an_age_beyond_all_calendars_means_nothing_and_never_everything(
    journal: Journal, forgetting: Forgetting
) -> None:
    await Talk(journal).say("a quince")
    target = target_of({"older_than": "999999w"}, NOW)
    assert target.before > 0 and await forgetting.preview(target) is None and await forgetting.erase(target) is None


async def test_what_comes_in_between_decision_and_tombstone_is_found_in_the_next_round(
    database: Database, journal: Journal
) -> None:
    """The clock stands for time that passes while others write: the history comes again before its tombstones do."""
    talk = Talk(journal)
    await talk.say(CANARY)
    looks: list[float] = []
    looked = asyncio.Event()

    def clock() -> float:
        looks.append(NOW + 1 + len(looks))
        looked.set()
        return looks[-1]

    forgetting = Forgetting(database, SECRET, clock)
    erasing = asyncio.create_task(forgetting.erase(Target(conversation="c-1", number=1)))
    await looked.wait()
    await resend(journal, [*talk.history, user("And now?")], created_at=looks[0] + 0.5)
    assert await erasing is not None
    assert await texts(database) == {"", "And now?"}


@pytest.mark.parametrize("goes_on", [False, True])
async def test_an_answer_goes_with_its_request_though_it_came_later(
    database: Database, journal: Journal, forgetting: Forgetting, goes_on: bool
) -> None:
    asked = record([user("hello there, archive")], user="ann")
    await journal.write([asked])
    said = heard(asked, f"You said {CANARY}")
    await journal.write(answers=[replace(said, answer=replace(said.answer, created_at=LATER))])
    if goes_on:
        await journal.write([record([user("I am back")], user="ann", created_at=LATER)])
    await erased(forgetting, Target(user="ann"))
    assert await texts(database) == ({"", "I am back"} if goes_on else set())
    assert bool(await database.read("SELECT id FROM conversation")) is goes_on


@pytest.mark.sqlite
async def test_an_erasure_that_was_cut_off_is_finished_at_the_next_start(
    database: Database, journal: Journal, forgetting: Forgetting
) -> None:
    await fill(journal)
    await Talk(journal).say(CANARY)
    await journal.write([record([user("the last words")], conversation="c-last")])
    found = await database.ask(lambda ask: plans(ask, Target(conversation="c-1"), NOW))
    taken = Erased()
    await database.transact(lambda transaction: mark_scopes(transaction, (), NOW))
    await database.transact(
        lambda transaction: erase_messages(transaction, found[0].tenant, found[0].occurrences, taken)
    )  # and here it is killed
    assert is_on_disk(database)
    assert await forgetting.erase(Target(conversation="c-1", number=1)) is None
    assert not is_on_disk(database)
    assert not is_on_disk(database, "kestrel")
    assert await database.read("SELECT count(*) FROM task") == [(0,)]


async def test_a_user_named_by_a_credential_is_found_by_it(
    database: Database, journal: Journal, forgetting: Forgetting
) -> None:
    name = "ghp_" + "a1B2c3D4e5F6" * 3
    await Talk(journal).say(CANARY, user=redacted_name(name, SECRET))
    receipt = await erased(forgetting, Target(user=name))
    assert name not in str(receipt)
    assert await database.read("SELECT count(*) FROM conversation") == [(0,)]
