"""Sessions of Claude Code."""

from __future__ import annotations

import pytest
from palimpsest.domain import Event, Role
from palimpsest.domain.errors import WireError
from palimpsest.domain.portable_turn import PortableTurn
from palimpsest.features.transfer.claude_code import Session, is_line
from palimpsest.features.transfer.trees import turns_of

from tests.features.transfer.samples import claude_code_lines
from tests.features.transfer.told import told

SESSION = "11111111-2222-4333-8444-555555555555"


def turns(lines: list[dict[str, object]]) -> list[PortableTurn]:
    session = Session()
    for line in lines:
        session.take(line)
    return [turn for tree in session.trees() for turn in turns_of(tree)]


def test_an_answer_is_put_together_and_a_compaction_starts_anew() -> None:
    found = turns(claude_code_lines())
    assert [told(turn) for turn in found if turn.role is Role.MAIN] == [
        ("start", "user: Who is the queen of hive seven?", "assistant: I will look it up."),
        ("tool", "tool: [seven]\nqueen = 'Wilhelmina'", "assistant: Wilhelmina is its queen."),
        (
            "compaction:summary",
            "user: This session continues: the queen is Wilhelmina.",
            "user: Then rename hive seven after her.",
            "assistant: Renamed.",
        ),
    ]
    after = found[2]
    assert (after.event, after.kept, after.parent) == (Event.SUMMARY, (), found[1].id)
    assert [message.is_summary for message in after.messages] == [True, False]
    assert {turn.client_ids for turn in found[:3]} == {(f"claude-code:{SESSION}",)}


def test_a_sub_agent_is_a_conversation_that_serves_the_session() -> None:
    (agent,) = [turn for turn in turns(claude_code_lines()) if turn.role is Role.SUBAGENT]
    assert told(agent)[1:] == ("user: Count the drones in the northern frames.", "assistant: Four hundred drones.")
    assert agent.serves == f"claude-code:{SESSION}" and agent.client_ids == (f"claude-code:{SESSION}/s1",)


def test_lines_of_newer_files_name_the_agent() -> None:
    lines = [line | {"agentId": "a7"} for line in claude_code_lines() if line.get("isSidechain")]
    assert {turn.client_ids for turn in turns(lines)} == {(f"claude-code:{SESSION}/a7",)}


def test_what_follows_a_line_that_is_missing_begins_anew() -> None:
    lines = [line for line in claude_code_lines() if line.get("uuid") not in ("u1", "r1")]
    assert [turn.event.value for turn in turns(lines) if turn.role is Role.MAIN][:2] == ["start", "start"]


def test_a_line_of_something_else_is_refused() -> None:
    assert is_line(claude_code_lines()[1]) and not is_line({"type": "session_meta", "payload": {}}) and not is_line([])
    with pytest.raises(WireError, match="not a line of a session"):
        Session().take([])
