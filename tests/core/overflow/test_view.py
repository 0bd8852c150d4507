"""What the model gets of a conversation that has outgrown its window: the same at each request, until the next cut."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from palimpsest.core.decision import Decision
from palimpsest.domain import BlockKind, Candidate, Event, Json, Memory, Query, Recalled, Trim
from palimpsest.evaluation.scripted.rules import violations
from palimpsest.settings.policy import Policy

from tests.core.driving import Client, Core, Journal, Lookup, calling, prose, rules_of, tool, user
from tests.examples import examples
from tests.overflowing import CHAT

WINDOW_TOKENS = 2500


@pytest.fixture
def core() -> Core:
    return trimming()


def trimming(policy: str = "trim") -> Core:
    return Core(rules_of(Policy(overflow=policy)), window_tokens=WINDOW_TOKENS)  # type: ignore[arg-type]


def sent(decision: Decision) -> Sequence[Json]:
    listed: Sequence[Json] = decision.sent.chat.raw["messages"]
    return listed


def grown(core: Core, turns: int = 36) -> Client:
    """A client whose conversation has been cut; each message has some 100 tokens."""
    client = Client(core)
    for turn in range(turns):
        client.ask(f"{turn}: {prose(60, turn)}", prose(60, (turn, "answer")))
    return client


def test_each_request_repeats_the_one_before_but_for_a_cut(core: Core) -> None:
    grown(core)
    cuts = 0
    for before, after in pairwise(core.decisions):
        if after.view is not None and after.view.first_new >= 0:
            cuts += 1
        else:
            assert sent(after)[: len(sent(before))] == sent(before)
        assert violations(CHAT, after.sent.chat.raw) == []
        assert after.own_tokens < WINDOW_TOKENS
    assert 2 < cuts < len(core.decisions) / 4


def test_new_cut_counts_as_a_truncation_and_is_restored(core: Core) -> None:
    grown(core)
    for decision in core.decisions:
        view = decision.view
        if view is not None and view.first_new >= 0:
            assert decision.diagnosis.lineage.event is Event.TRUNCATE and decision.diagnosis.kind is BlockKind.RESTORE
            assert decision.lineage.event is Event.APPEND, "the client itself has changed nothing"
            query = decision.diagnosis.query
            assert query is not None and query.lost and view.trimmed_tokens > 0


class Recalling(Journal):
    """A journal that answers each question with a passage of its own, while it `finds` any."""

    finds: bool = True

    def answer(self, asked: Lookup) -> object:
        if not isinstance(asked, Query) or not self.finds:
            return super().answer(asked)
        number = 10_000 + self.turns
        memory = Memory(number, number, asked.conversation, 1, "user", prose(80, number), 1.7e9)
        return Recalled((Candidate(memory, 1.0),), True, "found")


@pytest.mark.repeats
@pytest.mark.parametrize("finds", [True, False])
def test_blocks_stay_until_a_cut_brings_something_in_their_place(core: Core, finds: bool) -> None:
    core.journal = Recalling()
    client = Client(core)
    for turn in range(60):
        core.journal.finds = finds or turn < 24
        client.ask(f"{turn}: What about {prose(60, turn)}?", prose(60, (turn, "answer")))
    cuts = 0
    for before, after in pairwise(core.decisions):
        stood = {one.text for one in before.insertions}
        stays = stood <= {one.text for one in after.insertions}
        assert after.own_tokens + after.added.tokens < WINDOW_TOKENS
        if after.view is not None and after.view.first_new >= 0:
            cuts += 1
            assert len(after.insertions) == 1 if after.block else not after.drops_blocks
        elif before.view is not None:
            assert stays and not after.drops_blocks
    assert cuts > 2


def test_what_is_left_out_may_come_back_and_what_is_seen_may_not(core: Core) -> None:
    client = grown(core)
    client.ask("Which of them was the first that I told you about the harbor?")
    query = next(asked for asked in core.asked if isinstance(asked, Query))
    decision = core.decisions[-1]
    assert decision.view is not None and query.lost is not None
    left_out = [decision.reading.prints[at].full for at in decision.view.omission.drops]
    assert query.visible_fulls.isdisjoint(left_out) and len(query.lost) == len(left_out)


def test_edited_question_keeps_the_cut(core: Core) -> None:
    client = grown(core)
    before = core.decisions[-1]
    del client.messages[-2:]
    client.ask("Something else instead, please.")
    after = core.decisions[-1]
    assert after.view is not None and before.view is not None
    assert after.view.omission.drops == before.view.omission.drops


@pytest.mark.repeats
@pytest.mark.parametrize("asked", [4, 8, 12, 20])
def test_edit_above_a_cut_makes_it_anew_where_it_would_leave_too_little(core: Core, asked: int) -> None:
    client = grown(core)
    del client.messages[1 + 2 * asked :]
    client.ask("Something else instead, please.")
    edited = core.decisions[-1]
    assert WINDOW_TOKENS / 4 < edited.own_tokens < WINDOW_TOKENS and edited.lineage.event is Event.EDIT
    assert edited.view is None or edited.view.first_new >= 0
    client.ask("And now?")
    after = core.decisions[-1]
    assert sent(after)[: len(sent(edited))] == sent(edited), "it holds for the branch"


def test_cut_is_made_anew_where_the_window_is_found_to_be_larger(core: Core) -> None:
    client = grown(core, 60)
    before, core.window_tokens = core.decisions[-1].own_tokens, 4 * WINDOW_TOKENS
    client.ask("And now?")
    assert core.decisions[-1].own_tokens > 2 * before


def test_old_message_that_the_client_has_reworded_leaves_no_half_behind(core: Core) -> None:
    client = Client(core)
    for turn in range(40):
        call = f"call_{turn}"
        client.messages += [user(f"{turn}: {prose(40, turn)}"), calling((call, "read", {"at": turn}))]
        client.messages.append(tool(call, prose(60, turn)))
        client.send(prose(30, (turn, "answer")))
    assert core.decisions[-1].view is not None and len(core.decisions[-1].view.omission.drops) > 40
    client.messages[15] = tool(client.messages[14]["tool_calls"][0]["id"], "cleared by the client")
    client.ask("And now?")
    assert violations(CHAT, core.decisions[-1].sent.chat.raw) == []


def test_cut_is_given_up_where_half_of_a_larger_window_holds_everything(core: Core) -> None:
    client = grown(core)
    core.window_tokens = 100_000
    client.ask("And now?")
    assert core.decisions[-1].view is None and not any(isinstance(one, Trim) for one in core.asked)


@pytest.mark.parametrize("policy", ["forward", "observe"])
def test_nothing_is_left_out_unless_the_policy_says_trim(policy: str) -> None:
    core = trimming(policy)
    grown(core)
    last = core.decisions[-1]
    assert last.view is None and (last.would_trim_tokens > 0) == (policy == "observe")


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 200)), min_size=5, max_size=30))
def test_whatever_is_said_no_rule_is_broken_and_nothing_moves_without_a_cut(turns: list[tuple[int, int]]) -> None:
    core = trimming()
    client = Client(core)
    for number, (calls, words) in enumerate(turns):
        client.messages.append(user(f"{number} {prose(words, number)}"))
        for at in range(calls):
            call = f"call_{at}"  # used again in each turn
            client.messages += [calling((call, "read", {"path": prose(words, at)})), tool(call, prose(4 * words, at))]
        client.send(prose(words, (number, "answer")))
    for before, after in pairwise(core.decisions):
        assert violations(CHAT, after.sent.chat.raw) == []
        if after.view is None or after.view.first_new < 0:
            assert sent(after)[: len(sent(before))] == sent(before)


def test_result_longer_than_the_window_is_shortened_the_same_way_until_it_is_old(core: Core) -> None:
    client = Client(core)
    client.messages += [user("Read the log."), calling(("a", "read", {})), tool("a", prose(4000, "log"))]
    client.send("It is long.")
    decision = core.decisions[-1]
    assert decision.own_tokens < WINDOW_TOKENS and decision.view is not None and len(decision.view.omission.clips) == 1
    grown = [decision]
    for turn in range(30):
        client.ask(f"{turn}: {prose(40, turn)}", prose(40, (turn, "answer")))
        grown.append(core.decisions[-1])
    for before, after in pairwise(grown):
        assert after.own_tokens < WINDOW_TOKENS
        if after.view is not None and after.view.first_new < 0:
            assert sent(after)[: len(sent(before))] == sent(before)
    assert len(core.decisions[3].sent.chat.messages) > 5 and core.decisions[3].view is not None
    assert grown[-1].view is not None and not grown[-1].view.omission.clips
