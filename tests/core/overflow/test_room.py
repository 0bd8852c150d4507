"""Room in a window: for messages, and for the answer."""

from __future__ import annotations

import orjson
import pytest
from palimpsest.core.overflow.room import answer_limit, answer_room, room_of, stands_aside
from palimpsest.domain import Chat, Json
from palimpsest.wire import chat, messages, responses


def asking(**fields: object) -> Chat:
    return chat.parse(orjson.dumps({"messages": [{"role": "user", "content": "hi"}], **fields}))


def test_a_cut_aims_at_half_of_the_window_tools_included() -> None:
    room = room_of(16_000, 4000, 1000.0)
    assert (room.most, room.aim) == (11_000 - 800, 7000 - 1600), "a block of memory has its room in both"


@pytest.mark.parametrize(("wanted", "needed"), [(None, 2000), (500, 500), (9000, 4000)])
def test_answer_needs_what_the_client_wants_up_to_a_quarter_of_the_window(wanted: int | None, needed: int) -> None:
    assert answer_room(asking(max_tokens=wanted), 16_000, 4096) == needed


@pytest.mark.parametrize(
    ("wanted", "limit"), [(None, None), (500, None), (6000, 16_000 - 10_500), (100_000, 16_000 - 10_500)]
)
def test_answer_is_limited_to_what_the_prompt_leaves(wanted: int | None, limit: int | None) -> None:
    assert answer_limit(asking(max_tokens=wanted), 10_000, 16_000, 4000) == limit


def test_answer_keeps_what_it_needs_at_least() -> None:
    assert answer_limit(asking(max_tokens=8000), 15_000, 16_000, 4000) == 4000


def test_answer_is_not_limited_to_less_than_its_thoughts() -> None:
    asked = {"thinking": {"type": "enabled", "budget_tokens": 6000}, "max_tokens": 8000}
    assert answer_limit(asking(**asked), 10_000, 16_000, 4000) is None


@pytest.mark.parametrize(
    ("wire", "asked"),
    [
        (responses, {"truncation": "auto"}),
        (responses, {"context_management": [{"type": "compaction", "compact_threshold": 1000}]}),
        (responses, {"previous_response_id": "resp_1"}),
        (messages, {"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}}),
        (chat, {"transforms": ["middle-out"]}),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else value.LISTED,
)
def test_provider_that_shortens_the_history_itself_is_left_to_it(wire: object, asked: Json) -> None:
    said = [{"role": "user", "content": "hi"}]
    assert stands_aside(wire.parse(orjson.dumps({"input": said, "messages": said, **asked})))  # type: ignore[attr-defined]
    assert not stands_aside(asking(truncation="disabled"))
