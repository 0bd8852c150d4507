from __future__ import annotations

from dataclasses import replace
from itertools import chain

import pytest
from palimpsest.domain import Json, Reach
from palimpsest.memory.recall.recall import Recall

from tests.memory.recall.asking import PORT, TALK, ask, texts
from tests.remembered import Past
from tests.talking import record, user


async def test_what_a_request_calls_the_users_own_comes_with_what_shares_its_name_where_the_gate_is_shut(
    recall: Recall, past: Past
) -> None:
    told = ("My daughter is called Mila, she just started school.", "Mila has a peanut allergy, we cook without.")
    said = await past.say(*chain.from_iterable((one, "I will keep that in mind.") for one in (*told, TALK[0])))
    await past.index()
    await past.mark_users()
    thai, anybodys = "What Thai dish could I cook for my daughter?", "What Thai dish could anybody cook for dinner?"
    query = ask(thai, frozenset(said), least_help=1.0)
    mine, others = await recall.recall(query, 10), await recall.recall(replace(query, text=anybodys), 10)
    assert texts(mine) == [*told] and mine.reason.endswith("a thing that the request takes as known is added")
    assert texts(others) == []


async def test_what_was_told_of_the_name_that_least_was_told_of_comes_first(recall: Recall, past: Past) -> None:
    told = ("We met Maud in May.", "We saw Maud in June.", "My groom is called Bastien, he is a vet.", TALK[0])
    said = await past.say(*chain.from_iterable((one, "I will keep that in mind.") for one in told))
    await past.index()
    await past.mark_users()
    query = ask("Seat Maud beside Bastien.", frozenset(said), least_help=1.0)
    found = texts(await recall.recall(query, 10))
    assert found[0] == told[2]


async def test_what_the_user_told_of_a_relative_by_another_name_comes_where_the_gate_is_shut(
    recall: Recall, past: Past
) -> None:
    said = await past.say("Dad's pacemaker was fitted in 2019.", "I will keep that in mind.", TALK[0], "Nice.")
    await past.index()
    await past.mark_users()
    query = ask("Could my father go through the metal detector?", frozenset(said), least_help=1.0)
    assert texts(await recall.recall(query, 10)) == ["Dad's pacemaker was fitted in 2019."]
    assert texts(await recall.recall(replace(query, text="Could my aunt go through the metal detector?"), 10)) == []


MOVED = "We moved our dev database from port 5432 to 5433 on the machine heron."


async def test_with_a_statement_comes_what_the_user_said_later_about_the_same_thing(recall: Recall, past: Past) -> None:
    said = frozenset(await past.say(PORT, "Good.", *TALK, MOVED, "Good.", *(f"The weather is {n}." for n in range(30))))
    await past.index()
    await past.mark_users()
    recalled = await recall.recall(ask("On which machine is the Postgres database?", said), 10)
    told = texts(recalled)
    assert told[:2] == [PORT, MOVED]
    statement, update = recalled.candidates[:2]
    assert update.probability == statement.probability and update.signals["update"][1] > 0


async def test_a_change_comes_with_what_it_changes_though_the_message_orders_something_too(
    recall: Recall, past: Past
) -> None:
    moved = "Can you write Ann that the port of Postgres on heron changed"
    said = frozenset(await past.say(PORT, "Good.", *TALK, moved, "Good.", *(f"The weather is {n}." for n in range(30))))
    await past.index()
    await past.mark_users()
    statement, update = (await recall.recall(ask("Where is the dev database?", said), 10)).candidates[:2]
    assert (statement.memory.text, update.memory.text) == (PORT, moved) and update.signals["update"][1] > 0


async def test_each_clause_of_a_statement_comes_with_what_changes_it(recall: Recall, past: Past) -> None:
    stated = "The database listens on port 5432, Jonas reviews merge requests, and the nightly backup runs at three."
    port = "Write the team: the database listens on port 5433 from monday, everything else stays, tell them"
    backup = "Can you note that the nightly backup runs at five from now on, the old disk was too slow"
    others = (f"The weather is {n}." for n in range(30))
    said = frozenset(await past.say(stated, "Good.", *TALK, port, "Good.", backup, "Good.", *others))
    await past.index()
    await past.mark_users()
    told = (await recall.recall(ask("Who reviews merge requests?", said), 10)).candidates[:3]
    assert [one.memory.text for one in told] == [stated, port, backup]
    assert all(one.signals["update"][1] > 0 for one in told[1:])


@pytest.mark.parametrize("how", ["quoted by a visible text", "told by an earlier block"])
async def test_an_update_comes_with_what_it_updates_though_it_was_told_before(
    recall: Recall, past: Past, how: str
) -> None:
    said = await past.say(PORT, "Good.", *TALK, MOVED, "Good.", *(f"The weather is {n}." for n in range(30)))
    await past.index()
    await past.mark_users()
    seen = {"seen": (f"decided: {MOVED}",)} if how.startswith("quoted") else {"excluded": {said[2 + len(TALK)]}}
    for question in ("On which machine is the Postgres database?", "To which port did we move our dev database?"):
        recalled = await recall.recall(ask(question, frozenset(said), **seen), 10)
        assert MOVED in texts(recalled) or PORT not in texts(recalled)
    asked = ask("On which machine is the Postgres database?", frozenset(said), **seen)
    assert texts(await recall.recall(asked, 10))[:2] == [PORT, MOVED]


async def test_with_an_answer_comes_what_the_user_said_since_then_about_the_same_thing(
    recall: Recall, past: Past
) -> None:
    answer = "The dev database is Postgres on port 5432."
    which = "Which port has the dev database Postgres?"
    said = await past.say(which, answer, *TALK, MOVED, "Good.", *(f"The weather is {n}." for n in range(30)))
    await past.index()
    await past.mark_users()
    recalled = await recall.recall(ask(f"{which} Thanks.", frozenset(said)), 10)
    assert texts(recalled)[:2] == [answer, MOVED] and which not in texts(recalled)
    stale, update = recalled.candidates[:2]
    assert update.probability == stale.probability and update.signals["update"][1] > 0


@pytest.mark.parametrize(
    "reply", ["No, that's wrong.", "You're wrong, look.", "That is incorrect.", "Nein, schau nochmal."]
)
async def test_with_an_answer_comes_that_its_user_rejected_it(recall: Recall, past: Past, reply: str) -> None:
    answer = "The dev database is Postgres on port 5432."
    await past.say("Which port?", answer, reply, "I see.", *TALK, conversation="c-2")
    others = ("No problem, thanks.", "No, thanks, that is all.", "No idea.", "Non-fiction is fine.")
    for number, other in enumerate(others):
        await past.say(f"And {number}?", answer.replace("dev", f"{number}."), other, conversation=f"c-{number + 3}")
    await past.index()
    await past.mark_users()
    recalled = await recall.recall(ask("Which port has the dev database Postgres?", reach=Reach.TENANT), 10)
    assert texts(recalled)[:2] == [answer, reply] and not {*others} & {*texts(recalled)[:6]}
    rejected, rejection = recalled.candidates[:2]
    assert rejection.probability == rejected.probability


async def test_with_a_brief_answer_comes_what_it_answers(recall: Recall, past: Past) -> None:
    lost = frozenset(await past.say("Ask the boatyard about the mast.", "Mahogany, varnished twice.", *TALK))
    await past.mark_users()
    await past.index()
    found = texts(await recall.recall(ask("Which varnished mahogany?", lost), 1))
    assert found == ["Mahogany, varnished twice.", "Ask the boatyard about the mast."]


async def test_with_a_task_comes_what_came_of_it(recall: Recall, past: Past) -> None:
    task, outcome = "deploy the worker to staging", "It runs on stg-2.internal now."
    said = frozenset(await past.say(*TALK, task, outcome, *("So.", "Yes.") * 20))
    await past.index()
    await past.mark_users()
    recalled = await recall.recall(ask("Where in staging does the worker deploy?", said), 10)
    assert texts(recalled)[:2] == [task, outcome]
    assert recalled.candidates[0].probability == recalled.candidates[1].probability


async def test_with_a_request_that_is_asked_back_comes_its_answer_and_of_a_long_one_the_part_that_is_asked_for(
    recall: Recall, past: Past
) -> None:
    wanted = "Write me a plan for the opening week of the bakery, with music."
    answer = "On Monday we hang posters near the tram stops, and we talk to the drivers. " * 14
    answer += "On Sunday five men play music on trumpets and drums in front of the door. " * 10
    said = frozenset(await past.say(*TALK, wanted, answer, *("So.", "Yes.") * 20))
    await past.index()
    await past.mark_users()
    asks = "Which music do you suggest for the opening week of the bakery?"
    recalled = await recall.recall(ask(asks.replace("do", "did", 1), said), 10)
    first, second = recalled.candidates[:2]
    assert first.memory.text == wanted and second.memory.text.endswith("in front of the door. ")
    assert second.probability >= first.probability
    plain = await recall.recall(ask(asks, said), 10)
    assert plain.candidates[0].memory.text == wanted and plain.helps < recalled.helps


@pytest.mark.parametrize(
    ("remark", "comes"), [("no! next time migrate first", True), ("Thanks, that was quick.", False)]
)
async def test_with_what_came_of_a_task_comes_how_its_user_corrected_it(
    recall: Recall, past: Past, remark: str, comes: bool
) -> None:
    task, outcome = "deploy the worker to staging", "It runs on stg-2, I migrated afterwards."
    said = frozenset(await past.say(*TALK, task, outcome, remark, "Good.", *("So.", "Yes.") * 20))
    await past.index()
    await past.mark_users()
    found = texts(await recall.recall(ask("Where in staging does the worker deploy?", said), 10))
    assert found[:2] == [task, outcome] and (found[2] == remark) is comes


async def test_a_question_is_no_outcome_of_a_task_but_a_report_that_also_asks_is(recall: Recall, past: Past) -> None:
    task, asking = "deploy the worker to staging", "The vpn is off. Shall I wait?"
    other, report = "deploy the importer to staging", "The importer runs on stg-2 as v1.4.2. Shall I commit?"
    said = frozenset(await past.say(*TALK, task, asking, "Yes.", "Good.", other, report, *("So.", "Yes.") * 20))
    await past.index()
    await past.mark_users()
    found = texts(await recall.recall(ask("Where in staging do the worker and the importer deploy?", said), 10))
    assert asking not in found and found[found.index(other) + 1] == report


@pytest.mark.parametrize(
    ("with_whom", "comes"), [("The deadline is for Henk.", True), ("Sadly the keys are old.", False)]
)
async def test_a_word_that_opens_a_statement_leads_to_others_that_have_it_inside_of_a_sentence(
    recall: Recall, past: Past, with_whom: str, comes: bool
) -> None:
    said = await past.say(
        with_whom, "Noted.", *TALK, "The deadline is near. Henk moved the deadline of the thesis to Friday.", "Good."
    )
    await past.index()
    await past.mark_users()
    found = texts(await recall.recall(ask("When is the thesis due, which deadline?", frozenset(said)), 10))
    assert (with_whom in found[:2]) is comes


async def test_what_a_tool_returned_is_not_told_as_what_came_of_a_task(recall: Recall, past: Past) -> None:
    task, result = "deploy the worker to staging", "CrashLoopBackOff worker-77"
    listed = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "kubectl get"}'}}
    asked: list[Json] = [user(task), {"role": "assistant", "content": None, "tool_calls": [listed]}]
    asked.append({"role": "tool", "tool_call_id": "c1", "content": result})
    await past.journal.write([record(asked, conversation="c-1")])
    said = frozenset(await past.say(*TALK, *("So.", "Yes.") * 20, conversation="c-2"))
    await past.index()
    await past.mark_users()
    everything = said | frozenset(range(1, 4))
    recalled = await recall.recall(ask("Where in staging does the worker deploy?", everything), 10)
    best = recalled.candidates[0]
    assert best.memory.text == task
    assert all(one.probability < best.probability for one in recalled.candidates if one.memory.text == result)


async def test_what_was_said_before_a_statement_or_about_something_else_does_not_come_with_it(
    recall: Recall, past: Past
) -> None:
    said = frozenset(await past.say(PORT, "Good.", *TALK, MOVED, "Good."))
    await past.index()
    await past.mark_users()
    recalled = await recall.recall(ask("Why was the dev database moved to 5433?", said), 10)
    assert texts(recalled)[0] == MOVED  # which updates what was said before, if that comes for itself
    assert not any(candidate.signals.get("update", (0, 0.0))[1] for candidate in recalled.candidates[1:])


async def test_an_order_with_another_number_of_the_same_thing_comes_with_a_statement(
    recall: Recall, past: Past
) -> None:
    offer = "The offer for the Hartwell hotel is 14 dining chairs at 85 a chair."
    later = "The Hartwell hotel now wants 16 dining chairs, not 14. New total?"
    said = await past.say(offer, "Good.", *TALK, later, "1,360.", *(f"The weather is {n}." for n in range(30)))
    await past.index()
    await past.mark_users()
    found = texts(await recall.recall(ask("Which hotel did the offer go to, at 85?", frozenset(said)), 10))
    assert found[:2] == [offer, later]


@pytest.mark.parametrize(
    ("told", "comes"),
    [("The new groomer Callum has a driving licence.", True), ("The new groomer callum has a driving licence.", False)],
)
async def test_a_name_in_lower_case_is_one_where_a_stored_text_has_its_capital(
    recall: Recall, past: Past, told: str, comes: bool
) -> None:
    said = await past.say(told, "Good.", *TALK)
    await past.index()
    await past.mark_users()
    query = ask("can callum drive the van?", frozenset(said), least_help=1.0)
    assert (texts(await recall.recall(query, 10)) == [told]) is comes
