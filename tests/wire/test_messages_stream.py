"""The content blocks of an answer grow by their deltas, whatever these are called."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from palimpsest.domain import Json
from palimpsest.wire.messages_stream import of_events


def start(**block: Any) -> Json:
    return {"type": "content_block_start", "index": 0, "content_block": block}


def delta(kind: str, **said: Any) -> Json:
    return {"type": "content_block_delta", "index": 0, "delta": {"type": kind, **said}}


def block(*events: Json) -> Json:
    """The first block of the message that the events make."""
    message, _, _ = of_events(map(orjson.dumps, events))
    assert message is not None
    only: Json = message["content"][0]
    return only


def test_citations_come_one_by_one() -> None:
    first, second = {"cited_text": "a"}, {"cited_text": "b"}
    opened = start(type="text", text="", citations=None)
    cited = [delta("citations_delta", citation=first), delta("citations_delta", citation=second)]
    assert block(opened, delta("text_delta", text="so"), *cited) == {
        "type": "text",
        "text": "so",
        "citations": [first, second],
    }


def test_deltas_that_nobody_knows_yet_grow_under_their_own_name() -> None:
    opened = start(type="compaction", content=None)
    grown = block(opened, delta("compaction_delta", content="They "), delta("compaction_delta", content="spoke."))
    assert grown == {"type": "compaction", "content": "They spoke."}


def test_arguments_that_came_whole_stay() -> None:
    assert block(start(type="tool_use", id="t", name="f", input={"a": 1}))["input"] == {"a": 1}


def test_arguments_that_broke_off_stay_a_text() -> None:
    cut = [start(type="tool_use", id="t", name="f", input={}), delta("input_json_delta", partial_json='{"a": ')]
    assert block(*cut)["input"] == '{"a": '


def test_blocks_stand_in_the_order_of_their_indexes() -> None:
    events = [{**start(type="text", text=said), "index": index} for index, said in ((1, "b"), (0, "a"))]
    message, _, _ = of_events(map(orjson.dumps, events))
    assert message is not None and [part["text"] for part in message["content"]] == ["a", "b"]


@pytest.mark.parametrize("usages", [({"input_tokens": 0}, {"input_tokens": 7}), ({"input_tokens": 7}, {})])
def test_a_prompt_is_counted_wherever_the_provider_says_its_size(usages: tuple[Json, Json]) -> None:
    events = [{"type": "message_start", "message": {"usage": usages[0]}}, {"type": "message_delta", "usage": usages[1]}]
    assert of_events(map(orjson.dumps, events))[1] == 7
