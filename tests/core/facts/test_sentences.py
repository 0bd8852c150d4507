"""Only sentences that users say in their own name are read."""

from __future__ import annotations

import pytest
from palimpsest.core.facts.sentences import is_played, sentences


def read(text: str) -> list[str]:
    return [one.text.strip() for one in sentences(text)]


def test_sentences_end_at_stops_and_lines_and_know_their_place() -> None:
    text = "Dr. Okonkwo came. Did v2.4 ship?\nYes!"
    assert read(text) == ["Dr. Okonkwo came.", "Did v2.4 ship?", "Yes!"]
    assert [one.is_question for one in sentences(text)] == [False, True, False]
    assert [text[one.start : one.start + len(one.text)] for one in sentences(text)] == [
        one.text for one in sentences(text)
    ]


@pytest.mark.parametrize(
    "foreign",
    [
        "```\nI live in Ghent.\n```",
        "> I live in Ghent.",
        "| I live in Ghent. |",
        "Bram: I live in Ghent.",
        "assistant: I live in Ghent.",
    ],
)
def test_code_quotes_tables_and_lines_of_others_are_left_out(foreign: str) -> None:
    assert read(f"Hello.\n{foreign}\nBye.") == ["Hello.", "Bye."]


def test_labels_of_a_users_own_lines_are_kept() -> None:
    assert read("Update: the port changed.") == ["Update: the port changed."]


@pytest.mark.parametrize(
    "task",
    [
        *("Translate this.", "Please rewrite:", "Act as a judge.", "Here is my letter:", "Pretend to be my aunt."),
        *("What do you think of this email?", "Fix the last paragraph", "How should I reply to this message?"),
    ],
)
def test_a_text_to_work_on_is_left_out(task: str) -> None:
    assert read(f"Hello.\n{task}\nI live in Ghent.")[0] == "Hello."
    assert "I live in Ghent." not in read(f"Hello.\n{task}\nI live in Ghent.")


def test_what_stands_between_quotation_marks_is_known() -> None:
    (one,) = sentences('She wrote "my name is Bram" today.')
    assert one.is_quoted(one.text.index("my")) and not one.is_quoted(one.text.index("today"))


def test_a_joke_and_a_long_text_say_nothing() -> None:
    assert read("I am the king, just kidding.") == []
    assert read("Hello. " * 300) == []
    assert read("x" * 30_000) == []


def test_only_the_beginning_of_a_long_sentence_is_read() -> None:
    (one,) = sentences("word " * 100 + "right?")
    assert len(one.text) == 400 and one.is_cut and one.is_question


def test_what_stands_behind_a_task_in_its_sentence_is_left_out() -> None:
    assert read("Hello, let's role-play: I live in Ghent.") == ["Hello, let's"]
    assert read("Write a letter that begins: I live in Ghent.")[0].endswith("letter that")


@pytest.mark.parametrize(
    "text",
    [
        "Let's roleplay. You are a doctor and I come to see you.",
        "I want you to act as my landlord.",
        "Stay in character, whatever I say.",
        "We do a mock interview: you ask, I answer.",
    ],
)
def test_a_play_is_known_by_what_opens_it(text: str) -> None:
    assert is_played(["Good morning.", text])


@pytest.mark.parametrize("text", ["I play the violin.", "What role does sleep play?", "My character flaws are many."])
def test_talk_of_plays_is_none(text: str) -> None:
    assert not is_played([text])
