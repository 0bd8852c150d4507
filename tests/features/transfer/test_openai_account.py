"""Conversations of ChatGPT's account export."""

from __future__ import annotations

import pytest
from palimpsest.domain.errors import WireError
from palimpsest.features.transfer.openai_account import is_conversation, tree_of
from palimpsest.features.transfer.trees import turns_of

from tests.features.transfer.samples import AT, chatgpt_conversation
from tests.features.transfer.told import carried, told


def test_the_current_path_comes_last_and_a_branch_keeps_what_stands_in_front_of_it() -> None:
    turns = list(turns_of(tree_of(chatgpt_conversation())))
    assert [told(turn) for turn in turns] == [
        (
            "start",
            "system: I keep bees.\nBe brief.",
            "user: Which hive did I call Wilhelmina?",
            "assistant: I cannot know that.",
        ),
        ("retry", "assistant: bio.search"),
        ("tool", "tool: hive seven, by the quince", "assistant: Hive seven, beside the quince tree."),
        ("append", "user: And this?", "assistant: A swarm of drones."),
    ]
    assert carried(turns)[turns[-1].id] == [
        "Which hive did I call Wilhelmina?",
        "",
        "hive seven, by the quince",
        "Hive seven, beside the quince tree.",
        "And this?",
        "A swarm of drones.",
    ]
    assert (turns[0].created_at, turns[0].answered_at, turns[0].model) == (AT + 1, AT + 2, "gpt-4o")


def test_a_result_answers_its_call_and_a_picture_is_a_part() -> None:
    turns = list(turns_of(tree_of(chatgpt_conversation())))
    assert turns[1].answer is not None
    assert turns[2].messages[0].raw["tool_call_id"] == turns[1].answer.raw["tool_calls"][0]["id"]
    assert turns[3].messages[0].raw["content"][0] == {"type": "image_url", "image_url": {"url": "file-service://f-1"}}


def test_the_same_conversation_makes_the_same_ids_and_goes_on_with_them() -> None:
    whole, cut = chatgpt_conversation(), chatgpt_conversation()
    for gone in ("picture", "last"):
        del cut["mapping"][gone]
    cut["current_node"] = "new"
    longer, shorter = list(turns_of(tree_of(whole))), list(turns_of(tree_of(cut)))
    assert longer[: len(shorter)] == shorter and len(longer) == len(shorter) + 1


@pytest.mark.parametrize(("node", "turns"), [("root", 4), ("ask", 5)], ids=["whole", "below the instructions"])
def test_a_ring_of_parents_ends(node: str, turns: int) -> None:
    value = chatgpt_conversation()
    value["mapping"][node]["parent"] = "last"
    assert len(list(turns_of(tree_of(value)))) == turns


def test_what_is_strange_in_a_message_is_left_out() -> None:
    value = chatgpt_conversation()
    strange = ({"content_type": "hologram"}, {"content_type": "text", "parts": [{"text": 3}, None]}, None)
    for at, content in enumerate(strange):
        node = {"id": f"x{at}", "parent": "last", "message": {"author": {"role": "user"}, "content": content}}
        value["mapping"][f"x{at}"] = node
    value["mapping"]["none"] = None
    assert len(list(turns_of(tree_of(value)))) == 4


def test_a_conversation_without_an_id_is_refused() -> None:
    assert is_conversation(chatgpt_conversation()) and not is_conversation({"mapping": []})
    with pytest.raises(WireError, match="without an id"):
        tree_of({"mapping": {}})
