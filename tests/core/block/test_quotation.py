"""Which passages of a block an answer quotes."""

from __future__ import annotations

from palimpsest.core.block.quotation import count_quoted
from palimpsest.domain import BlockKind
from palimpsest.wire.frame import opened, passages_of
from palimpsest.wire.frame import quotation as line


def block(*passages: str) -> str:
    said = "[2026-03-05]\n" + "".join(line("user", passage) for passage in passages)
    return opened(BlockKind.RECALL, "Quoted earlier messages.") + said + "</palimpsest-memory>"


FERRY = "The ferry to the northern islands leaves from the old pier."
ROOM = "The archive is in room 3172: behind the stairs."
SHOES = "My shoe size is 43.5\nand my feet are wide."


def test_the_passages_of_a_block_are_what_was_said() -> None:
    assert passages_of(block(FERRY, ROOM, SHOES)) == [FERRY, ROOM, SHOES]


def test_words_in_a_row_are_a_quotation_and_words_here_and_there_are_none() -> None:
    assert count_quoted(block(FERRY, SHOES), "It leaves from the OLD pier, at nine.") == (1, 2)
    assert count_quoted(block(FERRY), "Islands have ferries; the pier is northern, and old.") == (0, 1)


def test_a_number_or_an_identifier_is_a_quotation() -> None:
    assert count_quoted(block(ROOM, FERRY), "Go to 3172.") == (1, 2)
    assert count_quoted(block("The key is in src/core/keys.py, they said."), "Look into src/core/keys.py") == (1, 1)


def test_what_the_question_says_is_no_quotation() -> None:
    question = "Who has the key of room 3172, and where does the ferry to the northern islands leave?"
    answer = "Nobody has the key of room 3172. The ferry to the northern islands: I do not know."
    assert count_quoted(block(ROOM, FERRY), answer, question) == (0, 2)


def test_nothing_is_quoted_of_nothing() -> None:
    assert count_quoted("", "anything") == (0, 0)
    assert count_quoted(block(ROOM), "") == (0, 1)
