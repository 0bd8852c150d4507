"""What a person says in a message of the user's, beside what clients write there."""

from __future__ import annotations

import re

import pytest
from palimpsest.core.caller.client_table import Asides
from palimpsest.core.recall.human_text import human_text, is_unspoken, newest_spoken
from palimpsest.domain import Chat, Message

from tests.core.driving import client_table

ASIDES = Asides((re.compile("go on, or ask\\."),))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Which port?", "Which port?"),
        ('"Which port?"', "Which port?"),
        ('  "Which port?"\n', "Which port?"),
        ("“Which port?”", "Which port?"),
        ("«Quel port ?»", "Quel port ?"),
        ("„Welcher Port?”", "Welcher Port?"),
        ("'Which port?'", "Which port?"),
        ('"Say \\"hello\\" to it."', 'Say "hello" to it.'),
        ('"one" and "two"', '"one" and "two"'),
        ("'one' and 'two'", "'one' and 'two'"),
        ('"Which port?', '"Which port?'),
        ('He said "no"', 'He said "no"'),
        ('"', '"'),
        ('""', ""),
        ("<system-reminder>the time</system-reminder>Which port?", "Which port?"),
        ("<system-reminder>a</system-reminder> Which <command-name>b</command-name> port?", "Which  port?"),
        ("<system-reminder>not closed. Which port?", "<system-reminder>not closed. Which port?"),
        ("<system-reminder>a</system-reminder>\n<command-name>b</command-name>", ""),
        ("<task-notification><status>completed</status><result>Done.</result></task-notification>", ""),
        ("<ide_opened_file>The user opened main.py in the IDE.</ide_opened_file>Which port?", "Which port?"),
        ("<system-reminder>a</system-reminder><args></args>", ""),
        ("<system-reminder>a</system-reminder><args>the gateway</args>", "<args>the gateway</args>"),
        ("<command-name>/review</command-name>\n<command-args>150</command-args>", ""),
        ("<command-name>/plan</command-name>\n<command-args>a gateway for 8080</command-args>", "a gateway for 8080"),
        ("<task>\nWhich port?\n</task>", "Which port?"),
        ("[System note: Your previous turn was interrupted by a gateway restart. Go on with it.]", ""),
        ("[System note: The previous turn was interrupted.]\n\nWhich port?", "Which port?"),
        ("Base directory for this skill: /home/ann/skills/pdf\n\n# PDF\n\nAsk which port.", ""),
        (
            "Base directory for this skill: /a\n\n# PDF\n[Request interrupted by user]\nUse port 7431.",
            "[Request interrupted by user]\nUse port 7431.",
        ),
        ("What is the base directory for this skill: a or b?", "What is the base directory for this skill: a or b?"),
        ("[System note: answer briefly] Which port?", "[System note: answer briefly] Which port?"),
        ('<user_input mode="act">"Which port?"</user_input>', "Which port?"),
        ("<user_input>Go on, or ask.</user_input>", ""),
        ("Go on,\n  or ASK.", ""),
        ('"Go on, or ask."', ""),
        ("Go on, or ask. But which port?", "Go on, or ask. But which port?"),
    ],
)
def test_what_is_said_is_told_from_what_stands_around_it(text: str, said: str) -> None:
    assert human_text(text, ASIDES) == said


@pytest.mark.parametrize(
    "text",
    [
        "I am not sharing any files that you can edit yet.",
        "Don't try and edit any existing code without asking me to add the files to the chat!\nTell me which files in"
        " my repo are the most likely to **need changes** to solve the requests I make.\n",
        "I switched to a new code base. Please don't consider the above files or try to edit them any longer.",
    ],
)
def test_nobody_says_what_aider_writes_in_front_of_a_question(text: str) -> None:
    assert human_text(text, client_table().asides) == ""


def test_nobody_says_that_he_interrupted_claude_code() -> None:
    for_tool, with_words = "[Request interrupted by user for tool use]", "[Request interrupted by user] Use port 7431."
    assert human_text(for_tool, client_table().asides) == human_text(for_tool[:28] + "]", client_table().asides) == ""
    assert human_text(with_words, client_table().asides) == with_words


def message(text: str, role: str = "user") -> Message:
    return Message(role, text, {})


def test_only_a_message_of_the_user_is_an_aside_and_only_as_a_whole() -> None:
    assert is_unspoken(message("go on, or ask."), ASIDES)
    assert not is_unspoken(message("go on, or ask.", "assistant"), ASIDES)
    assert not is_unspoken(message("<system-reminder>a</system-reminder> Which port?"), ASIDES)
    assert not is_unspoken(message(" "), ASIDES)


def test_the_newest_message_is_one_in_which_somebody_speaks() -> None:
    said = (message("Which port?"), message("4711.", "assistant"), message("go on, or ask."))
    assert newest_spoken(Chat(said, "m", b"", {}), ASIDES) == (0, "Which port?")
    assert newest_spoken(Chat(said, "m", b"", {}), Asides()) == (2, "go on, or ask.")
    assert newest_spoken(Chat(said[1:], "m", b"", {}), ASIDES) == (-1, "")
