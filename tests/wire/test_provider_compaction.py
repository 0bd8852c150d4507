"""A request may ask for a compaction, and its answer tells by its first item whether it is one."""

from __future__ import annotations

import orjson
import pytest
from palimpsest.domain import Json
from palimpsest.wire import chat, compaction, responses
from palimpsest.wire.provider_compaction import holds_compaction, may_compact

ITEM = {"type": "compaction", "encrypted_content": "x"}
WORDS = {"type": "message", "role": "assistant", "content": []}


@pytest.mark.parametrize(
    ("heard", "told"),
    [
        ({"type": "response.created", "response": {"output": []}}, None),
        ({"type": "response.output_item.added", "item": {"type": "reasoning"}}, None),
        ({"type": "response.output_item.added", "item": ITEM}, True),
        ({"type": "response.output_item.added", "item": WORDS}, False),
        ({"type": "response.completed", "response": {"output": [WORDS, ITEM]}}, True),
        ({"object": "response.compaction", "output": [WORDS, ITEM]}, True),
        ({"object": "response", "output": [{"type": "reasoning"}, WORDS]}, False),
        ({"type": "response.failed", "response": {"error": {"code": "rate_limit_exceeded"}}}, None),
    ],
)
def test_it_is_told_by_the_items(heard: Json, told: bool | None) -> None:
    assert holds_compaction(orjson.dumps(heard)) is told


def test_requests_that_may_ask_for_a_compaction_are_known_without_parsing_them() -> None:
    asking = orjson.dumps({"model": "m", "input": [{"type": "compaction_trigger"}]})
    assert may_compact(b"{}", compaction) and may_compact(asking, responses)
    assert not may_compact(b'{"model":"m"}', responses) and not may_compact(asking, chat)


def test_what_cannot_be_read_tells_nothing() -> None:
    assert holds_compaction(b"<html>") is None
