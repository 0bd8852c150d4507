"""Conversations over time: who is speaking, what was stored of them, and how a request continues that."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import StrEnum

from palimpsest.domain.blocks import StoredBlock
from palimpsest.domain.frozen import frozen
from palimpsest.domain.memories import Reach
from palimpsest.domain.overflow import Cut


class Role(StrEnum):
    """Who is speaking: a conversation of the user's, an agent's own conversation, or a request beside one."""

    MAIN = "main"
    SUBAGENT = "subagent"
    SIDE = "side"


class Event(StrEnum):
    """What the client did to its history since the request before, in the same conversation."""

    START = "start"
    APPEND = "append"
    TOOL = "tool"
    EDIT = "edit"
    RETRY = "retry"
    SUMMARY = "compaction:summary"
    TRUNCATE = "compaction:truncate"
    CLEAR = "compaction:clear_tool_results"

    @property
    def is_compaction(self) -> bool:
        return self.startswith("compaction:")


class LinkKind(StrEnum):
    """What can lead a later request back to a conversation."""

    ANSWER = "answer"  # an assistant text that we handed out
    CALL = "call"  # a tool-call id that we handed out
    MESSAGE = "message"  # a long message of the client's own
    ECHO = "echo"  # of an answer to a side request: a shingle that the summary holds, or what only the provider reads
    PHRASE = "phrase"  # a shingle of an answer to a main request: stands in the transcript that a summariser gets
    TASK = "task"  # an argument of a tool call that we handed out: the first message of a sub-agent
    CLIENT_ID = "client_id"  # an id that the client sends
    REPLY = "reply"  # id of an answer that we handed out, or of a part of it: may be sent instead of what it names


@frozen
class Speaker:
    """Who sent this request, as far as it says so itself."""

    tenant: str  # "" = unresolved: no memory
    user: str = ""
    scope: str = ""  # project, from x-palimpsest-scope
    # Keyed hash of the folder that an agent works in, as it tells the model; < 0: of its prompt instead; 0: of neither.
    folder: int = 0
    client_ids: tuple[str, ...] = ()  # ids the client sends, best first, each "signal:value"
    parent_ids: tuple[str, ...] = ()  # ids of the conversation that a sub-agent serves, likewise
    subagent_hint: bool = False  # a header says outright that a sub-agent is speaking
    retry_hint: bool = False  # a header says that this is the same request once more
    farthest: Reach = Reach.TENANT  # how far its key lets it look, whatever the policy allows
    is_read_only: bool = False  # its key changes nothing
    is_of_users: bool = False  # its key is for some users: what others said, or nobody by name, is closed to it
    is_of_scopes: bool = False  # the same of projects
    is_anybody: bool = False  # its request is only counted, and names no user where the wire has no place for one

    @property
    def names_conversation(self) -> bool:
        """Whether it says by our own header which conversation this is: then no other one is it."""
        return any(value.startswith("palimpsest:") for value in self.client_ids)

    def reach(self, wanted: Reach) -> Reach:
        """How far it may look where the policy wants this: a user's other conversations need a user."""
        order = list(Reach)
        reach = min(wanted, self.farthest, key=order.index)
        return Reach.CONVERSATION if reach is Reach.USER and not self.user else reach


@frozen
class Shape:
    """What a main request of a conversation looks like; a side request differs. Stored with the head."""

    model: str = ""
    tool_names: tuple[str, ...] = ()
    instructions: tuple[int, ...] = ()  # fingerprints of the instructions; weak evidence only
    opens: int = 0  # how the first of them begins; dates and looked-up texts stand further down
    stream: bool = False
    user_agent: str = ""
    capped: bool = False  # the request limits the length of the answer
    tools_tokens: int = 0  # what the tools say: other names, or other descriptions, seldom have as many


@frozen
class Head:
    """
    The newest state of one branch of a conversation: its history and the answer to it, in order.

    The four sequences run in parallel: `fulls` and `openings` (fingerprints), `occurrences` (row ids, rising with
    journal order), `flags` (see `HeadFlag`).
    """

    conversation: str
    turn: int
    role: Role
    fulls: Sequence[int]
    openings: Sequence[int]
    occurrences: Sequence[int]
    flags: Sequence[int]
    shape: Shape = Shape()
    request_length: int = 0  # how many of them the client sent; the rest is the answer
    compactions: int = 0  # how often this branch was compacted
    event: Event = Event.START
    lost: Sequence[int] = ()  # occurrences that compactions of this branch took away; edits are no loss
    # The occurrence of the message in which the newest compaction was answered, with a restore block or without.
    restored_at: int = 0  # 0: there was none, or that message is gone
    is_untold: bool = False  # nothing was looked for at the newest compaction, or it failed: see `Turn`
    blocks: tuple[StoredBlock, ...] = ()  # said in the conversation and still to be said again, in journal order
    tokens: int = 0  # of all of it, blocks and tools included, as the upstream counted or as we did; 0 unknown
    cut: Cut = Cut()  # what does not go upstream of its messages
    is_named: bool = False  # our own header names the conversation: by that name alone it is continued

    def index_of(self, occurrence: int) -> int | None:
        """Where an occurrence stands in the history; None: nowhere. As a rule they rise."""
        at = bisect_left(self.occurrences, occurrence)
        if at < len(self.occurrences) and self.occurrences[at] == occurrence:
            return at
        return next((at for at, one in enumerate(self.occurrences) if one == occurrence), None)


class HeadFlag:
    """Bits of `Head.flags`."""

    USER = 1
    ASSISTANT = 2
    TOOL = 4
    SUMMARY = 8  # put there by the client's compaction
    LONG = 16  # text of 60 characters or more
    OURS = 32  # an answer that passed through this proxy
    CALLS = 64  # an assistant message that calls tools
    COMPACTED = 128  # the provider put something of its own in place of what stood before it
    ERASED = 256  # its text was erased: only its fingerprints are left
    RETIRED = 512  # it is stored, but neither recalled nor found until that is undone
    SWEPT = 1024  # erased for its age, by retention
    ASIDE = 2048  # in the user's role, but written by the client: neither found nor quoted
    TYPED = 4096  # of a summary: a person wrote what stands behind it in the same message


@frozen
class Link:
    """One trace that a stored conversation left and that this request carries."""

    kind: LinkKind
    fingerprint: int
    conversation: str
    role: Role  # of the request that left it
    turn: int


@frozen
class Clues:
    """
    What to look up for one request: fingerprints by kind, all inside one tenant.

    Conversations of other users than `user` are left out, whether that is named or "", and so are those of other
    projects than `scope`: two may hold the same words. None leaves out none. Those of nobody, or of no project, are
    left out only where `is_of_users` or `is_of_scopes` says so.
    """

    tenant: str
    prints: Mapping[LinkKind, Sequence[int]]
    user: str | None = ""
    is_of_users: bool = False
    scope: str | None = None
    is_of_scopes: bool = False


@frozen
class KnownHistory:
    """What the store knows of the clues: the links that exist and the heads of the conversations they lead to."""

    links: tuple[Link, ...] = ()
    heads: tuple[Head, ...] = ()


@frozen
class Follows:
    """The request of before, where all of its messages stand in front of this one's."""

    turn: str  # its `Turn.id`
    speaker: Speaker
    messages: int  # of its history


@frozen
class Continuation:
    """What to look up for a request that goes on from another: the turn of that, and the fingerprint of its answer."""

    tenant: str
    turn: str
    answer: int


@frozen
class Lineage:
    """
    How a request continues what was seen.

    `kept[i]` is the index into `head` of the i-th history message, or -1 where it is new. `dropped` are indexes into
    `head` that the client no longer sends, `held` those that the provider puts in front of what it sends. `evidence`
    says why, in words for `explain`.
    """

    event: Event
    role: Role
    head: Head | None = None
    kept: tuple[int, ...] = ()
    changed: tuple[int, ...] = ()  # kept, but their text changed behind the same opening
    dropped: tuple[int, ...] = ()
    held: tuple[int, ...] = ()
    summary_at: tuple[int, ...] = ()  # indexes into the history: texts that stand for what was dropped
    parent: str = ""  # conversation that a side request or sub-agent serves
    ambiguous: bool = False
    window_full: bool = False  # a sliding window that was full before: one state, not an alarm each time
    summarises: bool = False  # a side request whose answer may come back as a summary
    restores_again: bool = False  # the newest compaction is not answered, or an edit took the message away that was
    evidence: tuple[str, ...] = ()
    repeats: tuple[Head, tuple[int, ...]] | None = None  # by a request for a compaction; indexes as `kept`
    goes_on: bool = field(default=False, compare=False)  # all of the head stands first, and behind it what is new

    @property
    def restores(self) -> bool:
        """Whether the model sees a history that was compacted, and nothing yet of what that took away."""
        compacts = self.event in (Event.SUMMARY, Event.TRUNCATE) and not self.window_full
        return compacts or self.restores_again

    @property
    def fresh(self) -> tuple[int, ...]:
        """Indexes of the history messages that are new."""
        if self.goes_on and self.head is not None:
            return tuple(range(len(self.head.fulls), len(self.kept)))
        return tuple(at for at, index in enumerate(self.kept) if index < 0)
