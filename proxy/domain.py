"""
The words of this house: what a request is, what was seen before, what was decided, what is remembered.

Plain frozen values, no behaviour beyond derived properties. Everything above speaks in these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, Literal

Json = dict[str, Any]

RawHeaders = Sequence[tuple[bytes, bytes]]
"""Headers as they stand on the wire: repeated names and their order kept. A client's names are in lower case."""

BLOCK_OPEN = "<palimpsest-memory"
BLOCK_CLOSE = "</palimpsest-memory>"


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
        return self.value.startswith("compaction:")


class Note(StrEnum):
    """Why no memory was added (`x-palimpsest-note`)."""

    OFF = "off"
    READ_ONLY = "read-only"
    SIDE_REQUEST = "side-request"
    CALM = "calm"
    NOTHING_RELEVANT = "nothing-relevant"
    TOOL_LOOP = "tool-loop"
    PRESSURE = "pressure"
    AMBIGUOUS = "ambiguous"
    DEADLINE = "deadline"
    FAULT = "fault"
    NO_TENANT = "no-tenant"
    WINDOW_FULL = "window-full"
    REPLAY_CAP = "replay-cap"  # blocks of before fill their share of the window: core/recall/diagnosis
    TOO_LARGE = "too-large"
    TOO_LONG = "too-long"


class Mode(StrEnum):
    """How far memory may go for one request (`x-palimpsest-memory`)."""

    ON = "on"
    READ_ONLY = "read-only"
    OFF = "off"


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


# --- what the client sent ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call an assistant message makes; `arguments` is the JSON text as sent."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    """
    One message, read but not changed.

    `text` is its text parts joined by newlines, blocks of ours taken out. `raw` is the JSON value as sent.
    """

    role: str
    text: str
    raw: Json
    name: str = ""
    calls: tuple[ToolCall, ...] = ()
    answers_call: str = ""  # the id of the call that this tool message answers
    media: tuple[str, ...] = ()  # URLs, or "sha256:<hex>;<bytes>" of inlined data
    opaque: tuple[str, ...] = ()  # "sha256:..." of what a provider made of a history, as a rule for itself to read
    refers: tuple[str, ...] = ()  # ids of parts that are not sent: the provider has kept them

    @property
    def is_instruction(self) -> bool:
        """System and developer messages stand outside the history: clients rewrite them at will."""
        return self.role in ("system", "developer")


@dataclass(frozen=True, slots=True)
class Layout:
    """
    Where the elements of its list stand in a body: `head`, `run` and `tail` are the body, one behind the other.

    `run` are the elements and what stands between them; each is an object, from `starts` to `stops` in it. `outside` is
    the body as parsed, without its list. Made by `wire.layout`.
    """

    head: bytes
    run: bytes
    tail: bytes
    starts: Sequence[int]
    stops: Sequence[int]
    outside: Json


@dataclass(frozen=True)
class Chat:
    """One request, whatever its wire. `raw` is the parsed body, never changed in place; `body` the client's bytes."""

    messages: tuple[Message, ...]
    model: str
    body: bytes
    raw: Json
    user: str = ""
    tool_names: tuple[str, ...] = ()
    stream: bool = False
    max_reply_tokens: int | None = None
    places: tuple[int, ...] = ()  # of each message in the body's own list, -1 outside of it; (): they are the same
    held: bool = False  # the provider holds the history, and the request sends only what is new
    follows: str = ""  # id of the answer that such a request continues, where it names one
    compacts: bool = False  # it asks the provider to compact the history, and can mean nothing else
    layout: Layout | None = field(default=None, compare=False, repr=False)  # None: not known

    @cached_property
    def history(self) -> tuple[Message, ...]:
        """The messages without instructions: what lineage compares."""
        return tuple(m for m in self.messages if not m.is_instruction)


@dataclass(frozen=True, slots=True)
class Completion:
    """What was heard of one answer: its message (None: nothing readable), and the prompt tokens that it was billed."""

    message: Message | None = None
    prompt_tokens: int | None = None
    id: str = ""  # by which later requests may name it
    part_ids: tuple[str, ...] = ()  # by which they may stand for its parts, where the provider keeps them


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """
    Two keyed 63-bit hashes of one normalised message.

    `full`: role, squeezed text, tool names and arguments. `opening`: role and the first characters only, for clients
    that glue reminders to a message and take them off again, or cut it in its middle.
    """

    full: int
    opening: int


# --- what was seen before ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Shape:
    """What a main request of a conversation looks like; a side request differs. Stored with the head."""

    model: str = ""
    tool_names: tuple[str, ...] = ()
    instructions: tuple[int, ...] = ()  # fingerprints of the instructions; weak evidence only
    opens: int = 0  # how the first of them begins; dates and looked-up texts stand further down
    stream: bool = False
    user_agent: str = ""
    capped: bool = False  # the request limits the length of the answer


@dataclass(frozen=True, slots=True)
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
    blocks: tuple[StoredBlock, ...] = ()  # said in the conversation and still to be said again, in journal order
    tokens: int = 0  # of all of it, blocks and tools included, as the upstream counted or as we did; 0 unknown


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


@dataclass(frozen=True, slots=True)
class Link:
    """One trace that a stored conversation left and that this request carries."""

    kind: LinkKind
    print: int
    conversation: str
    role: Role  # of the request that left it
    turn: int


@dataclass(frozen=True, slots=True)
class Clues:
    """What to look up for one request: fingerprints by kind, all inside one tenant."""

    tenant: str
    prints: Mapping[LinkKind, Sequence[int]]


@dataclass(frozen=True, slots=True)
class Seen:
    """What the store knows of the clues: the links that exist and the heads of the conversations they lead to."""

    links: tuple[Link, ...] = ()
    heads: tuple[Head, ...] = ()


@dataclass(frozen=True, slots=True)
class Follows:
    """The request of before, where all of its messages stand in front of this one's."""

    turn: str  # its `Turn.id`
    speaker: Speaker
    messages: int  # of its history


@dataclass(frozen=True, slots=True)
class Continuation:
    """What to look up for a request that goes on from another: the turn of that, and the fingerprint of its answer."""

    tenant: str
    turn: str
    answer: int


# --- what was decided ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Speaker:
    """Who sent this request, as far as it says so itself."""

    tenant: str  # "" = unresolved: no memory
    user: str = ""
    scope: str = ""  # project, from x-palimpsest-scope
    client_ids: tuple[str, ...] = ()  # ids the client sends, best first, each "signal:value"
    parent_ids: tuple[str, ...] = ()  # ids of the conversation that a sub-agent serves, likewise
    subagent_hint: bool = False  # a header says outright that a sub-agent is speaking
    retry_hint: bool = False  # a header says that this is the same request once more


@dataclass(frozen=True, slots=True)
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
    evidence: tuple[str, ...] = ()

    @property
    def fresh(self) -> tuple[int, ...]:
        """Indexes of the history messages that are new."""
        return tuple(at for at, index in enumerate(self.kept) if index < 0)


class Tier(StrEnum):
    """Rungs of the pressure ladder (CALMem section 6)."""

    CALM = "calm"
    WARM = "warm"
    TIGHT = "tight"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Pressure:
    """How full the window is. Tokens of the prompt as it will be sent, replayed blocks included."""

    prompt_tokens: int
    window_tokens: int
    reply_tokens: int
    ratio: float
    tier: Tier


class BlockKind(StrEnum):
    RESTORE = "restore"
    RECALL = "recall"


@dataclass(frozen=True, slots=True)
class Budget:
    """How much one block may say: characters of the whole rendered block, frame included."""

    chars: int
    passage_chars: int  # no single passage is longer
    least_worth: float = 0.0  # probability that each passage must have for each 100 characters of it


class Generosity(StrEnum):
    """How readily memory speaks, and how much it says (policy `memory.generosity`)."""

    SPARING = "sparing"
    BALANCED = "balanced"
    GENEROUS = "generous"


class Reach(StrEnum):
    """How far recall looks (policy `scope`)."""

    CONVERSATION = "conversation"
    USER = "user"
    TENANT = "tenant"


@dataclass(frozen=True, slots=True)
class Query:
    """
    What to look for, where, and what must not come.

    `lost` are the occurrences of this conversation that may come back: what its compactions took away, and nothing else
    of it; None: all of it.
    `named` is there where nobody asks for anything: tags of what the new messages say. What was lost comes by what else
    it names then, and there is nothing to admit; `with_prose` also what neither tells nor names anything.
    `least_help` is the probability that memory helps, below which nothing comes; `wishes` is how many of the user's
    lasting wishes come with it, asked for or not.
    """

    tenant: str
    conversation: str
    text: str
    reach: Reach = Reach.CONVERSATION
    user: str = ""
    scope: str = ""
    lost: frozenset[int] | None = None
    visible_fulls: frozenset[int] = frozenset()  # fingerprints of what the model still sees
    excluded: frozenset[int] = frozenset()  # occurrences that replayed blocks already carry
    named: frozenset[str] | None = None
    with_prose: bool = True
    least_help: float = 0.0
    wishes: int = 0


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The decision before the look-up: what happened, what to look for, how much may be said, where."""

    speaker: Speaker
    conversation: str
    lineage: Lineage
    pressure: Pressure
    kind: BlockKind | None = None  # None: say nothing new
    note: Note | None = None
    budget: Budget | None = None
    query: Query | None = None
    anchor: int = -1  # index into chat.messages: the message that carries a new block; -1 none of them can
    sheds: bool = False  # replayed blocks are at their cap: a restore takes their place in one cut
    ask_journal: tuple[int, ...] = ()  # occurrences whose texts belong into the query; the request no longer has them


# --- what is remembered --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Memory:
    """One passage of a stored message. `start` and `stop` are character offsets into the message's text."""

    id: int
    occurrence: int
    conversation: str
    position: int  # order inside the conversation, rising
    role: str
    text: str
    created_at: float  # Unix seconds; display and recency only
    start: int = 0
    stop: int = 0
    name: str = ""
    tags: tuple[str, ...] = ()
    follows: int = 0  # the occurrence whose passage stands before it in its conversation; 0: it is the first


@dataclass(frozen=True, slots=True)
class Candidate:
    """
    A memory with its score and, per signal, its 1-based rank (0 = not listed) and raw score.

    `probability` is that of answering the question; 1 where nobody asked.
    """

    memory: Memory
    score: float
    signals: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    probability: float = 1.0


@dataclass(frozen=True, slots=True)
class Recalled:
    """
    What the indexes answered. `admitted` False: looked, and nothing was relevant.

    `helps` is the probability that any of it does, lasting wishes apart.
    """

    candidates: tuple[Candidate, ...]
    admitted: bool
    reason: str  # which gate opened, or why none did
    lexical_only: bool = False  # the embedding model is missing
    elapsed_ms: float = 0.0
    helps: float = 1.0


@dataclass(frozen=True, slots=True)
class Block:
    """What the proxy says: the whole rendered text, frame included, and where every piece comes from."""

    text: str
    kind: BlockKind
    occurrences: tuple[int, ...]  # packed, in order of appearance
    tokens: int = 0
    role: str = ""  # "": inside the message that carries it; else a message of its own, of this role, in front of it


@dataclass(frozen=True, slots=True)
class StoredBlock:
    """A block said earlier, anchored to one occurrence of one user message, replayed byte for byte."""

    occurrence: int
    block: Block


@dataclass(frozen=True, slots=True)
class Added:
    """What memory adds to one request, blocks of before included, and what the client itself sends; in tokens."""

    tokens: int
    own_tokens: int

    @property
    def share(self) -> float:
        """Of the client's own; 0 of nothing."""
        return self.tokens / self.own_tokens if self.own_tokens else 0.0


# --- what is written -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message to journal: its place in the request's history and what is needed to find it again."""

    message: Message
    print: Fingerprint
    position: int  # index in the request's whole message list, what the provider holds counted in front
    flags: int = 0
    tokens: int = 0


TURN_PREFIX = "t-"  # of a turn's id: tells it from a conversation's


@dataclass(frozen=True, slots=True)
class Turn:
    """
    One request to journal, as a diff against the head it continues.

    `kept` are the parent's occurrence ids that the request still carries, in order and with their positions; `new`
    the rest. Instructions are part of `new` whenever their text was not in the parent.
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
    replaces_blocks: bool = False  # a restore at the cap sheds the older blocks of this conversation
    compactions: int = 0
    lost: tuple[int, ...] = ()  # occurrences that this request's compaction took away
    summarises: bool = False
    last_full: int = 0  # fingerprint of the last message: a short answer is known only together with it
    tokens: int = 0  # of the prompt as it is sent, what the provider holds included
    upstream: str = ""  # name of the one that it is for; "" unknown
    is_bare: bool = False  # sent once more as the client sent it: its blocks were too much, and are not to be repeated
    explain: Json = field(default_factory=dict)
    chars: int | None = None  # in all texts of the messages in `new`; None: not counted yet


@dataclass(frozen=True, slots=True)
class Passage:
    """One findable piece of a stored text: character offsets, full-text terms (repeats kept), tags, kind."""

    start: int
    stop: int
    terms: tuple[str, ...]
    tags: tuple[str, ...] = ()
    kind: str = "episodic"  # or "semantic", "procedural"


@dataclass(frozen=True, slots=True)
class Entry:
    """A message in the form that reaches the disk: redacted, media by reference, cut into passages."""

    new: NewMessage
    digest: bytes  # keyed hash of the message as sent: equal messages of a tenant are stored once
    text: str
    rest: str  # JSON of the message, without `content` when that is exactly `text`
    passages: tuple[Passage, ...] = ()  # empty: journalled, never recalled (instructions, summaries, side requests)


@dataclass(frozen=True, slots=True)
class Record:
    """A turn and its entries, ready to commit."""

    turn: Turn
    entries: tuple[Entry, ...]
    scopes: tuple[int, ...] = ()  # `core.tombstones.scope_prints` of what it belongs to, its conversation first


class Ending(StrEnum):
    """How an answer ended."""

    COMPLETE = "complete"
    CLIENT_GONE = "client-gone"
    UPSTREAM_BROKE = "upstream-broke"
    TOO_LARGE = "too-large"
    UNANSWERED = "unanswered"  # with an error, or nobody answered: what it says is kept, if its tenant is known
    REFUSED = "refused"  # its credential was not accepted: the turn leaves no content


@dataclass(frozen=True, slots=True)
class SetAside:
    """A request or an answer that cannot be stored: why, and what tells it from others, but nothing of what it says."""

    turn_id: str
    part: Literal["request", "answer"]
    reason: str
    chars: int
    digest: bytes  # keyed
    created_at: float


@dataclass(frozen=True, slots=True)
class Bare:
    """A turn as it was sent in the end: what was added to it made it too long. Tokens of the prompt, and the record."""

    tokens: int
    explain: Json


@dataclass(frozen=True, slots=True)
class Answer:
    """What was heard of the answer to one turn. `message` is None when nothing could be read."""

    turn_id: str
    ending: Ending
    message: Message | None = None
    print: Fingerprint | None = None
    flags: int = 0
    links: tuple[tuple[LinkKind, int], ...] = ()
    prompt_tokens: int | None = None  # as the upstream counted
    created_at: float = 0.0
    bare: Bare | None = None  # the request went without what was added to it


@dataclass(frozen=True, slots=True)
class Heard:
    """An answer in the form that reaches the disk; `entry` is None when there is no content to keep."""

    answer: Answer
    entry: Entry | None


@dataclass(frozen=True, slots=True)
class Insertion:
    """
    Text to add to a request.

    `role` empty: into the message at index `at`, before what it says. Otherwise a message of its own, of that role,
    in front of index `at`.
    """

    at: int
    text: str
    role: str = ""


@dataclass(frozen=True, slots=True)
class TooLong:
    """
    A provider's refusal of a prompt for its length.

    `window_tokens` is the window that it names, None where it names none; `is_of_model` False: whoever refused counted
    bytes and knows of no model.
    """

    window_tokens: int | None = None
    is_of_model: bool = True
