"""Steps: what goes or stays as a whole."""

from __future__ import annotations

import orjson
from palimpsest.core.overflow.steps import steps_of
from palimpsest.domain import Json
from palimpsest.wire import chat, messages

from tests.core.driving import assistant, calling, system, tool, user


def spans(*listed: Json) -> list[tuple[int, int, bool]]:
    read = chat.parse(orjson.dumps({"messages": listed}))
    return [(step.first, step.stop, step.is_users) for step in steps_of(read)]


def test_a_call_and_its_results_are_one_step() -> None:
    one = calling(("a", "read", {}), ("b", "read", {}))
    listed = (system("s"), user("u"), one, tool("a", "1"), tool("b", "2"), assistant("done"), user("next"))
    assert spans(*listed) == [(1, 2, True), (2, 5, False), (5, 6, False), (6, 7, True)]


def test_no_step_ends_while_a_call_waits() -> None:
    listed = (user("u"), calling(("a", "read", {})), user("are you there?"), tool("a", "1"), assistant("yes"))
    assert spans(*listed) == [(0, 1, True), (1, 4, False), (4, 5, False)]


def test_an_id_that_is_used_again_belongs_to_the_newest_call() -> None:
    step = (calling(("call_0", "read", {})), tool("call_0", "1"))
    assert spans(user("u"), *step, *step) == [(0, 1, True), (1, 3, False), (3, 5, False)]


def test_an_element_of_the_body_is_not_divided() -> None:
    listed = [
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "read", "input": {}}]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "a", "content": "1"}, {"type": "text", "text": "stop"}],
        },
        {"role": "assistant", "content": "stopped"},
    ]
    read = messages.parse(orjson.dumps({"messages": listed, "system": "s"}))
    assert [(step.first, step.stop) for step in steps_of(read)] == [(1, 2), (2, 5), (5, 6)]
