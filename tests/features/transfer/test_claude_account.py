"""Conversations of Claude's account export."""

from __future__ import annotations

import pytest
from palimpsest.domain.errors import WireError
from palimpsest.features.transfer.claude_account import is_conversation, tree_of
from palimpsest.features.transfer.trees import turns_of

from tests.features.transfer.samples import claude_conversation
from tests.features.transfer.told import told


def test_results_of_tools_are_parted_from_answers_and_attachments_are_read() -> None:
    turns = list(turns_of(tree_of(claude_conversation())))
    assert [told(turn) for turn in turns] == [
        ("start", "user: How do I make mead?\ncarboy number 31", "assistant: Let me look."),
        ("tool", "tool: honey and water, six weeks", "assistant: Honey, water, six weeks."),
        ("append", "user: And cyder?"),
        ("edit", "user: And perry?", "assistant: Pears, and patience."),
    ]
    assert turns[2].parent == turns[3].parent == turns[1].id
    assert turns[0].created_at == 1714557600.123456


def test_an_export_without_parents_is_a_list() -> None:
    turns = list(turns_of(tree_of(claude_conversation(branches=False))))
    assert [turn.event.value for turn in turns] == ["start", "tool", "append"]
    assert [turn.parent for turn in turns[1:]] == [turn.id for turn in turns[:-1]]


def test_an_early_export_holds_texts_only() -> None:
    value = claude_conversation()
    value["chat_messages"] = [
        {"uuid": "m", "sender": "human", "text": "hello"},
        {"uuid": "n", "sender": "assistant", "text": "hi"},
        {"uuid": "o", "sender": "human", "text": ""},
    ]
    assert [told(turn) for turn in turns_of(tree_of(value))] == [("start", "user: hello", "assistant: hi")]


def test_calls_without_ids_are_answered_by_what_follows_them() -> None:
    parts = [{"type": "tool_use", "name": "f", "input": {}}, {"type": "tool_result", "content": []}]
    value = {"uuid": "c", "chat_messages": [{"uuid": "m", "sender": "assistant", "content": parts}]}
    call, result = turns_of(tree_of(value))
    assert call.answer is not None
    assert result.messages[0].raw["content"][0]["tool_use_id"] == call.answer.raw["content"][0]["id"]


def test_what_is_no_conversation_is_refused() -> None:
    assert is_conversation(claude_conversation()) and not is_conversation({"chat_messages": None})
    with pytest.raises(WireError, match="without a uuid"):
        tree_of({"chat_messages": []})
    with pytest.raises(WireError, match="neither the person's nor the model's"):
        tree_of({"uuid": "c", "chat_messages": [{"sender": "oracle"}]})
