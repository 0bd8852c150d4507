"""What stands for a compacted history fits its room, tells how the work stood last, and is one block of ours."""

from __future__ import annotations

from palimpsest.core.block.compacted import (
    COMPACTED_CHARS,
    READING_COMPACTED,
    compacted,
    last_messages,
    quotes_budget,
    room_chars,
)
from palimpsest.core.block.packing import pack
from palimpsest.domain import Account, AccountLine, BlockKind, Budget, Candidate, Json, Memory, Message
from palimpsest.wire.frame import without_blocks
from palimpsest.wire.message import read_message

NEVER = 10_000


def message(role: str, text: str, **more: Json) -> Message:
    return read_message({"role": role, "content": text} | more)


def test_a_small_window_leaves_little_room() -> None:
    assert room_chars(128_000) == COMPACTED_CHARS
    assert room_chars(8_000) == 4_000


def test_the_last_messages_are_those_that_the_client_does_not_keep() -> None:
    said = [message("assistant", "First."), message("user", "Go on."), message("system", "Be brief.")]
    lines, places = last_messages([*said, message("assistant", "Second."), message("tool", "Done.")], NEVER)
    assert lines == "last-assistant: First.\nlast-assistant: Second.\nlast-tool: Done.\n"
    assert places == ((0, True), (3, True), (4, True))


def test_the_newest_come_first_into_little_room_and_long_ones_keep_both_ends() -> None:
    long = "begins " + "x" * NEVER + " ends"
    lines, places = last_messages([message("assistant", long), message("assistant", long)], 1_000)
    assert places == ((1, False),)
    assert lines.startswith("last-assistant: begins ") and lines.endswith(" ends\n") and len(lines) < 1_000
    assert last_messages([message("assistant", long)], 10) == ("", ())


def test_all_of_it_is_one_block_of_ours() -> None:
    memory = Memory(1, 7, "c-1", 7, "user", "The ferry leaves at nine.", 0.0)
    quotes, _ = pack([Candidate(memory, 1.0)], Budget(2_000, 600), BlockKind.RESTORE)
    account = Account((AccountLine("edited", "sails.py", (8,)),), (AccountLine("user", "Always reef early.", (9,)),))
    for told in (None, account):
        for said in (None, quotes):
            for last in ("", "last-assistant: Done.\n"):
                block = compacted(said, told, last)
                assert READING_COMPACTED in block.text
                assert (told or said or last) == "" or without_blocks(block.text) == ""
    whole = compacted(quotes, account, "last-assistant: Done.\n")
    assert (whole.occurrences, whole.mentions) == ((7,), (8, 9))
    order = ["edited: sails.py", "The ferry leaves", "Always reef early", "last-assistant: Done."]
    assert sorted(order, key=whole.text.index) == order


def test_quotes_take_what_the_rest_leaves() -> None:
    account = Account((AccountLine("edited", "x" * 1_000, (8,)),))
    assert quotes_budget(4_000, None, "").chars > quotes_budget(4_000, account, "last").chars > 2_000
    assert quotes_budget(100, account, "last").chars == 0
