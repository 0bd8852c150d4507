"""What a compaction took away is told by kind, with what came back of it and what was used."""

from __future__ import annotations

from palimpsest.core.work.account import Lost
from palimpsest.core.work.loss import COMPARED_CHARS, OF_KIND, Loss, LossKind, losses

LOST = (
    Lost(1, "user", "Never push to main without a review, please."),
    Lost(2, "assistant", 'I look at it.\nbash({"command": "pytest tests/parser"})'),
    Lost(3, "tool", "AssertionError: 3 != 4\n2 failed"),
    Lost(4, "assistant", 'read_file({"path": "src/parser.py"})'),
    Lost(5, "tool", "class Parser: ..."),
    Lost(6, "user", "We agreed to deploy on Tuesdays only."),
)


def of_kind(found: list[Loss], kind: LossKind) -> list[Loss]:
    return [one for one in found if one.kind is kind]


def test_things_are_told_by_kind_with_the_message_that_named_them_last() -> None:
    found = losses(LOST, "", "", "")
    assert [(one.kind.value, one.occurrence) for one in found] == [
        ("rule", 1),
        ("decision", 6),
        ("file", 4),
        ("command", 2),
        ("error", 2),
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
    found = losses([Lost(1, "user", rule)], "", f"user: {rule[: COMPARED_CHARS + 1]}…", "")
    assert [one.came_back for one in of_kind(found, LossKind.RULE)] == [True]


def test_of_each_kind_the_newest_are_told() -> None:
    many = [Lost(at, "user", f"look at src/part{at}.py") for at in range(OF_KIND + 5)]
    found = of_kind(losses(many, "", "", ""), LossKind.FILE)
    assert [one.occurrence for one in found] == list(range(OF_KIND + 4, 4, -1))
