from palimpsest.domain import ToolCall
from palimpsest.evaluation.turns import SUMMARY_CHARS, SUMMARY_CHARS_OF_MESSAGE, turn_pairs

from tests.evaluation.told import told


def test_a_question_and_its_answer_are_one_turn() -> None:
    turns = turn_pairs(told("user: a", "assistant: b", "user: c", "assistant: d", "user: e").messages)
    assert [turn.messages for turn in turns] == [(0, 1), (2, 3), (4,)]
    assert turns[0].summary == "a\nb"


def test_every_answer_of_a_tool_loop_is_a_turn_and_names_tools_and_files() -> None:
    call = ToolCall("1", "read_file", '{"path": "src/auth.ts"}')
    turns = turn_pairs(
        told("user: look", "assistant: reading", "tool: secret", "assistant: done", calls=(call,)).messages
    )
    assert [turn.messages for turn in turns] == [(0, 1), (2, 3)]
    assert turns[0].summary == "look\nreading\ntools: read_file\nfiles: src/auth.ts"
    assert {"read_file", "src/auth.ts"} <= turns[0].hints
    assert turns[1].summary == "done", "what tools return is told by reference only"


def test_a_summary_holds_the_beginning_of_each_message() -> None:
    turn = turn_pairs(told("user: " + "a" * 900, "assistant: " + "b" * 900, "user: x").messages)[0]
    assert turn.summary == "a" * SUMMARY_CHARS_OF_MESSAGE + "\n" + "b" * SUMMARY_CHARS_OF_MESSAGE
    crowd = turn_pairs(told(*["user: " + "a" * 900] * 4, "assistant: b").messages)[0]
    assert len(crowd.summary) == SUMMARY_CHARS
