"""Turns, as they are listed, shown and explained."""

from __future__ import annotations

import pytest
from palimpsest.domain import Block, BlockKind

from tests.edge.admin.asking import ACME, House
from tests.talking import Talk

EXPLAIN = {"note": None, "kind": "recall", "added": {"tokens": 7, "share": 0.5}}


async def recalled(house: House) -> str:
    """A turn to which a block was added, of messages that are stored and of one that is not; its id."""
    talk = Talk(house.journal, "key:acme", "c-5")
    await talk.say("the port is 7431")
    (said,) = (await house.get("memories?conversation=c-5&role=user"))["memories"]
    passage = {"occurrence": said["occurrence"], "start": 4, "stop": 16}
    candidates = [passage | {"packed": True}, {"occurrence": 999, "packed": False}]
    block = Block("[quoted] the port is 7431", BlockKind.RECALL, (said["occurrence"],), 7)
    asked = await talk.say("which port?", explain=EXPLAIN | {"candidates": candidates}, block=block, anchor=2)
    return asked.turn.id


@pytest.mark.parametrize("number", ["2", "newest"])
async def test_a_turn_is_shown_by_number_or_as_the_newest_or_by_its_id(house: House, number: str) -> None:
    shown = await house.get(f"conversations/c-1/turns/{number}", ACME)
    assert (shown["number"], shown["turns"], shown["event"], shown["title"]) == (2, 2, "append", "second in c-1")
    assert (shown["user"], shown["scope"], shown["ending"], shown["prompt_tokens"]) == (
        *("ann/office", "site", "complete", 17),
    )
    assert shown == await house.get(f"turns/{shown['turn']}", ACME)
    assert [(one["role"], one["text"], one["is_answer"], one["state"]) for one in shown["new_messages"]] == [
        ("user", "second in c-1", False, "stored"),
        ("assistant", "answer to second in c-1", True, "stored"),
    ]
    assert (await house.get("turns/newest"))["conversation"] == "c-9"
    assert (await house.get("turns/newest", ACME))["conversation"] == "c-2"


async def test_a_turn_shows_what_was_added_and_from_what_it_was_chosen(house: House) -> None:
    shown = await house.get(f"turns/{await recalled(house)}")
    assert (shown["kind"], shown["note"], shown["added_tokens"]) == ("recall", "", 7)
    (block,) = shown["blocks"]
    assert (block["text"], block["tokens"], block["is_replayed"]) == ("[quoted] the port is 7431", 7, True)
    texts = {one["occurrence"]: one["text"] for one in shown["explain"]["candidates"]}
    assert texts.pop(999) is None, "what is not stored any more has no text"
    assert list(texts.values()) == ["port is 7431"], "the passage, not all of its message"


async def test_a_turn_for_which_nothing_was_found_has_no_kind_of_block(house: House) -> None:
    explain = {"note": "nothing-relevant", "kind": "recall"}
    asked = await Talk(house.journal, "key:acme", "c-5").say("what?", explain=explain)
    shown = await house.get(f"turns/{asked.turn.id}")
    assert (shown["kind"], shown["note"], shown["explain"]["kind"]) == ("", "nothing-relevant", "recall")


async def test_a_block_has_its_kind_also_where_a_note_is_said_beside_it(house: House) -> None:
    explain = {"note": "indexing", "kind": "restore", "block": {"chars": 90, "tokens": 30, "occurrences": []}}
    asked = await Talk(house.journal, "key:acme", "c-5").say("what?", explain=explain)
    shown = await house.get(f"turns/{asked.turn.id}")
    assert (shown["kind"], shown["note"]) == ("restore", "indexing")


@pytest.mark.parametrize("path", ["conversations/c-1/turns/3", "conversations/c-7/turns/1", "turns/t-7", "turns/c-1"])
async def test_a_turn_that_is_not_there_is_404(house: House, path: str) -> None:
    status, said = await house.ask(f"/memory/v1/{path}")
    assert (status, said["error"]["message"]) == (404, "no such turn")


async def test_turns_are_listed_in_the_order_of_their_conversation_or_the_newest_first(house: House) -> None:
    of_one = (await house.get("conversations/c-1/turns"))["turns"]
    assert [(one["number"], one["title"]) for one in of_one] == [(1, "first in c-1"), (2, "second in c-1")]
    of_all = (await house.get("turns", ACME))["turns"]
    assert [(one["conversation"], one["number"]) for one in of_all] == [("c-2", 2), ("c-2", 1), ("c-1", 2), ("c-1", 1)]


async def test_turns_are_listed_by_what_happened_in_them(house: House) -> None:
    turn = await recalled(house)
    assert [one["turn"] for one in (await house.get("turns?added=true"))["turns"]] == [turn]
    assert [one["number"] for one in (await house.get("turns?event=start"))["turns"]] == [1] * 4
    assert (await house.get("conversations/c-1/turns?event=compaction:summary"))["turns"] == []


async def test_the_operator_sees_of_two_conversations_of_one_name_only_one(house: House) -> None:
    await Talk(house.journal, "key:globex", "c-1").say("another one")
    assert [one["title"] for one in (await house.get("conversations/c-1/turns"))["turns"]] == ["another one"]
    asked = "conversations/c-1/turns?tenant=key:acme"
    assert [one["title"] for one in (await house.get(asked))["turns"]] == ["first in c-1", "second in c-1"]


async def test_what_was_erased_is_shown_as_a_place_without_words(house: House) -> None:
    assert (await house.ask("/memory/v1/conversations/c-1/turns/2", method="DELETE"))[0] == 200
    shown = await house.get("conversations/c-1/turns/2")
    assert {(one["text"], one["state"]) for one in shown["new_messages"]} <= {("", "erased")}
    assert shown["title"] == ""
