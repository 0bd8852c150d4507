from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import Any

import pytest
from palimpsest.core.recall.needs import PRECAUTIONS_TOLD
from palimpsest.core.work.rules import rules
from palimpsest.domain import Reach, Role
from palimpsest.memory.recall.recall import Recall
from palimpsest.memory.recall.unasked import NOTES_CHARS, STANDING_CHARS

from tests.memory.recall.asking import LEAST_HELP, TALK, ask, texts
from tests.remembered import Past
from tests.talking import print_of, user

RULE_OF_COMMITS = "Never use emojis in a commit."


@pytest.mark.parametrize(
    ("told", "request_text"),
    [
        (
            "My sister Clara is allergic to hazelnuts, badly.",
            "What can I cook for dinner tonight? Give me a recipe for a cake my sister likes.",
        ),
        ("No exclamation marks in my letters, please, from now on.", "Write a notice for the door."),
    ],
)
async def test_what_a_kind_of_request_needs_comes_from_other_conversations_once(
    recall: Recall, past: Past, told: str, request_text: str
) -> None:
    await past.say(told, *TALK, user="lena")
    await past.say("Hello.", conversation="c-2", user="lena")
    await past.index()
    elsewhere = {"conversation": "c-2", "reach": Reach.USER, "user": "lena", "told": (), "least_help": LEAST_HELP}
    elsewhere["warned"] = frozenset()
    found = await recall.recall(ask(request_text, **elsewhere), 10)
    assert told in texts(found)
    again = frozenset(one.memory.occurrence for one in found.candidates)
    assert told not in texts(await recall.recall(ask(request_text, excluded=again, **elsewhere), 10))
    assert told not in texts(await recall.recall(ask("Explain the greenhouse effect.", **elsewhere), 10))
    others = {**elsewhere, "reach": Reach.TENANT}
    assert told not in texts(await recall.recall(ask(request_text, **others), 10)), "it may be another's"


DINNER = "What can I cook for dinner tonight? Give me a recipe for a cake."


async def precautions(recall: Recall, past: Past, *told: str, **query: Any) -> list[str]:
    """What is told of these messages of another conversation to a request about food, which looks like none of them."""
    await past.say(*chain(*((one, "Noted.") for one in told)), *TALK, user="lena")
    await past.say("Hello.", conversation="c-2", user="lena")
    await past.index()
    asked = ask(DINNER, conversation="c-2", reach=Reach.USER, user="lena", told=(), warned=frozenset(), least_help=1.0)
    return texts(await recall.recall(replace(asked, **query), 10))


async def test_a_precaution_comes_from_another_folder_too(recall: Recall, past: Past) -> None:
    told = "For the cake, I am allergic to nuts."
    await past.say(told, *TALK, user="lena", folder=8)
    await past.say("Hello.", conversation="c-2", user="lena", folder=7)
    await past.index()
    asked = ask(DINNER, conversation="c-2", reach=Reach.USER, user="lena", folder=7, told=(), warned=frozenset())
    assert texts(await recall.recall(asked, 10)) == [told], "and nothing else of it"


async def test_precautions_are_told_whole_with_what_takes_them_back(recall: Recall, past: Past) -> None:
    told = ("I was allergic to walnuts in a cake. I outgrew it.", "For the cake, I am allergic to nuts.")
    assert set(await precautions(recall, past, *told)) == {*told}


async def test_a_precaution_comes_with_what_the_user_said_later_of_it(recall: Recall, past: Past) -> None:
    told, later = "For a cake at dinner, I am allergic to nuts.", "By the way, I am no longer allergic to nuts."
    await past.say(told, "Noted.", *TALK, later, "Good.", user="lena")
    await past.say("Hello.", conversation="c-2", user="lena")
    await past.index()
    await past.mark_users()
    asked = ask(DINNER, conversation="c-2", reach=Reach.USER, user="lena", told=(), warned=frozenset(), least_help=1.0)
    assert texts(await recall.recall(asked, 10)) == [told, later]


async def test_a_precaution_that_asks_comes_behind_those_that_state(recall: Recall, past: Past) -> None:
    asks = [f"Can I cook a cake for dinner tonight with my diabetic aunt {name}?" for name in ("Ann", "Bea", "Cora")]
    states = "My uncle is allergic to nuts in cake."
    found = await precautions(recall, past, *asks, states)
    assert states in found and len(found) == PRECAUTIONS_TOLD


async def test_a_dislike_of_something_else_than_food_warns_of_no_food(recall: Recall, past: Past) -> None:
    told = ("My sister hates to cook dinner for guests tonight.", "My brother hates crowds and planning meetings.")
    assert await precautions(recall, past, *told) == [told[0]]


async def test_in_a_full_window_precautions_come_but_not_those_that_a_block_told_lately(
    recall: Recall, past: Past
) -> None:
    warning = "I am allergic to walnuts in a cake."
    assert await precautions(recall, past, warning, told=None) == [warning]
    assert await precautions(recall, past, told=None, warned=frozenset(range(1000))) == []
    assert await precautions(recall, past, warned=None) == []


async def test_a_lasting_wish_comes_unasked_where_it_is_near_and_not_to_any_question(
    recall: Recall, past: Past
) -> None:
    wish = "Please always write emails to my colleagues without exclamation marks from now on."
    said = [wish, *TALK, "Nice weather.", "The train was late.", "A cup of tea.", "Rain again.", "Bread and cheese."]
    lost = frozenset(await past.say(*said))
    await past.index()
    near = await recall.recall(ask("Draft emails to my colleagues about the meeting.", lost, wishes=3), 10)
    far = await recall.recall(ask("Was the train late?", lost, wishes=3), 10)
    assert texts(near)[0] == wish and wish not in texts(far)
    quoted = (f"A page that a tool read says: {wish} And more.",)
    near = await recall.recall(ask("Draft emails to my colleagues about the meeting.", lost, wishes=3, seen=quoted), 10)
    assert texts(near)[0] == wish, "who quotes it cannot keep it away"


RULE = "Never push to main."
MIDDLING = [
    f"Always use the {name} client here. {'It is what all of us are used to by now. ' * 5}" for name in ("x1", "y2")
]


NAMES = ("ada", "bob", "cleo", "dan", "eve", "finn", "gus", "hal", "iris", "joe", "kim")
MANY_RULES = [f"Always use the {name} client for the nightly {name} export." for name in NAMES]


@pytest.mark.parametrize(
    ("rules", "told", "expected"),
    [
        ([RULE], (), [RULE]),
        ([RULE, "Always answer in German."], (), [RULE, "Always answer in German."]),
        (["Always answer in German.", "Always answer in French."], (), ["Always answer in French."]),
        ([RULE], None, []),
        ([RULE], (f"<palimpsest-memory>\nuser: {RULE}\n</palimpsest-memory>",), []),
        (MANY_RULES, (), MANY_RULES[-6:]),
        ([RULE, "Always use pnpm for this, as yarn has broken the build here again and again. " * 5], (), [RULE]),
        ([RULE, MIDDLING[0], MIDDLING[1]], (), [RULE, MIDDLING[1]]),
    ],
    ids=[
        "alone",
        "two",
        "replaced by a later one",
        "not wanted",
        "told in a block",
        "the newest of many",
        "a long one",
        "what still fits",
    ],
)
async def test_the_newest_lost_rules_that_always_hold_come_to_any_question(
    recall: Recall, past: Past, rules: list[str], told: tuple[str, ...] | None, expected: list[str]
) -> None:
    turns = chain.from_iterable((rule, "Noted.") for rule in rules)
    lost = frozenset(await past.say(*turns, *TALK, "Nice weather.", "The train was late.", "Rain again."))
    await past.index()
    found = texts(await recall.recall(ask("What is a monad?", lost, told=told, least_help=1.0), 10))
    assert [text for text in found if text in rules] == expected


@pytest.mark.parametrize(
    ("newer", "is_seen", "comes"),
    [("Always answer in French.", True, False), ("Always answer in French.", False, True), ("Thanks.", True, True)],
    ids=["seen", "edited away", "no rule"],
)
async def test_a_rule_that_the_user_still_shows_takes_the_place_of_a_lost_one(
    recall: Recall, past: Past, newer: str, is_seen: bool, comes: bool
) -> None:
    rule = "Always answer in German."
    lost = frozenset((await past.say(rule, *TALK[1:], newer))[:-1])
    await past.index()
    seen = frozenset([print_of("acme", user(newer)).full] if is_seen else [])
    found = await recall.recall(ask("What is a monad?", lost, told=(), visible_fulls=seen, least_help=1.0), 10)
    assert (rule in texts(found)) is comes
    long = (f"{newer}\n{'That is how it is now. ' * 30}",)
    found = await recall.recall(ask("What is a monad?", lost, told=long if is_seen else (), least_help=1.0), 10)
    assert (rule in texts(found)) is comes, "however long the message is that replaces it"


HERE = "In this repo, never use emojis in a commit."
SHOP: dict[str, Any] = {"scope": "shop"}
FOLDER: dict[str, Any] = {"folder": 7}


@pytest.mark.parametrize(
    ("told_in", "asked_in", "request_text", "rules", "comes"),
    [
        ({}, {}, "commit this", [RULE_OF_COMMITS], [RULE_OF_COMMITS]),
        ({}, {}, "What is a monad?", [RULE_OF_COMMITS], []),
        ({}, {}, "Does the harvest festival in Lisbon begin with a commit?", [RULE_OF_COMMITS], []),
        ({}, {}, "commit this", [HERE], []),
        (SHOP, SHOP, "commit this", [HERE], [HERE]),
        (SHOP, SHOP, "What is a monad?", [RULE_OF_COMMITS], [RULE_OF_COMMITS]),
        (FOLDER, FOLDER, "commit this", [HERE], [HERE]),
        (FOLDER, FOLDER, "What is a monad?", [RULE_OF_COMMITS], [RULE_OF_COMMITS]),
        (FOLDER, {"folder": 8}, "What is a monad?", [RULE_OF_COMMITS], []),
        (FOLDER, {"folder": 8}, "commit this", [RULE_OF_COMMITS], [RULE_OF_COMMITS]),
        ({}, FOLDER, "What is a monad?", [RULE_OF_COMMITS], []),
    ],
    ids=[
        "about it",
        "of something else",
        "a word of it",
        "of another place",
        "of this place",
        "in the project of both",
        "of this folder",
        "in the folder of both",
        "in another folder",
        "about it in another folder",
        "told in none",
    ],
)
async def test_a_rule_told_in_another_conversation_comes_to_a_request_that_is_about_it_and_in_its_project_to_any(
    recall: Recall,
    past: Past,
    told_in: dict[str, Any],
    asked_in: dict[str, Any],
    request_text: str,
    rules: list[str],
    comes: list[str],
) -> None:
    elsewhere = chain.from_iterable((rule, "Noted.") for rule in rules)
    await past.say(*elsewhere, *TALK, "Commit and push.", "Done.", conversation="c-0", user="ann", **told_in)
    await past.say("Hello", "Hello!", user="ann", **asked_in)
    await past.index()
    query = ask(request_text, reach=Reach.USER, told=(), least_help=1.0, user="ann", **asked_in)
    assert texts(await recall.recall(query, 10)) == comes
    of_all = replace(query, reach=Reach.TENANT)
    is_told_by_folder = told_in == asked_in == FOLDER
    assert texts(await recall.recall(of_all, 10)) == (comes if is_told_by_folder else []), "it may be another user's"
    of_nobody = texts(await recall.recall(replace(of_all, user=""), 10))
    assert of_nobody == ([] if is_told_by_folder else comes), "what a named user told in a folder is told to no other"


TOLD_OF_PROJECT = (
    "Postgres has room for two hundred, so raise the pool to eighty, but do not restart pgbouncer, reload it."
)


@pytest.mark.parametrize(
    ("told_in", "asked_in", "comes"),
    [
        (FOLDER, FOLDER, True),
        (FOLDER, {"folder": 8}, False),
        (FOLDER, {"folder": 0}, False),
        (FOLDER, {"folder": None}, False),
        ({}, FOLDER, False),
        (FOLDER | {"role": Role.SUBAGENT}, FOLDER, False),
        (FOLDER, FOLDER | {"reach": Reach.CONVERSATION}, False),
        (FOLDER, FOLDER | {"scope": "shop"}, False),
        (FOLDER | {"user": "bob"}, FOLDER | {"user": "ann"}, False),
        (FOLDER | {"user": "ann"}, FOLDER, False),
        (FOLDER | {"user": "ann"}, FOLDER | {"user": "ann"}, True),
    ],
    ids=str,
)
async def test_what_a_user_told_of_a_project_comes_where_a_main_conversation_in_its_folder_begins(
    recall: Recall, past: Past, told_in: dict[str, Any], asked_in: dict[str, Any], comes: bool
) -> None:
    await past.say(TOLD_OF_PROJECT, "Done.", "Is it slow?", "No.", *TALK, conversation="c-0", **told_in)
    await past.index()
    await past.mark_users()
    of_query = {"conversation": "c-9", "reach": Reach.TENANT, "told": (), "least_help": 1.0}
    query = ask("What is a monad?", **{**of_query, **asked_in})
    assert texts(await recall.recall(query, 10)) == [TOLD_OF_PROJECT] * comes


async def test_what_was_told_of_a_project_comes_once_the_newest_first_and_in_limits(recall: Recall, past: Past) -> None:
    things = ("moss", "fern", "reed", "sage", "dill", "mint", "kale", "leek", "beet", "corn", "rice", "oats")
    told = [f"{thing}: not in {thing}-{at * 7}, {'of course ' * 9}" for at, thing in enumerate(things)]
    occurrences = await past.say(*chain(*((one, "Noted.") for one in told)), conversation="c-0", **FOLDER)
    await past.say("Hello", "Hello!", conversation="c-9", **FOLDER)
    await past.index()
    await past.mark_users()
    query = ask("What is a monad?", conversation="c-9", reach=Reach.TENANT, told=(), least_help=1.0, folder=0)
    first = texts(await recall.recall(query, 20))  # the folder is the one that the conversation named before
    assert first == told[-len(first) :] and sum(map(len, first)) <= NOTES_CHARS < sum(map(len, first)) + len(told[0])
    later = replace(query, excluded=frozenset(occurrences[-2:]))
    assert texts(await recall.recall(later, 20)) == []


async def test_notes_of_a_project_come_again_with_a_question_behind_a_compaction_unless_a_block_still_tells_them(
    recall: Recall, past: Past
) -> None:
    told = "Do not touch lib/legacy.php, accounting reads it."
    occurrences = await past.say(told, "Noted.", conversation="c-0", **FOLDER)
    lost = frozenset(await past.say("Hello", "Hello!", *TALK, conversation="c-9", **FOLDER))
    await past.index()
    await past.mark_users()
    behind = ask("What is a monad?", lost, conversation="c-9", reach=Reach.TENANT, told=(), least_help=1.0, folder=7)
    assert texts(await recall.recall(behind, 20)) == [told]
    still_told = replace(behind, excluded=frozenset(occurrences[:1]))
    assert texts(await recall.recall(still_told, 20)) == []


async def test_a_note_comes_with_what_changed_it_and_what_forbids_before_all_others(recall: Recall, past: Past) -> None:
    old = "The fee of a collection is 4.50, and leave lib/invoice.py alone."
    new = "The fee of a collection is 5.25 from April on."
    later = [f"We keep the {thing} in the {'long ' * 15}{thing} table." for thing in ("rows", "logs", "keys", "runs")]
    said = (old, new, *later, *later)
    await past.say(*chain(*((one, "Noted.") for one in said)), conversation="c-0", **FOLDER)
    await past.say("Hello", "Hello!", conversation="c-9", **FOLDER)
    await past.index()
    await past.mark_users()
    query = ask("What is a monad?", conversation="c-9", reach=Reach.TENANT, told=(), least_help=1.0, folder=0)
    found = texts(await recall.recall(query, 20))
    assert found[:2] == [old, new] and sum(map(len, found)) <= NOTES_CHARS


async def test_of_the_rules_of_a_project_so_many_are_told_in_all_and_those_that_were_lost_here_first(
    recall: Recall, past: Past
) -> None:
    more = {"user": "ann", "scope": "shop"}
    lost = frozenset(await past.say("Never push to main.", "Noted.", "So.", "Yes.", **more))
    others = await past.say(*chain(*((rule, "Noted.") for rule in MANY_RULES)), conversation="c-0", **more)
    await past.index()
    query = ask("What is a monad?", lost, reach=Reach.USER, told=(), least_help=1.0, **more)
    first = await recall.recall(query, 20)
    assert texts(first) == ["Never push to main.", *MANY_RULES[-len(first.candidates) + 1 :]]
    told = frozenset(one.memory.occurrence for one in first.candidates)
    assert told & set(others)
    later = await recall.recall(replace(query, excluded=told), 20)
    assert sum(map(len, texts(first) + texts(later))) <= STANDING_CHARS


ASK_FIRST = "please ask Jana before you touch anything under deploy"
SIGNED = "Sign it Tina Brandt, Brandt & Sons, Unit 4, Kirkstall Mills. Always"


async def test_a_sure_wish_is_told_without_a_lasting_word_and_who_asks_for_a_text_gets_those_about_form_first(
    recall: Recall, past: Past
) -> None:
    assert rules([(1, ASK_FIRST)], "") == ()
    said = (*chain(*((one, "Noted.") for one in (SIGNED, *MANY_RULES, ASK_FIRST))), *TALK, "Nice weather.")
    lost = frozenset(await past.say(*said))
    await past.index()
    monad = texts(await recall.recall(ask("What is a monad?", lost, told=(), least_help=1.0), 20))
    assert ASK_FIRST in monad and SIGNED not in monad
    notice = texts(
        await recall.recall(ask("Write a notice for the door.", lost, told=(), warned=frozenset(), least_help=1.0), 20)
    )
    assert SIGNED in notice


async def test_of_a_wish_comes_what_lasts_and_not_the_order_for_once_in_front_of_it(recall: Recall, past: Past) -> None:
    wish = "Never use emojis in my letters."
    lost = frozenset(await past.say(f"Write it. {wish}", "Done.", *TALK))
    await past.index()
    (found,) = (await recall.recall(ask("What is a monad?", lost, told=(), least_help=1.0), 10)).candidates
    assert (found.memory.text, found.memory.start) == (wish, len("Write it. "))
