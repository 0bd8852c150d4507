"""
Turns as diffs: the journal is a tree in which each turn says what it kept of its parent's messages.

A turn's *listing* is its history in order, instructions left out, and the answer behind it. A child keeps runs of its
parent's listing, `[position, index, count]`, so that a conversation that grows costs the same at every turn; whatever
else it keeps is named by its occurrence, `[position, occurrence]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import orjson

from palimpsest.domain.frozen import frozen
from palimpsest.store.engine import Ask

if TYPE_CHECKING:
    from palimpsest.domain.portable_turn import Run

# A turn that keeps nothing of its parent's listing needs no parent to be rebuilt: the walk ends there.
CHAIN = """
WITH RECURSIVE chain(id, parent, kept, messages) AS (
    SELECT id, parent, kept, messages FROM turn WHERE id = ?
    UNION ALL
    SELECT turn.id, turn.parent, turn.kept, turn.messages FROM chain JOIN turn ON turn.id = chain.parent
    WHERE chain.kept LIKE '{"runs":%'
)
SELECT id, kept, messages FROM chain ORDER BY id
"""
OF_CHAIN = """
SELECT occurrence.turn, occurrence.position, occurrence.id, occurrence.role IN ('system', 'developer')
FROM numbers(?) AS chain JOIN occurrence ON occurrence.turn = chain.value
"""


@frozen
class MessageList:
    """What one turn carried, as occurrences: its whole message list by position, and its listing."""

    messages: tuple[tuple[int, int], ...]
    listing: tuple[int, ...]


def encode_run(position: int, count: int) -> str:
    """The first `count` messages of the parent's listing, from `position` on."""
    return orjson.dumps({"runs": [[position, 0, count]]}).decode()


def encode_kept(kept: Iterable[tuple[int, int]], listing: Sequence[int]) -> str:
    """
    Encode the kept messages of a turn, as runs of its parent's listing.

    Args:
        kept: (position, occurrence), positions rising.
        listing: the parent's; () where it is not at hand.
    """
    kept = list(kept)
    if kept and len(kept) == len(listing) and kept == list(enumerate(listing, kept[0][0])):  # nearly always
        return encode_run(kept[0][0], len(kept))
    runs, others = runs_of(kept, listing)
    said = ({"runs": runs} if runs else {}) | ({"others": others} if others else {})
    return orjson.dumps(said).decode()


def runs_of(kept: Sequence[tuple[int, int]], listing: Sequence[int]) -> tuple[list[Run], list[tuple[int, int]]]:
    """Kept messages (position, occurrence) as runs of the parent's listing, and those that it lacks."""
    index_of = {occurrence: index for index, occurrence in enumerate(listing)}
    runs: list[Run] = []
    others: list[tuple[int, int]] = []
    for position, occurrence in kept:
        index = index_of.get(occurrence)
        if index is None:
            others.append((position, occurrence))
        elif runs and (position, index) == (runs[-1][0] + runs[-1][2], runs[-1][1] + runs[-1][2]):
            start, first, count = runs[-1]
            runs[-1] = (start, first, count + 1)
        else:
            runs.append((position, index, 1))
    return runs, others


def decode_kept(text: str, listing: Sequence[int]) -> list[tuple[int, int]]:
    """(position, occurrence) of what was kept, in no order."""
    said = orjson.loads(text)
    kept = [(position, occurrence) for position, occurrence in said.get("others", ())]
    for position, index, count in said.get("runs", ()):
        kept += zip(range(position, position + count), listing[index : index + count], strict=False)
    return kept


def message_list(ask: Ask, turn: int) -> MessageList:
    """What a turn carried, rebuilt from the diffs of its ancestors. A turn that is not there carried nothing."""
    chain = ask(CHAIN, (turn,))
    rows = ask(OF_CHAIN, (orjson.dumps([row[0] for row in chain]).decode(),))
    new: dict[int, list[tuple[int, int]]] = {row[0]: [] for row in chain}
    instructions = set()
    for owner, position, occurrence, is_instruction in rows:
        new[owner].append((position, occurrence))
        if is_instruction:
            instructions.add(occurrence)
    messages: list[tuple[int, int]] = []
    listing: list[int] = []
    for number, kept, length in chain:
        messages = sorted((*decode_kept(kept, listing), *(at for at in new[number] if at[0] < length)))
        answers = [occurrence for position, occurrence in sorted(new[number]) if position >= length]
        listing = [occurrence for _, occurrence in messages if occurrence not in instructions] + answers
    return MessageList(tuple(messages), tuple(listing))
