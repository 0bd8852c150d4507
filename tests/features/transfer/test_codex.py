"""Sessions of Codex."""

from __future__ import annotations

from typing import Any

import pytest
from palimpsest.domain import Role
from palimpsest.domain.errors import WireError
from palimpsest.domain.portable_turn import PortableTurn
from palimpsest.features.transfer.codex import Session, is_line
from palimpsest.features.transfer.trees import turns_of

from tests.features.transfer.samples import codex_lines
from tests.features.transfer.told import carried, told


def turns(lines: list[Any]) -> list[PortableTurn]:
    session = Session()
    for line in lines:
        session.take(line)
    return [turn for tree in session.trees() for turn in turns_of(tree)]


def test_items_become_messages_and_a_compaction_starts_anew() -> None:
    found = turns(codex_lines())
    assert [told(turn) for turn in found] == [
        (
            "start",
            "system: Be.",
            "user: <environment_context><cwd>/w</cwd></environment_context>",
            "user: Where is the smoker kept?",
            "assistant: Looking.",
        ),
        ("tool", "tool: shed.txt: on the third shelf", "assistant: On the third shelf of the shed."),
        ("append", "user: A question that is taken back", "assistant: An answer that goes with it"),
        ("edit", "user: And the veil?", "assistant: It hangs behind the door."),
        (
            "compaction:summary",
            "user: Summary: smoker on the shelf, veil on the door.",
            "user: Order a new veil.",
            "assistant: Ordered.",
        ),
    ]
    assert {turn.model for turn in found} == {"gpt-5.1-codex"}


def test_what_was_rolled_back_is_a_branch() -> None:
    found = turns(codex_lines())
    assert found[2].parent == found[3].parent == found[1].id
    assert "A question that is taken back" not in carried(found)[found[3].id]


def test_a_spawned_thread_serves_its_parent_and_a_repeated_beginning_is_passed_over() -> None:
    first = codex_lines()[0]
    first["payload"]["source"] = {"subagent": {"thread_spawn": {"parent_thread_id": "p"}}}
    found = turns([first, {"type": "session_meta", "payload": {"id": "other"}}, *codex_lines()[1:]])
    assert {(turn.role, turn.serves, turn.client_ids[0][-6:]) for turn in found} == {
        (Role.SUBAGENT, "codex:p", "eeeeee")
    }


def test_the_first_versions_wrote_bare_items() -> None:
    lines = [{"id": "s", "timestamp": "2025-05-01T00:00:00Z", "instructions": None}, {"record_type": "state"}]
    lines += [line["payload"] for line in codex_lines() if line["type"] == "response_item"][:3]
    assert is_line(lines[0])
    assert [told(turn) for turn in turns(lines)] == [
        (
            "start",
            "user: <environment_context><cwd>/w</cwd></environment_context>",
            "user: Where is the smoker kept?",
        )
    ]


def test_a_compaction_in_words_is_a_summary() -> None:
    lines = [*codex_lines()[:14], {"type": "compacted", "payload": {"message": "All that was said."}}]
    assert told(turns(lines)[-1]) == ("compaction:summary", "user: All that was said.")


def test_a_file_without_a_session_has_no_conversation() -> None:
    assert turns(codex_lines()[2:]) == [] and not is_line({"type": "session_meta"}) and not is_line(3)
    with pytest.raises(WireError, match="not a line of a session"):
        Session().take(3)
