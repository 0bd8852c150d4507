"""
The decision on one request: what it continues, what is added to it, and why nothing is.

Whatever is said of it afterwards, to the client, the log or the archive, is derived from this one value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from palimpsest.core.block.explanation import explanation
from palimpsest.core.block.placement import Replay, insertions
from palimpsest.core.block.pressure import pressure
from palimpsest.core.facts.choice import FactChoice
from palimpsest.core.reading import Reading
from palimpsest.domain import Added, Block, Diagnosis, Insertion, Json, Lineage, Note, Recalled, Shape
from palimpsest.domain.frozen import frozen


@frozen
class Decision:
    """
    What memory makes of one request.

    `block` is new, and carried by message `anchor`; `replayed` are the earlier ones that are repeated. `cut` says of
    each memory that was found and not packed why, by its id.
    """

    reading: Reading
    shape: Shape  # with what a provider that holds the history need not be sent again
    diagnosis: Diagnosis  # holds the speaker, the conversation, the lineage and the pressure
    own_tokens: int  # of the request as the client sent it, what the provider holds included
    replayed: Replay = field(default_factory=Replay)
    drops_blocks: bool = False  # the earlier ones do not fit any more
    block: Block | None = None
    anchor: int = -1
    note: Note | None = None
    recalled: Recalled | None = None
    cut: Mapping[int, str] = field(default_factory=dict)
    fact_choice: FactChoice | None = None  # the facts in the block, and what became of the others; None: not looked up

    @property
    def lineage(self) -> Lineage:
        return self.diagnosis.lineage

    @property
    def conversation(self) -> str:
        return self.diagnosis.conversation

    @property
    def added(self) -> Added:
        return Added(self.replayed.tokens + self._new_tokens, self.own_tokens, self.replayed.tokens)

    @property
    def billed(self) -> Added:
        """What blocks add to the whole prompt, including earlier ones that the provider holds."""
        standing = self.replayed.standing_tokens
        held = standing - self.replayed.tokens
        return Added(standing + self._new_tokens, self.own_tokens - held, standing)

    @property
    def _new_tokens(self) -> int:
        return self.block.tokens if self.block else 0

    @property
    def insertions(self) -> tuple[Insertion, ...]:
        """What to add to the request, earlier blocks first."""
        return insertions(self.replayed, (self.anchor, self.block) if self.block else None)

    @property
    def explain(self) -> Json:
        """What `palimpsest explain` shows."""
        return explanation(self.diagnosis, self.note, self.recalled, self.block, self.cut, self.added, self.fact_choice)

    def bare(self, note: Note, window_tokens: int) -> Decision:
        """The decision where the request is forwarded as the client sent it; `note` says why."""
        now = pressure(self.own_tokens, window_tokens, self.diagnosis.pressure.reply_tokens)
        diagnosis = replace(self.diagnosis, pressure=now)
        return Decision(self.reading, self.shape, diagnosis, self.own_tokens, note=note, recalled=self.recalled)
