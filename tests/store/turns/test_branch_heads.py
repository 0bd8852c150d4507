"""A conversation is gone on from after any of its turns, as it stood then."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from palimpsest.domain import Clues, Head, Json, LinkKind, Record, Role
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.journal import MAX_HEADS_READ, Journal
from palimpsest.store.turns.branch_writing import MAX_TAIL_MESSAGES, ROW_BYTES, remove_unused_listings

from tests.databases import database_in
from tests.examples import examples
from tests.talking import heard, print_of, record, system, user


async def say(journal: Journal, asked: Record, answer: str, id: int) -> None:
    """A request and its answer, which is known by an id."""
    said = heard(asked, answer)
    links = (*said.answer.links, (LinkKind.REPLY, id))
    await journal.write([asked], [replace(said, answer=replace(said.answer, links=links))])


async def named(journal: Journal, id: int, tenant: str = "acme") -> list[Head]:
    """The heads of the turns that gave this answer."""
    seen = await journal.history_of(Clues(tenant, {LinkKind.REPLY: (id,)}))
    return [head for head in seen.heads if head.turn in {link.turn for link in seen.links}]


async def test_a_head_that_was_replaced_is_still_known_by_its_answer(journal: Journal) -> None:
    await say(journal, record([user("one")], tokens=5), "first", 101)
    (before,) = await named(journal, 101)
    assert before.tokens > 17, "as the upstream counted, and the answer"
    history = [user("one"), {"role": "assistant", "content": "first"}, user("two")]
    await say(journal, record(history, before, lost=(77,)), "second", 102)
    (after,) = await named(journal, 102)
    assert list(after.fulls)[:3] == [print_of("acme", raw).full for raw in history]
    (again,) = await named(journal, 101)
    assert again.turn == before.turn and again.shape == before.shape
    for name in ("fulls", "openings", "occurrences", "flags"):
        assert list(getattr(again, name)) == list(getattr(before, name)), name
    assert (again.request_length, again.event, again.tokens) == (1, before.event, 17)
    assert await named(journal, 101, "other") == []


async def test_a_head_knows_the_message_in_which_its_newest_compaction_is_answered(journal: Journal) -> None:
    history = [system("be brief"), user("summary"), user("question")]
    await say(journal, record(history, restored_at=2), "first", 101)
    (restored,) = await named(journal, 101)
    assert restored.restored_at == restored.occurrences[1]
    history += [{"role": "assistant", "content": "first"}, user("next")]
    await say(journal, record(history, restored, restored_at=2), "second", 102)
    (later,) = await named(journal, 102)
    assert later.restored_at == restored.restored_at
    await say(journal, record([*history[:2], user("other")], later, restored_at=-1), "third", 103)
    assert [head.restored_at for head in await named(journal, 103)] == [0]


async def test_one_of_many_branches_is_known_as_it_stands(journal: Journal) -> None:
    await say(journal, record([user("one")]), "first", 101)
    (root,) = await named(journal, 101)
    history = [user("one"), {"role": "assistant", "content": "first"}]
    for number in range(MAX_HEADS_READ + 2):
        asked = record([*history, user(f"branch {number}")], root, compactions=number)
        await say(journal, asked, "next", 200 + number)
    assert [head.compactions for number in range(3) for head in await named(journal, 200 + number)] == [0, 1, 2]


@settings(max_examples=examples(15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 30), min_size=2, max_size=14))
async def test_whatever_is_continued_each_answer_leads_to_what_led_to_it(tmp_path: Path, picks: list[int]) -> None:
    database = database_in(tmp_path, f"{uuid4().hex}.db")
    await database.open()
    journal = Journal(database)
    histories: list[list[Json]] = []
    for number, pick in enumerate(picks):
        before = pick % (number + 1) - 1  # -1: a conversation begins
        head = (await named(journal, before))[0] if before >= 0 else None
        asked = [*(histories[before] if head else ()), user(f"question {number}")]
        conversation = head.conversation if head else f"c-{number}"
        await say(journal, record(asked, head, conversation=conversation), f"answer {number}", number)
        histories.append([*asked, {"role": "assistant", "content": f"answer {number}"}])
    for number, history in enumerate(histories):
        (head,) = await named(journal, number)
        assert list(head.fulls) == [print_of("acme", raw).full for raw in history]
        assert head.request_length == len(history) - 1
    await database.close()


async def test_a_turn_writes_what_it_adds_and_the_head_is_the_same_however_long_the_history(
    database: Database,
) -> None:
    journal = Journal(database)
    histories: dict[str, list[Json]] = {}
    heads: dict[str, list[Head]] = {"c-whole": [], "c-kept": []}
    for conversation, listed in heads.items():
        history = histories[conversation] = [system("be brief"), *(user(f"old {n}") for n in range(60))]
        for number in range(40):
            head = listed[-1] if listed else None
            asked = record(history, head, conversation=conversation, lost=(10_000,) if number == 1 else ())
            if conversation == "c-kept":
                asked = replace(asked, turn=replace(asked.turn, kept=asked.turn.carried, whole=None))
            assert (asked.turn.whole is not None) == (conversation == "c-whole" and number > 0)
            fingerprint = 1000 * len(histories) + number
            await say(journal, asked, f"answer {number}", fingerprint)
            listed += await named(journal, fingerprint)
            history += [{"role": "assistant", "content": f"answer {number}"}, user(f"question {number}")]
    for one, other in zip(*heads.values(), strict=True):
        assert list(one.fulls) == list(other.fulls) and list(one.flags) == list(other.flags)
        assert list(one.lost) == list(other.lost) and one.request_length == other.request_length
    assert len(heads["c-whole"][-1].fulls) == 139
    for conversation, history in histories.items():
        assert list(await journal.request("acme", conversation)) == history[:-2]
    ((rows, longest_bytes),) = await database.read("SELECT count(*), max(length(listing)) FROM head")
    assert (rows, longest_bytes <= MAX_TAIL_MESSAGES * ROW_BYTES + ROW_BYTES) == (2, True)
    assert await database.read("SELECT count(*) FROM listing") == [(2,)], "those that no head begins with are gone"
    await database.write([("DELETE FROM head", [()])])
    owners = await database.read("SELECT tenant, id FROM conversation")
    await database.transact(lambda transaction: remove_unused_listings(transaction, owners))
    assert await database.read("SELECT count(*) FROM listing") == [(0,)]


async def test_the_answer_of_a_side_request_led_to_no_head(journal: Journal) -> None:
    await say(journal, record([user("one")]), "first", 101)
    await say(journal, record([user("sum up")], role=Role.SIDE), "a summary", 102)
    seen = await journal.history_of(Clues("acme", {LinkKind.REPLY: (102,)}))
    assert [head.turn for head in seen.heads] != [link.turn for link in seen.links]
    assert await named(journal, 102) == []
