"""Facts are told once, where the model does not see them, and told again only where they changed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from dataclasses import replace

import pytest
from palimpsest.core.block.fact_lines import stated_in_blocks, with_facts
from palimpsest.core.facts.choice import LAG_SECONDS, FactChoice, FactRequest, choose_facts
from palimpsest.domain import CurrentFact, CurrentFacts, Fact, FactCategory, Stated

from tests.core.facts.telling import SAID_AT, fact, standing

HOME = standing(fact("home", "Lisbon", occurrence=10), 1000)
DECISION = FactCategory.DECISION
PORT = fact("port", "5432", "project", FactCategory.SETTING, occurrence=11)


def said(
    *facts: CurrentFact,
    ended: Collection[CurrentFact] = (),
    since: float = 0.0,
    is_whole: bool = True,
    is_answered: bool = False,
    statements: Mapping[str, bool] | None = None,
    visible: Set[int] = frozenset(),
    quoted: Collection[int] = (),
    question: str = "",
    room_tokens: int = 1000,
    includes_all: bool = False,
) -> FactChoice:
    held = CurrentFacts(facts, tuple(one.fact for one in ended), since)
    request = FactRequest("c-now", is_whole, is_answered, statements or {}, visible, quoted, question, includes_all)
    return choose_facts(held, request, room_tokens, len)


def told_in(found: FactChoice) -> Mapping[str, bool]:
    return stated_in_blocks([with_facts(None, found.lines, found.sources).text])


def test_all_that_stand_are_told_once() -> None:
    found = said(HOME)
    assert found.lines == ("fact: user home: Lisbon (said 2026-05-02)\n",)
    assert found.sources == (("f-home-Lisbon", 10),) and found.reasons == ("standing",)
    again = said(HOME, statements=told_in(found))
    assert (again.lines, again.left_out) == ((), {"told before": 1})


def test_what_the_model_sees_is_not_told() -> None:
    assert said(HOME, visible={1000}).left_out == {"its message is in the request": 1}
    assert said(HOME, quoted=[10]).left_out == {"its message is quoted": 1}
    twice = standing(HOME.fact, 1000, 2000)  # said in two conversations: seeing one of them is enough
    assert said(twice, visible={2000}).lines == ()


def test_where_all_are_told_nothing_is_left_out_but_what_a_block_tells() -> None:
    port = standing(fact("port", "4711"), 1000)
    found = said(HOME, port, is_answered=True, visible={1000}, quoted=[10], includes_all=True)
    assert {*found.ids} == {HOME.fact.id, port.fact.id}
    assert said(HOME, statements=told_in(found), includes_all=True).left_out == {"told before": 1}


def test_later_only_what_is_new_is_told() -> None:
    new = standing(fact("pet", "Rex", said_at=SAID_AT + 1000))
    found = said(HOME, new, since=SAID_AT + 500, is_whole=False)
    assert found.reasons == ("new",) and "Rex" in found.lines[0]
    assert found.left_out == {"said before the facts were told": 1}


def test_fact_that_was_stored_a_little_late_is_still_new() -> None:
    assert said(HOME, since=SAID_AT + LAG_SECONDS - 1, is_whole=False).lines
    assert not said(HOME, since=SAID_AT + LAG_SECONDS + 1, is_whole=False).lines


def test_what_this_conversation_says_and_no_longer_shows_waits_for_the_next_compaction() -> None:
    own = fact("pet", "Rex", occurrence=12)
    own = replace(own, source=replace(own.source, conversation="c-now"))
    assert said(standing(own, 7), is_whole=False).left_out == {"said in this conversation": 1}
    assert said(standing(own, 7)).lines


def test_value_that_changed_is_told_with_the_one_before() -> None:
    before = told_in(said(HOME))
    lisbon = Stated("f-home-Lisbon", "Lisbon", 10)
    found = said(
        standing(fact("home", "Graz"), earlier=(lisbon,)), since=SAID_AT + 1e6, is_whole=False, statements=before
    )
    assert found.lines == ("fact: user home: Graz (said 2026-05-02, was Lisbon)\n",)
    assert found.reasons == ("changed",) and found.sources == (("f-home-Graz", 0), ("f-home-Lisbon", 10))


def test_value_of_before_that_is_erased_is_not_named() -> None:
    before = told_in(said(HOME))
    found = said(standing(fact("home", "Graz")), is_whole=False, statements=before)
    assert found.lines == ("fact: user home: Graz (said 2026-05-02)\n",) and found.reasons == ("changed",)


def test_value_that_overrules_a_message_in_the_request_is_told() -> None:
    moved = standing(fact("port", "5433", "project", FactCategory.SETTING), 2, earlier=(Stated("f", "5432", 9, 1),))
    found = said(moved, visible={1}, since=SAID_AT + 1e6, is_whole=False)
    assert found.lines == ("fact: port: 5433 (said 2026-05-02, was 5432)\n",)


def test_value_that_came_back_is_told_again() -> None:
    home, moved = fact("home", "Lisbon"), fact("home", "Graz")
    blocks = [with_facts(None, said(standing(one)).lines, ()).text for one in (home, moved)]
    graz = Stated("f-home-Graz", "Graz")
    assert said(standing(home, earlier=(graz,)), statements=stated_in_blocks(blocks)).lines == (
        "fact: user home: Lisbon (said 2026-05-02, was Graz)\n",
    )


def test_values_that_stand_beside_each_other_do_not_overrule() -> None:
    nuts, milk = (standing(fact("allergic to", value, is_single=False)) for value in ("nuts", "milk"))
    before = told_in(said(nuts))
    assert said(nuts, milk, statements=before).lines == ("fact: user allergic to: milk (said 2026-05-02)\n",)


def test_told_fact_that_is_over_no_longer_holds() -> None:
    before = told_in(said(HOME))
    found = said(ended=[HOME], is_whole=False, statements=before)
    assert found.lines == ("fact: user home: Lisbon (no longer holds)\n",)
    both = stated_in_blocks([with_facts(None, said(HOME).lines, ()).text, with_facts(None, found.lines, ()).text])
    assert said(ended=[HOME], statements=both).lines == ()
    assert said(ended=[HOME]).lines == ()  # nobody was told
    assert said(standing(fact("home", "Graz")), ended=[HOME], statements=before).reasons == ("changed",)


def test_pinned_ones_come_first_then_wishes_then_what_is_asked_for_then_the_rest() -> None:
    facts = [
        standing(fact("home", "Graz")),
        standing(fact("employer", "Acme")),
        standing(fact("always", "answer in German", "project", FactCategory.INSTRUCTION)),
        standing(fact("port", "5432", "project", FactCategory.SETTING, is_pinned=True)),
    ]
    found = said(*facts, question="Who is my employer?")
    assert [id.split("-")[1] for id in found.ids] == ["port", "always", "employer", "home"]


@pytest.mark.parametrize("one", [PORT, fact("name", "Rex", "dog"), fact("decided", "Flask", category=DECISION)])
def test_setting_decision_or_name_of_another_is_told_only_where_it_is_asked_for_or_pinned(one: Fact) -> None:
    assert said(standing(one)).left_out == {"nobody asks for it": 1}
    assert said(standing(one), question="What is the name?").lines == ()  # of what?
    assert said(standing(one), question=f"What was it with the {one.subject} {one.value}?").lines
    assert said(standing(replace(one, is_pinned=True))).lines


def test_beside_an_answer_only_what_is_near_to_the_question_is_told() -> None:
    wish = standing(fact("always", "answer in German", "project", FactCategory.INSTRUCTION))
    found = said(HOME, wish, is_answered=True, question="What did I say of Lisbon?")
    assert found.ids == ("f-home-Lisbon",) and found.left_out == {"the question is answered without it": 1}


def test_decisions_are_told_in_the_project_that_the_request_names() -> None:
    decided = fact("decided", "Flask", "project", DECISION)
    assert said(standing(replace(decided, scope="shop"))).lines


@pytest.mark.parametrize("room", [0, 50, 100, 200])
def test_facts_keep_within_their_tokens(room: int) -> None:
    facts = [standing(fact(f"slot {at}", "x" * at)) for at in range(20)]
    found = said(*facts, room_tokens=room)
    assert sum(map(len, found.lines)) <= room
    assert len(found.lines) + found.left_out.get("no room left", 0) == 20
