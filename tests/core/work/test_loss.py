"""What a compaction took away is told by kind, with what came back of it and what was used."""

from __future__ import annotations

import pytest
from palimpsest.core.work.account import LostMessage
from palimpsest.core.work.loss import COMPARED_CHARS, OF_KIND, Loss, LossKind, losses

LOST = (
    LostMessage(1, "user", "Never push to main without a review, please."),
    LostMessage(2, "assistant", 'I look at it.\nbash({"command": "pytest tests/parser"})'),
    LostMessage(3, "tool", "AssertionError: 3 != 4\n2 failed"),
    LostMessage(4, "assistant", 'read_file({"path": "src/parser.py"})'),
    LostMessage(5, "tool", "class Parser: ..."),
    LostMessage(6, "user", "We agreed to deploy on Tuesdays only."),
)


def of_kind(found: list[Loss], kind: LossKind) -> list[Loss]:
    return [one for one in found if one.kind is kind]


def test_things_are_told_by_kind_with_the_message_that_named_them_last() -> None:
    found = losses(LOST, "", "", "")
    assert [(one.kind.value, one.occurrence) for one in found] == [
        ("rule", 1),
        ("decision", 6),
        ("error", 3),
        ("command", 2),
        ("file", 4),
    ]
    assert of_kind(found, LossKind.COMMAND)[0].text == "pytest tests/parser"
    assert not any(one.came_back or one.was_used for one in found)


def test_what_the_client_still_sends_is_not_lost() -> None:
    assert not of_kind(losses(LOST, "see src/parser.py", "", ""), LossKind.FILE)


def test_what_came_back_and_what_was_used_are_told_apart() -> None:
    (file,) = of_kind(losses(LOST, "", "file: src/parser.py", ""), LossKind.FILE)
    assert (file.came_back, file.was_used) == (True, False)
    (file,) = of_kind(losses(LOST, "", "", "I opened src/parser.py again"), LossKind.FILE)
    assert (file.came_back, file.was_used) == (False, True)


def test_a_sentence_that_a_block_cuts_came_back_too() -> None:
    rule = "Never push anything to the main branch of this repository without a review by somebody else, please."
    found = losses([LostMessage(1, "user", rule)], "", f"user: {rule[: COMPARED_CHARS + 1]}…", "")
    assert [one.came_back for one in of_kind(found, LossKind.RULE)] == [True]


def test_of_each_kind_the_newest_are_told() -> None:
    many = [LostMessage(at, "user", f"look at src/part{at}.py") for at in range(OF_KIND + 5)]
    found = of_kind(losses(many, "", "", ""), LossKind.FILE)
    assert [one.occurrence for one in found] == list(range(OF_KIND + 4, 4, -1))


def told(role: str, text: str, kind: LossKind) -> list[str]:
    return [one.text for one in of_kind(losses([LostMessage(1, role, text)], "", "", ""), kind)]


def test_what_a_tool_printed_is_no_loss() -> None:
    found = losses([LostMessage(1, "tool", "src/a.py\nsrc/b.py\nport 7431, ValueError: no such thing")], "", "", "")
    assert found == []


@pytest.mark.parametrize("command", ["ls -la src", "grep -rn parse src", "cat src/a.py"])
def test_a_command_that_only_shows_something_is_no_loss(command: str) -> None:
    run = LostMessage(1, "assistant", f'bash({{"command": "{command}"}})')
    assert not losses([run, LostMessage(2, "tool", "src/a.py")], "", "", "")


def test_a_failure_of_what_passed_later_is_no_loss() -> None:
    call = 'bash({"command": "pytest tests"})'
    lost = [LostMessage(1, "assistant", call), LostMessage(2, "tool", "2 failed"), LostMessage(3, "assistant", call)]
    assert of_kind(losses([*lost, LostMessage(4, "tool", "1 failed")], "", "", ""), LossKind.ERROR)
    assert not of_kind(losses([*lost, LostMessage(4, "tool", "3 passed")], "", "", ""), LossKind.ERROR)


@pytest.mark.parametrize(
    ("said", "values"),
    [
        ("The worker listens on port 7431 in staging.", ["port 7431"]),
        ("It retries with a backoff of 2, 8 and 30 seconds.", ["backoff of 2, 8 and 30 seconds"]),
        ("Coverage is 71 % there, busy_timeout = 15000ms here.", ["busy_timeout = 15000ms", "Coverage is 71 %"]),
        ("I read the first 2KB and 40 lines of file 3, and the tests passed in 0.12 seconds.", []),
        ("```\nretries = 3\n```\n| limit 40 | 12 % |\napi.py   limit 214   lines", []),
    ],
)
def test_a_value_has_a_name_and_was_chosen(said: str, values: list[str]) -> None:
    assert told("assistant", said, LossKind.NUMBER) == values


def test_an_assistants_decision_is_told_in_its_own_form() -> None:
    assert told("assistant", "Read it. Decision: keep Postgres, because of the report.", LossKind.DECISION) == [
        "Decision: keep Postgres, because of the report."
    ]
    assert not told("assistant", "I will use grep. Let me decide what to look at.", LossKind.DECISION)


def test_an_error_in_prose_has_a_message_or_a_number() -> None:
    said = 'It dies with E4127 (no column invoice_id), or "TypeError: x is null". A ValueError is fine.'
    assert told("assistant", said, LossKind.ERROR) == ["TypeError: x is null", "E4127 (no column invoice_id)"]


def test_a_file_is_told_once_however_its_path_begins() -> None:
    lost = [
        LostMessage(1, "assistant", 'read_file({"path": "/home/ann/shop/src/parser.py"})'),
        LostMessage(2, "assistant", "It is in src/parser.py, and in parser.py and parser.py again."),
        LostMessage(3, "user", "Look at ./src/parser.py and write notes.txt."),
    ]
    assert [one.text for one in of_kind(losses(lost, "", "", ""), LossKind.FILE)] == ["src/parser.py"]
    assert not of_kind(losses(lost, "the client still sends shop/src/parser.py", "", ""), LossKind.FILE)
    elsewhere = losses(lost, "/home/ann/shop/src/lexer.py", "", "")
    assert of_kind(elsewhere, LossKind.FILE), "the same folder is not the same file"
