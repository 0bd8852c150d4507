"""Trees of messages as turns."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from palimpsest.domain import Ending, Event
from palimpsest.features.transfer.trees import Node, Tree, turns_of

from tests.features.transfer.told import carried

ROLES = st.sampled_from(["user", "assistant", "tool", None])
TREES = st.lists(st.tuples(ROLES, st.integers(0, 12)), min_size=1, max_size=12)


def tree(drawn: list[tuple[str | None, int]]) -> Tree:
    nodes: list[Node] = []
    for at, (role, back) in enumerate(drawn):
        parent = str(at - back) if 0 < back <= at else ""
        raw = None if role is None else {"role": role, "content": f"m{at}"}
        nodes.append(Node(str(at), parent, raw, at=float(at)))
    return Tree("p", "c", nodes)


@given(TREES)
def test_every_message_is_brought_once_behind_exactly_what_stands_in_front_of_it(
    drawn: list[tuple[str | None, int]],
) -> None:
    made = tree(drawn)
    turns = list(turns_of(made))
    brought = [m.raw["content"] for t in turns for m in (*t.messages, *filter(None, [t.answer]))]
    assert sorted(brought) == sorted(node.raw["content"] for node in made.nodes if node.raw)
    assert len({turn.id for turn in turns}) == len(turns)
    seen = {""}
    for turn in turns:
        assert turn.parent in seen, "a parent comes in front of its children"
        seen.add(turn.id)
    listings = carried(turns)
    by_id = {node.id: node for node in made.nodes}
    for turn in turns:
        last = listings[turn.id][-1]
        node: Node | None = by_id[last[1:]]
        path = []
        while node is not None:
            path += [node.raw["content"]] if node.raw else []
            node = by_id.get(node.parent)
        assert listings[turn.id] == path[::-1]


@given(TREES, TREES)
def test_what_a_conversation_gains_changes_no_turn_of_before(
    first: list[tuple[str | None, int]], more: list[tuple[str | None, int]]
) -> None:
    before = {turn.id: turn for turn in turns_of(tree(first))}
    after = {turn.id: turn for turn in turns_of(tree(first + more))}
    for id, turn in before.items():
        then = after[id]
        assert then.kept == turn.kept and then.parent == turn.parent
        if turn.answer is not None:
            assert then.answer == turn.answer


def test_questions_that_got_no_answer_are_turns_and_the_last_one_may_still_get_it() -> None:
    drawn: list[tuple[str | None, int]] = [("user", 0), ("user", 1), ("assistant", 1), ("user", 1)]
    turns = list(turns_of(tree(drawn)))
    assert [turn.ending for turn in turns] == [Ending.CLIENT_GONE, Ending.COMPLETE, None]
    assert [turn.event for turn in turns] == [Event.START, Event.APPEND, Event.APPEND]
    assert all(later.parent == earlier.id for earlier, later in pairwise(turns))
