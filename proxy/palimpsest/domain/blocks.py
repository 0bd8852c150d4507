"""Blocks: the text that memory adds to a request, and what it may cost."""

from __future__ import annotations

from enum import StrEnum

from palimpsest.domain.frozen import frozen

BLOCK_OPEN = "<palimpsest-memory"

BLOCK_CLOSE = "</palimpsest-memory>"


COMPACTED_ROLE = "compaction"
"""Role of a block that stands for a history: written out where its item is, and nowhere else."""


class BlockKind(StrEnum):
    RESTORE = "restore"
    RECALL = "recall"
    FACTS = "facts"  # quotes no message


@frozen
class Budget:
    """How much one block may say: characters of the whole rendered block, frame included."""

    chars: int
    passage_chars: int  # no single passage is longer
    least_worth: float = 0.0  # probability that each passage must have for each 100 characters of it


@frozen
class Block:
    """What the proxy says: the whole rendered text, frame included, and where every piece comes from."""

    text: str
    kind: BlockKind
    occurrences: tuple[int, ...]  # packed, in order of appearance
    tokens: int = 0
    role: str = ""  # "": inside the message that carries it; else a message of its own, of this role, in front of it
    # Told in it, with the values that they took the place of: id, and the occurrence that states it, 0 where none does.
    facts: tuple[tuple[str, int], ...] = ()
    mentions: tuple[int, ...] = ()  # occurrences of which it holds a few words, and whose rest may still be asked for

    @property
    def sources(self) -> tuple[int, ...]:
        """All messages that it holds words of: with one of them it goes."""
        facts = (source for _, source in self.facts if source)
        return tuple(dict.fromkeys((*self.occurrences, *self.mentions, *facts)))


@frozen
class StoredBlock:
    """A block said earlier, anchored to one occurrence of one user message, replayed byte for byte."""

    occurrence: int
    block: Block


@frozen
class Added:
    """What memory adds to one request, blocks of before included, and what the client itself sends; in tokens."""

    tokens: int
    own_tokens: int
    repeated_tokens: int = 0  # of `tokens`: blocks of before

    @property
    def share(self) -> float:
        """Of the client's own; 0 of nothing."""
        return self.tokens / self.own_tokens if self.own_tokens else 0.0


@frozen
class Compacted:
    """What stands for a history that the proxy compacted, and whose conversation it was, "" where nobody is named."""

    block: Block
    user: str
    scope: str
