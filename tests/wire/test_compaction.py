"""A request for a compaction is read as any other of its wire, and known for what it wants."""

from __future__ import annotations

import orjson
import pytest
from palimpsest.core.caller.client_table import Signals
from palimpsest.core.history import request_roles
from palimpsest.domain import Chat, Shape
from palimpsest.wire import compaction, responses

HISTORY = [{"role": "user", "content": "one"}, {"type": "message", "role": "assistant", "content": "two"}]


@pytest.mark.parametrize(
    "chat",
    [
        compaction.parse(orjson.dumps({"input": HISTORY})),
        compaction.parse(b'{"previous_response_id": "resp_1"}'),
        responses.parse(orjson.dumps({"input": [*HISTORY, {"type": "compaction_trigger"}]})),
    ],
    ids=["items", "name", "trigger"],
)
def test_it_is_a_side_request_whatever_its_words_and_tools(chat: Chat) -> None:
    asked = request_roles.intent_of(chat, Signals())
    assert chat.compacts and asked.summarises
    assert request_roles.is_side_request(asked, Shape(tool_names=("read",)), Shape(tool_names=("read",)), False)[0]


def test_it_is_read_and_forwarded_as_its_wire_has_it() -> None:
    body = orjson.dumps({"input": HISTORY})
    assert compaction.parse(body).messages == responses.parse(body).messages and not responses.parse(body).compacts
    assert compaction.render(compaction.parse(body), ()) == body
