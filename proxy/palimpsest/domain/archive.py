"""Turns on their way to the archive: the request as a diff, its answer, and the form in which both are stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from enum import StrEnum
from typing import Literal

from palimpsest.domain.blocks import Block
from palimpsest.domain.costs import Cost
from palimpsest.domain.frozen import frozen
from palimpsest.domain.history import Event, LinkKind, Role, Shape
from palimpsest.domain.overflow import NewCut
from palimpsest.domain.requests import Fingerprint, Json, Message

TURN_PREFIX = "t-"  # of a turn's id: tells it from a conversation's


@frozen
class NewMessage:
    """A message to journal: its place in the request's history and what is needed to find it again."""

    message: Message
    fingerprint: Fingerprint
    position: int  # index in the request's whole message list, what the provider holds counted in front
    flags: int = 0


@frozen
class ParentListing:
    """All of the parent's listing, in a row from `position` on: what a request carries that does nothing but go on."""

    position: int
    occurrences: Sequence[int]

    @property
    def stop(self) -> int:
        return self.position + len(self.occurrences)


@frozen
class Turn:
    """
    One request to journal, as a diff against the head it continues.

    `kept` are the parent's occurrence ids that the request still carries, in order and with their positions; `whole`
    stands for them where they are all of the parent's and nothing new stands between them. `new` is the rest.
    Instructions are part of `new` whenever their text was not in the parent.
    """

    id: str  # unique text, made by the caller; the answer refers to it
    tenant: str
    conversation: str
    role: Role
    event: Event
    kept: tuple[tuple[int, int], ...]  # (position, occurrence)
    new: tuple[NewMessage, ...]
    parent_turn: int | None
    parent_conversation: str
    shape: Shape
    links: tuple[tuple[LinkKind, int], ...]
    model: str
    user: str
    scope: str
    created_at: float
    block: Block | None = None
    anchor: int = -1  # position of the message that carries the block
    quotes: tuple[tuple[int, bool], ...] = ()  # positions of its own messages that the block quotes as well; if whole
    replaces_blocks: bool = False  # a restore at the cap sheds the older blocks of this conversation
    compactions: int = 0
    lost: tuple[int, ...] = ()  # occurrences that this request's compaction took away
    restored_at: int = -1  # position of the message in which the newest compaction is answered; -1: as 0 of `Head`
    is_untold: bool = False  # its compaction got nothing back, as nobody asked or memory failed: the next one may
    summarises: bool = False
    last_full: int = 0  # fingerprint of the last message: a short answer is known only together with it
    tokens: int = 0  # of the prompt as it is sent, what the provider holds included
    upstream: str = ""  # name of the one that it is for; "" unknown
    is_bare: bool = False  # sent once more as the client sent it: its blocks were too much, and are not to be repeated
    explain: Json = field(default_factory=dict)
    chars: int | None = None  # in all texts of the messages in `new`; None: not counted yet
    size_bytes: int | None = None  # of memory that they take; None: not measured yet
    request: str = ""  # id of the request, for whoever looks for it later
    traceparent: str = ""  # W3C trace context, where the request is traced
    whole: ParentListing | None = None  # beside `kept`, which is empty then
    policy: int = 0  # number of the policy that it was decided by
    cost: Cost | None = None  # as far as it is known before the answer; None: nobody counts, as of what is imported
    reminders: tuple[int, ...] = ()  # passages in the block because somebody asked for them
    cut: NewCut = NewCut()  # what does not go upstream of its messages, nor of those that follow
    is_named: bool = False  # as of `Head`
    folder: int = 0  # as of `Speaker`

    @property
    def length(self) -> int:
        """Messages of the request, with those that the provider holds: the answer's position."""
        stops = (self.whole.stop if self.whole else 0, *(at + 1 for at, _ in self.kept))
        return max((*stops, *(new.position + 1 for new in self.new)))

    @property
    def carried(self) -> tuple[tuple[int, int], ...]:
        """Position and occurrence of all that it still carries of the parent, one by one."""
        return (*self.kept, *enumerate(self.whole.occurrences, self.whole.position)) if self.whole else self.kept


@frozen
class Passage:
    """One findable piece of a stored text: character offsets, full-text terms (repeats kept), tags, kind."""

    start: int
    stop: int
    terms: tuple[str, ...]
    tags: tuple[str, ...] = ()
    kind: str = "episodic"  # or "semantic", "procedural"


@frozen
class Entry:
    """A message in the form that reaches the disk: redacted, media by reference, cut into passages."""

    new: NewMessage
    digest: bytes  # keyed hash of the message as sent: equal messages of a tenant are stored once
    text: str
    rest: str  # JSON of the message, without `content` when that is exactly `text`
    passages: tuple[Passage, ...] = ()  # empty: journalled, never recalled (instructions, summaries, side requests)


@frozen
class Record:
    """A turn and its entries, ready to commit."""

    turn: Turn
    entries: tuple[Entry, ...]
    scopes: tuple[int, ...] = ()  # `scope_prints` of what it belongs to, its conversation first


class Ending(StrEnum):
    """How an answer ended."""

    COMPLETE = "complete"
    CLIENT_GONE = "client-gone"
    UPSTREAM_BROKE = "upstream-broke"
    TOO_LARGE = "too-large"
    UNANSWERED = "unanswered"  # with an error, or nobody answered: what it says is kept, if its tenant is known
    REFUSED = "refused"  # its credential was not accepted: the turn leaves no content


@frozen
class Quarantined:
    """A request or an answer that cannot be stored: why, and what tells it from others, but nothing of what it says."""

    turn_id: str
    part: Literal["request", "answer"]
    reason: str
    chars: int
    digest: bytes  # keyed
    created_at: float


@frozen
class ResentTurn:
    """A turn as it was sent in the end: what was added to it made it too long. Tokens of the prompt, and the record."""

    tokens: int
    explain: Json
    cut: NewCut = NewCut()


@frozen
class Answer:
    """What was heard of the answer to one turn. `message` is None when nothing could be read."""

    turn_id: str
    ending: Ending
    message: Message | None = None
    fingerprint: Fingerprint | None = None
    flags: int = 0
    links: tuple[tuple[LinkKind, int], ...] = ()
    prompt_tokens: int | None = None  # as the upstream counted
    created_at: float = 0.0
    bare: ResentTurn | None = None  # the request went without what was added to it
    cost: Cost | None = None  # None: as in `Turn`


@frozen
class AnswerRecord:
    """An answer in the form that reaches the disk; `entry` is None when there is no content to keep."""

    answer: Answer
    entry: Entry | None
    tenant: str = ""  # of the turn; "" it has to be looked up
