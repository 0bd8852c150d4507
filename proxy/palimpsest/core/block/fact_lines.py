"""
Facts as lines of a block: one for each, in front of the messages that the block quotes.

    fact: user home: Lisbon (said 2026-05-02)
    fact: port: 5433 (said 2026-05-03, was 5432)
    fact: user allergic to: nuts (no longer holds)

What earlier blocks stated is read from these lines: they are repeated byte for byte, and so say best what the model
sees. A quoted message cannot pass for such a line, whatever it says: messages stand behind the first day.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from palimpsest.core.block.packing import GAP, READING, READING_ONE
from palimpsest.domain import BLOCK_CLOSE, PROJECT_SUBJECT, Block, BlockKind, Fact
from palimpsest.domain.days import day_of
from palimpsest.wire.frame import escaped, opened

READING_FACTS = READING.replace("Quoted", "Noted from", 1)
READING_BOTH = READING.replace("Quoted", "Noted and quoted", 1)
ROLE = "fact: "
VALUE_CHARS = 200  # the longest that patterns find; what a tool writes may be longer
EARLIER_CHARS = 60  # of the value of before: enough to know which it was
NAME_CHARS = 60  # of subject and slot
ENDED = "no longer holds"

_TAIL = re.compile(rf" \((?:said \d{{4}}-\d\d-\d\d(?:, was [^()]*)?|(?P<ended>{ENDED}))\)$")
_FLAT = str.maketrans("()", "[]")  # in what stands between our own brackets


def statement(fact: Fact) -> str:
    """
    A fact as one line; its wording is the same in every block.

    A value that names its slot itself ("decided to ...") does not repeat it.
    """
    said = printed_value(fact.value)
    return f"{ROLE}{said}" if said.lower().startswith(f"{fact.slot.lower()} ") else f"{_head(fact)}{said}"


def printed_value(value: str) -> str:
    """A value as it is printed in a line."""
    return _short(value, VALUE_CHARS)


def fact_line(fact: Fact, earlier: str = "") -> str:
    """
    A fact that holds, as a line of a block.

    Args:
        earlier: the value that its slot held before, "" where that need not be said.
    """
    was = f", was {_short(earlier.translate(_FLAT), EARLIER_CHARS)}" if earlier else ""
    return f"{statement(fact)} (said {day_of(fact.said_at)}{was})\n"


def ended_line(fact: Fact) -> str:
    """A fact that holds no longer, as a line of a block."""
    return f"{statement(fact)} ({ENDED})\n"


def stated_in_blocks(blocks: Iterable[str]) -> Mapping[str, bool]:
    """
    The statements that stand in blocks, in the order of the request.

    Returns:
        Whether each still holds, as the last block that states it says.
    """
    found: dict[str, bool] = {}
    for text in blocks:
        for line in text.splitlines()[2:]:
            if not line.startswith(ROLE):
                break
            if tail := _TAIL.search(line):
                found.pop(line[: tail.start()], None)  # the order says which was stated last
                found[line[: tail.start()]] = not tail["ended"]
    return found


def newest_value(fact: Fact, statements: Mapping[str, bool]) -> str:
    """The newest printed value of the slot of a fact; "" where blocks state none."""
    head = _head(fact)
    return next((said[len(head) :] for said in reversed(tuple(statements)) if said.startswith(head)), "")


def with_facts(block: Block | None, lines: Sequence[str], facts: tuple[tuple[str, int], ...]) -> Block:
    """
    A block with these lines in front of what it quotes.

    Args:
        block: as packed; None: nothing is quoted.
        facts: as `Block.facts`.

    Returns:
        Its tokens are not counted yet.
    """
    told = "".join(lines)
    if block is None:
        return Block(f"{opened(BlockKind.FACTS, READING_FACTS)}{told}{BLOCK_CLOSE}", BlockKind.FACTS, (), facts=facts)
    _, reading, quotes = block.text.split("\n", 2)
    head = opened(block.kind, READING_BOTH if reading in (READING, READING_ONE) else reading)
    return replace(block, text=f"{head}{told}{quotes}", facts=facts, tokens=0)


def _head(fact: Fact) -> str:
    """Everything of a statement in front of its value."""
    subject = "" if fact.subject == PROJECT_SUBJECT else f"{fact.subject} "
    return f"{ROLE}{_short(subject + fact.slot, NAME_CHARS)}: "


def _short(text: str, chars: int) -> str:
    """One line of at most so many characters, from which nothing can break out."""
    line = " ".join(text.split())
    return escaped(line if len(line) <= chars else f"{line[: chars - 1].rstrip()}{GAP}")
