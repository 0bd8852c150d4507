"""Which passages may come: each message once, and those among wanted ones."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
from palimpsest.domain import Query, Reach
from palimpsest.memory.recall.eligibility import (
    REPEAT_SECONDS,
    among,
    first_of_equals,
    repeats,
    repeats_order,
    without_rejected,
)
from palimpsest.memory.recall.recall import Recall

from tests.core.passage_tables import NOW, passage_table
from tests.memory.recall.asking import LEAST_HELP, PORT, TALK, ask, texts
from tests.remembered import Past


def test_of_what_is_said_again_and_again_the_first_is_chosen_and_then_what_else_there_is() -> None:
    table = passage_table(["again"] * 50 + ["something else", "yet another thing"])
    same = replace(table, fulls=np.array([7] * 50 + [8, 9]))
    assert first_of_equals(same, np.arange(52), 3).tolist() == [0, 50, 51]
    assert first_of_equals(same, np.arange(52)[::-1], 2).tolist() == [0, 1]


def test_wanted_values_are_found_among_many_whatever_bits_they_end_in() -> None:
    values = np.random.default_rng(0).integers(-(2**62), 2**62, 5000)
    wanted = [*values[::50].tolist(), int(values[1]) ^ (1 << 40), 7]
    assert among(values, wanted).tolist() == np.isin(values, wanted).tolist()


def test_the_answer_to_a_first_message_that_is_sent_again_is_left_out_unless_its_user_went_on_or_it_is_old() -> None:
    said = ["Which hotel?", "The Alecrim."]
    table = passage_table(
        [*said, *said, "I take it.", *said, "Of Lisbon.", *said],
        conversations=[1, 1, 2, 2, 2, 3, 3, 4, 4, 4],
        users=[0, 2, 4, 5, 7, 8],
        created_at=[NOW] * 5 + [NOW - REPEAT_SECONDS] * 2 + [NOW] * 3,
    )
    table = replace(table, fulls=np.array([7, 8, 7, 8, 9, 7, 8, 6, 7, 8]))
    query = Query("tenant", "c-5", "Which hotel?", visible_fulls=frozenset({7}))
    assert np.flatnonzero(~without_rejected(table, query, 5, NOW + 1)).tolist() == [1]
    assert without_rejected(table, query, 1, NOW + 1).all(), "its own conversation knows which branch it is"


def test_of_lone_answers_to_a_first_message_that_was_soon_sent_again_only_the_last_comes_later() -> None:
    said = ["Which hotel?", "The Alecrim."]
    table = passage_table(
        [*said, *said, *said, "I take it.", *said, "It has rooms.", *said],
        conversations=[1, 1, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5],
        users=[0, 2, 4, 6, 7, 10],
        created_at=[NOW - 2 * REPEAT_SECONDS] * 2 + [NOW - 30] * 2 + [NOW - 20] * 3 + [NOW - 10] * 3 + [NOW] * 2,
    )
    table = replace(table, fulls=np.array([7, 8, 7, 8, 7, 8, 9, 7, 8, 6, 7, 8]))
    query = Query("tenant", "c-6", "What is the hotel called?")
    assert np.flatnonzero(~without_rejected(table, query, 6, NOW + REPEAT_SECONDS)).tolist() == [3]
    again = replace(query, visible_fulls=frozenset({7}))
    assert np.flatnonzero(~without_rejected(table, again, 6, NOW + 1)).tolist() == [3, 8, 9, 11]


DEPLOY = "Give me the command to deploy."


@pytest.mark.parametrize(
    ("text", "request_text"),
    [
        (DEPLOY, "Please: give me the command to deploy."),
        (DEPLOY, "Give me the command to deploy, thanks!"),
        ("When does the shop launch?", "When does the shop launch? Thanks."),
        ("When does it launch?", "When does the new shop launch, and where does it?"),
        ("Schreib die Zeile für den Port.", "Schreib die Zeile für den Port, danke."),
    ],
)
def test_who_makes_the_same_request_less_politely_only_repeats_it(text: str, request_text: str) -> None:
    assert repeats(text, request_text)


@pytest.mark.parametrize(
    ("text", "request_text"),
    [
        ("We use Redis.", "Do we use Redis?"),
        ("Allergic to cashews.", "Tell me whether I am allergic to cashews."),
        ("Deploy to staging first.", "Deploy to staging."),
        ("Do not deploy to staging.", "Deploy to staging."),
        ("Never deploy to staging.", "Deploy to staging."),
        ("We use Redis for the cache.", "Use Redis for the cache."),
        ("Size 43.5", "Do I wear size 43.5 or 44?"),
        ("Port 5433", "Port 5432"),
        ("Give me the command to deploy, it is ship.sh now.", DEPLOY),
        ("When does the shop launch? On 3 March?", "When does the shop launch?"),
        ("The port is 9240.", "Write the line for the port."),
    ],
)
def test_what_states_forbids_or_adds_anything_does_not_repeat_a_request(text: str, request_text: str) -> None:
    assert not repeats(text, request_text)


@pytest.mark.parametrize(
    ("text", "request_text", "is_repeated"),
    [
        ("ok. run the tests", "run the tests", True),
        ("run the tests with two workers", "run the tests", False),
        ("deploy from the release branch by hand", "deploy the release", False),
    ],
)
def test_an_order_with_more_words_tells_how_it_is_done(text: str, request_text: str, is_repeated: bool) -> None:
    assert repeats_order(text, request_text) == is_repeated


async def test_an_earlier_copy_of_a_request_does_not_take_the_place_of_what_answers_it(
    recall: Recall, past: Past
) -> None:
    request = "Write the line for the port of the dev database."
    said = await past.say(PORT, "Good.", *TALK, request, "Here it is.", *("So.", "Yes.") * 20)
    await past.index()
    await past.mark_users()
    recalled = await recall.recall(ask(f"{request} Thanks.", frozenset(said)), 10)
    assert texts(recalled)[0] == PORT and request not in texts(recalled)


async def test_of_requests_of_one_template_only_those_come_that_share_more_than_its_words(
    recall: Recall, past: Past
) -> None:
    told = "Proofread this sentence: The heron stands beside the weir."
    others = [f"Proofread this sentence: The {thing} is broken again." for thing in ("lamp", "kettle", "radio")]
    lost = frozenset(await past.say(*chain.from_iterable((one, "Done.") for one in (told, *others))))
    await past.index()
    await past.mark_users()
    asked = ask("Proofread this sentence: A heron has built a nest.", lost)
    assert texts(await recall.recall(asked, 10)) == [told]
    assert texts(await recall.recall(ask("Proofread this sentence: My uncle sings.", lost), 10)) == []


@pytest.mark.parametrize("conversation", ["c-1", "c-2"])
async def test_to_an_order_come_no_orders_and_mere_reports_but_what_lasts(
    recall: Recall, past: Past, conversation: str
) -> None:
    order, report, target = "run the deploy again", "Deploy passes.", "Deploy target is eu-west-1"
    await past.say(order, report, "And where?", target, *TALK, conversation=conversation)
    await past.index()
    await past.mark_users()
    found = texts(await recall.recall(ask("ok. run the deploy", reach=Reach.TENANT), 10))
    assert target in found and not {order, report} & {*found}
    told = "The deploy fails only with two workers."
    await past.say("And again?", told, *TALK, conversation="c-1")
    await past.index()
    assert told in texts(await recall.recall(ask("ok. run the deploy"), 10))
    assert report in texts(await recall.recall(ask("Did the deploy pass?", reach=Reach.TENANT), 10))


async def test_what_was_noted_under_a_title_comes_to_a_question_under_it(recall: Recall, past: Past) -> None:
    notes = [
        f"Trip to Lisbon: {note}." for note in ("the hotel is Casa Azul", "the flight leaves at 7:15", "Clara pays")
    ]
    lost = frozenset(await past.say(*chain.from_iterable((one, "Noted.") for one in notes)))
    await past.index()
    await past.mark_users()
    found = texts(await recall.recall(ask("Trip to Lisbon: where do we sleep?", lost, least_help=LEAST_HELP), 10))
    assert notes[0] in found


async def test_what_a_user_forbade_or_told_comes_to_a_request_for_it_or_a_search_with_the_same_words(
    recall: Recall, past: Past
) -> None:
    ban, statement = "Never deploy to staging on Fridays.", "My sister Clara is allergic to cashews."
    said = await past.say(ban, "Good.", statement, "Good.", *TALK, *("So.", "Yes.") * 20)
    await past.index()
    await past.mark_users()
    assert ban in texts(await recall.recall(ask("Deploy to staging on Fridays.", frozenset(said)), 10))
    assert statement in texts(await recall.recall(ask(statement, frozenset(said)), 10))
