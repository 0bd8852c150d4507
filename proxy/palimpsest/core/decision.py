"""
The decision on one request: what it continues, what is added to it, and why nothing is.

Whatever is said of it afterwards, to the client, the log or the archive, is derived from this one value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING

from palimpsest.core.block.explanation import explanation
from palimpsest.core.block.placement import Replay, insertions
from palimpsest.core.block.pressure import pressure
from palimpsest.core.overflow.view import View, cut_of
from palimpsest.core.reading import Reading
from palimpsest.domain import (
    Added,
    Block,
    BlockKind,
    Diagnosis,
    Event,
    Insertion,
    Json,
    Lineage,
    NewCut,
    Note,
    Recalled,
    Shape,
    frozen,
)
from palimpsest.domain.overflow import ranges

if TYPE_CHECKING:
    from palimpsest.core.facts.choice import FactChoice

LATE = (Note.DEADLINE, Note.FAULT, Note.INDEXING)
"""Why nothing came back that will, if it is looked for again."""

UNTOLD = (*LATE, Note.TOO_LONG)
"""Why nothing of a new cut came back that may come back at the next request."""


@frozen
class Decision:
    """
    The decision on one request.

    `block` is new, and carried by message `anchor`; `replayed` are the earlier ones that are repeated. `cut` says of
    each memory that was found and not packed why, by its id.
    """

    reading: Reading
    shape: Shape  # with what a provider that holds the history need not be sent again
    diagnosis: Diagnosis  # holds the speaker, the conversation, the lineage and the pressure
    own_tokens: int  # of what goes upstream of the client's own, what the provider holds included
    replayed: Replay = field(default_factory=Replay)
    drops_blocks: bool = False  # the earlier ones do not fit any more
    block: Block | None = None
    anchor: int = -1
    note: Note | None = None
    recalled: Recalled | None = None
    cut: Mapping[int, str] = field(default_factory=dict)
    fact_choice: FactChoice | None = None  # the facts in the block, and what became of the others; None: not looked up
    is_unlinked: bool = False  # what it continues could not be looked up
    view: View | None = None  # what the model gets where old messages stay behind; blocks stand in its messages
    reply_tokens: int | None = None  # the longest answer that is asked for; None: as the client wants it
    would_trim_tokens: int = 0  # that the overflow policy would take out if it were `trim`

    @property
    def lineage(self) -> Lineage:
        """The lineage of what the client sent."""
        return self.view.client_lineage if self.view else self.diagnosis.lineage

    @property
    def sent(self) -> Reading:
        """The part of what the client sent that goes upstream."""
        return self.view.reading if self.view else self.reading

    @property
    def client_anchor(self) -> int:
        """`anchor` in the messages that the client sent."""
        has_moved = self.view is not None and 0 <= self.anchor < len(self.view.origins)
        return self.view.origins[self.anchor] if self.view and has_moved else self.anchor

    @property
    def client_tokens(self) -> int:
        """Tokens of the request as the client sent it, what the provider holds included."""
        return self.view.client_tokens if self.view else self.own_tokens

    @property
    def window_cut(self) -> NewCut:
        """The cut that holds from here on: what it leaves out of the conversation."""
        if self.view is None:
            return NewCut()
        is_untold = self.view.is_new and self.block is None and (self.lineage.head is None or self.note in UNTOLD)
        return cut_of(self.view, self.reading, self.lineage, is_untold=is_untold)

    @property
    def is_untold(self) -> bool:
        """Whether a compaction got nothing back, and the next request may get what it took away."""
        head = self.lineage.head
        if self.lineage.event is Event.RETRY:
            return head is not None and head.is_untold
        is_idle = self.note is Note.NOTHING_RELEVANT and self.diagnosis.query is None
        return self.lineage.restores and self.block is None and (is_idle or self.note in LATE)

    @property
    def conversation(self) -> str:
        return self.diagnosis.conversation

    @property
    def added(self) -> Added:
        return Added(self.replayed.tokens + self._new_tokens, self.own_tokens, self.replayed.tokens)

    @property
    def billed(self) -> Added:
        """What blocks add to the whole prompt, including earlier ones that the provider holds."""
        standing = self.replayed.visible_tokens
        held = standing - self.replayed.tokens
        return Added(standing + self._new_tokens, self.own_tokens - held, standing)

    @property
    def _new_tokens(self) -> int:
        return self.block.tokens if self.block else 0

    @property
    def reminders(self) -> tuple[int, ...]:
        """The passages in the block that somebody asked for."""
        if self.recalled is None or self.block is None or self.block.kind is BlockKind.FACTS:
            return ()
        found = self.recalled.candidates
        return tuple(one.memory.id for one in found if one.is_reminder and one.memory.id not in self.cut)

    @property
    def insertions(self) -> tuple[Insertion, ...]:
        """What to add to the request, earlier blocks first."""
        return insertions(self.replayed, (self.anchor, self.block) if self.block else None)

    @property
    def explain(self) -> Json:
        """What `palimpsest explain` shows."""
        told = (
            replace(self.diagnosis, lineage=self.lineage),
            self.note,
            self.recalled,
            self.block,
            self.cut,
            self.added,
            self.fact_choice,
        )
        return explanation(*told) | ({"overflow": overflow} if (overflow := self._overflow) else {})

    @property
    def _overflow(self) -> Json:
        told: Json = {}
        if (view := self.view) is not None:
            counts = {
                "dropped": len(view.omission.drops),
                "stubs": len(view.omission.stubs),
                "clips": len(view.omission.clips),
            }
            told = {"trimmed_tokens": view.trimmed_tokens, **counts, "is_new": view.first_new >= 0}
            if view.first_new >= 0:  # positions in what the client sent; later requests leave out the same
                told["left_out"] = {
                    "removed": ranges(view.omission.drops),
                    "stubs": ranges(view.omission.stubs - view.omission.drops),
                    "shortened": sorted(view.omission.clips),
                }
        if self.reply_tokens is not None:
            told["reply_tokens"] = self.reply_tokens
        return told | ({"would_trim_tokens": self.would_trim_tokens} if self.would_trim_tokens else {})

    def bare(self, note: Note, window_tokens: int) -> Decision:
        """The decision where the request is forwarded as the client sent it; `note` says why."""
        now = pressure(self.client_tokens, window_tokens, self.diagnosis.pressure.reply_tokens)
        diagnosis = replace(self.diagnosis, pressure=now, lineage=self.lineage)
        return Decision(self.reading, self.shape, diagnosis, self.client_tokens, note=note, recalled=self.recalled)
