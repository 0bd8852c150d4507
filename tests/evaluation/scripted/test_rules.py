"""The rules by which providers refuse a request for the order of its messages."""

from __future__ import annotations

import pytest
from palimpsest.domain import Json
from palimpsest.evaluation.scripted.rules import violations

from tests.overflowing import CHAT, MESSAGES, RESPONSES, Call, Exchange, body_of

TALK = (Exchange("Read both.", ((Call("a"), Call("b")), (Call("a"),)), thinks=True), Exchange("And now?"))
LISTED = {CHAT: "messages", MESSAGES: "messages", RESPONSES: "input"}


@pytest.mark.parametrize("path", LISTED)
def test_complete_conversation_breaks_no_rule(path: str) -> None:
    assert violations(path, body_of(path, TALK)) == []


@pytest.mark.parametrize("path", LISTED)
def test_no_message_of_a_pair_can_be_missing(path: str) -> None:
    body = body_of(path, TALK)
    listed = body[LISTED[path]]

    def is_of_a_pair(message: Json) -> bool:
        kind, content = message.get("type", ""), message.get("content")
        parts = [part["type"] for part in content if isinstance(part, dict)] if isinstance(content, list) else []
        return bool(
            message.get("tool_calls") or message["role"] == "tool" if "role" in message else "function" in kind
        ) or ("tool_use" in parts or "tool_result" in parts)

    pairs = [at for at, message in enumerate(listed) if is_of_a_pair(message)]
    assert len(pairs) >= 4
    for at in pairs:
        assert violations(path, body | {LISTED[path]: listed[:at] + listed[at + 1 :]}), at


@pytest.mark.parametrize("path", LISTED)
def test_two_users_in_a_row_are_a_violation(path: str) -> None:
    body = body_of(path, TALK)
    listed = body[LISTED[path]]
    assert violations(path, body | {LISTED[path]: [*listed, {"role": "user", "content": "And?"}]})


def test_words_inside_a_call_are_a_violation() -> None:
    body = body_of(CHAT, TALK)
    body["messages"][2]["tool_calls"][0]["function"]["arguments"] = "(left out)"
    assert violations(CHAT, body) == ["message 2: the arguments of a call are no JSON object"]
