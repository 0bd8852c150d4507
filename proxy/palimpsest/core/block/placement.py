"""
The place of a block in a request, and the replay of blocks that were added before.

A block is anchored to one occurrence of one user message and repeated byte for byte while that message is in the
request, so that the provider's prefix cache still matches; with its anchor it goes. It stands in the newest user turn,
never in front of the stable prefix, and never between a tool call and its result.
"""

from __future__ import annotations

from collections.abc import Sequence

from palimpsest.domain import COMPACTED_ROLE, Block, Chat, Insertion, Lineage, StoredBlock, frozen


@frozen
class Replay:
    """
    Earlier blocks, each with the index into `chat.messages` of the message that carries it.

    `held` stand in the history that the provider holds: they are not repeated.
    """

    repeated: tuple[tuple[int, StoredBlock], ...] = ()
    held: tuple[StoredBlock, ...] = ()

    @property
    def tokens(self) -> int:
        return sum(stored.block.tokens for _, stored in self.repeated)

    @property
    def visible_tokens(self) -> int:
        """Tokens of all blocks that the model sees."""
        return self.tokens + sum(stored.block.tokens for stored in self.held)

    @property
    def visible(self) -> tuple[StoredBlock, ...]:
        """The blocks that the model sees, in the order of the conversation."""
        return (*self.held, *(stored for _, stored in self.repeated))

    @property
    def blocks(self) -> tuple[Block, ...]:
        return tuple(stored.block for stored in self.visible)

    @property
    def occurrences(self) -> frozenset[int]:
        """The messages that these blocks quote."""
        return frozenset(occurrence for stored in self.visible for occurrence in stored.block.occurrences)


def replay(places: Sequence[int], lineage: Lineage) -> Replay:
    """
    The head's blocks whose anchors the request still has, in its order; apart, those that the provider holds.

    Args:
        places: indexes into `chat.messages` of the history.
    """
    if lineage.head is None or not lineage.head.blocks:
        return Replay()
    said = (stored for stored in lineage.head.blocks if stored.block.role != COMPACTED_ROLE)
    by_occurrence = {stored.occurrence: stored for stored in said}
    if lineage.goes_on:  # all anchors are where they were
        anchors = ((lineage.head.index_of(anchor), block) for anchor, block in by_occurrence.items())
        standing = sorted((at, block.occurrence) for at, block in anchors if at is not None)
        return Replay(tuple((places[at], by_occurrence[anchor]) for at, anchor in standing))
    changed = set(lineage.changed)
    repeated = []
    for at, index in enumerate(lineage.kept):
        if index >= 0 and at not in changed and (block := by_occurrence.get(lineage.head.occurrences[index])):
            repeated.append((places[at], block))
    held = (by_occurrence.get(lineage.head.occurrences[index]) for index in lineage.held)
    return Replay(tuple(repeated), tuple(block for block in held if block))


def place(chat: Chat, anchor: int, placement: str) -> tuple[int, str]:
    """
    The place of a new block: the index into `chat.messages` that carries it, and the role of a message of its own.

    Args:
        anchor: index of the newest user message that is no tool result; -1: none survived, and the block becomes a
            message of its own behind the instructions, where no tool call can be torn from its result.
        placement: `user`, or `system`: behind the leading instructions, whatever the anchor (CALMem); and behind the
            results of calls that the provider holds.
    """
    if placement == "user" and anchor >= 0:
        return anchor, ""
    if chat.held:
        first = next((at for at, m in enumerate(chat.messages) if m.role == "user"), len(chat.messages))
    else:
        first = next((at for at, m in enumerate(chat.messages) if not m.is_instruction), len(chat.messages) - 1)
    return first, placement


def insertions(replayed: Replay, new: tuple[int, Block] | None) -> tuple[Insertion, ...]:
    """What to add to the request: earlier blocks where they stood, and the new one."""
    placed = [(at, stored.block) for at, stored in replayed.repeated]
    return tuple(Insertion(at, block.text, block.role) for at, block in [*placed, *([new] if new else ())])
