"""Decisions about one request: how full the window is, how much memory may say, and why it keeps silent."""

from __future__ import annotations

from enum import StrEnum

from palimpsest.domain.blocks import BlockKind, Budget
from palimpsest.domain.frozen import frozen
from palimpsest.domain.history import Lineage, Speaker
from palimpsest.domain.memories import Query


class Note(StrEnum):
    """Why no memory was added (`x-palimpsest-note`)."""

    OFF = "off"
    UNKNOWN_MODE = "unknown-mode"  # x-palimpsest-memory is none of `Mode`: memory is off
    DISABLED = "disabled"
    READ_ONLY = "read-only"
    SIDE_REQUEST = "side-request"
    CALM = "calm"
    NOTHING_RELEVANT = "nothing-relevant"
    INDEXING = "indexing"  # most of what may come has no vector yet: found by words alone, or not at all
    NO_QUESTION = "no-question"  # nobody's words stand at its end, and no result of a tool
    TOOL_LOOP = "tool-loop"
    PRESSURE = "pressure"
    AMBIGUOUS = "ambiguous"
    DEADLINE = "deadline"
    FAULT = "fault"
    UNREADABLE = "unreadable"  # the body is no request that memory understands
    AWAY = "away"  # the machine that keeps the memory
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


class Generosity(StrEnum):
    """What memory may cost, as a word (policy `memory.generosity`)."""

    SPARING = "sparing"
    BALANCED = "balanced"
    GENEROUS = "generous"


class Tier(StrEnum):
    """Rungs of the pressure ladder (CALMem section 6)."""

    CALM = "calm"
    WARM = "warm"
    TIGHT = "tight"
    FULL = "full"


@frozen
class Pressure:
    """How full the window is. Tokens of the prompt as it will be sent, replayed blocks included."""

    prompt_tokens: int
    window_tokens: int
    reply_tokens: int
    ratio: float
    tier: Tier


@frozen
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
    tells_facts: bool = False  # facts may be told in it, also where there is nothing else to look for
