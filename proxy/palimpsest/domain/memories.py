"""Memories: passages of stored messages and items made of them, the query that looks for them, and what it finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from palimpsest.domain.frozen import frozen


class Reach(StrEnum):
    """How far recall looks (policy `scope`)."""

    CONVERSATION = "conversation"
    USER = "user"
    TENANT = "tenant"


class Teller(StrEnum):
    """Who said what a question is about."""

    ANYONE = "anyone"
    USER = "user"
    OTHERS = "others"
    TOOLS = "tools"


@frozen
class Plan:
    """
    How a question is looked up: what else is asked for it, and what is preferred among what may come.

    `questions` share the candidates with the question itself. `periods` are when it was told, Unix seconds, first and
    last. A plan says nothing of whose memory is looked at: it can bring up nothing that the query itself could not.

    Source: LightMem-SLM 3.3 (hypothetical queries and constraints under a fixed budget).
    """

    questions: tuple[str, ...] = ()
    periods: tuple[tuple[float, float], ...] = ()
    teller: Teller = Teller.ANYONE


@frozen
class Query:
    """
    What to look for, where, and what must not come.

    `without_cleared` leaves out what users dropped on purpose (`/clear`): who looks for it finds it, but it does not
    come by itself, in other conversations for a while.
    `lost` are the occurrences of this conversation that may come back: what its compactions took away, and nothing else
    of it; None: all of it.
    `named` is there where nobody asks for anything: tags of what the new messages say. What was lost comes by what else
    it names then, and there is nothing to admit; `with_prose` also what neither tells nor names anything.
    `plan` is how it is looked up; None: as it is asked.
    `least_help` is the probability that memory helps, below which nothing comes; `wishes` is how many of the user's
    lasting wishes come with it, asked for or not; `whole_chars` how much may be lost for all of it to come.
    `folder` is the one that its agent works in, as `Speaker` has it: what the user told there of the project comes
    where a conversation begins or was compacted; 0: the one that the conversation named before; None: that does not
    count.
    `told` are earlier blocks and words of the user that the model still sees: what the user asked to hold always
    comes, asked for or not, where it was lost or told elsewhere and none of them says it or anything else; None: never.
    `warned` are occurrences that blocks quoted lately, of which no precaution comes again; None: none comes at all.
    `account_chars` is how much an account of the work that was lost may say, 0: none is wanted; `seen` are the texts
    that the model still sees: it leaves out their names, and no passage comes that stands in one of them.
    """

    tenant: str
    conversation: str
    text: str
    reach: Reach = Reach.CONVERSATION
    user: str = ""
    scope: str = ""
    folder: int | None = None
    lost: frozenset[int] | None = None
    visible_fulls: frozenset[int] = frozenset()  # fingerprints of what the model still sees
    excluded: frozenset[int] = frozenset()  # occurrences that replayed blocks already carry
    named: frozenset[str] | None = None
    with_prose: bool = True
    without_cleared: bool = False
    least_help: float = 0.0
    wishes: int = 0
    told: tuple[str, ...] | None = None
    warned: frozenset[int] | None = None
    whole_chars: int = 0
    plan: Plan | None = None
    account_chars: int = 0
    seen: tuple[str, ...] = ()


@frozen
class Memory:
    """
    One passage of a stored message. `start` and `stop` are character offsets into the message's text.

    `also` is there where it is no passage, but an item: the occurrences of the messages that it is from.
    """

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
    also: tuple[int, ...] = ()
    follows: int = 0  # the occurrence whose passage stands before it in its conversation; 0: it is the first


@frozen
class Candidate:
    """
    A memory with its score and, per signal, its 1-based rank (0 = not listed) and raw score.

    `probability` is that of answering the question; 1 where nobody asked. `is_reminder` where somebody asked for this
    very passage: it stands in the block before anything else, whole or not at all.
    """

    memory: Memory
    score: float
    signals: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    probability: float = 1.0
    is_reminder: bool = False


@frozen
class AccountLine:
    """One line of an account: `label` is a role, or what was done; `occurrences` are the messages that it is from."""

    label: str
    text: str
    occurrences: tuple[int, ...]

    @property
    def chars(self) -> int:
        """Characters of the line as it is printed."""
        return len(self.label) + len(self.text) + 3


@frozen
class Account:
    """
    What was done in messages that were lost: `lines`, and the `rules` that the user set, which stand last.

    `is_talk` where no tool was called and no file edited: people and models said all of it.
    """

    lines: tuple[AccountLine, ...] = ()
    rules: tuple[AccountLine, ...] = ()
    is_talk: bool = False

    @property
    def chars(self) -> int:
        """Characters of the account as it is printed."""
        return sum(line.chars for line in (*self.lines, *self.rules))


@frozen
class Recalled:
    """
    What the indexes answered. `admitted` False: looked, and nothing was relevant.

    `helps` is the probability that any of it does, lasting wishes apart. Of `eligible` passages, `unindexed` have no
    vector yet. `plan` is how it was looked up, where a controller planned it.
    """

    candidates: tuple[Candidate, ...]
    admitted: bool
    reason: str  # which gate opened, or why none did
    lexical_only: bool = False  # the embedding model is missing
    elapsed_ms: float = 0.0
    helps: float = 1.0
    unindexed: int = 0
    eligible: int = 0
    account: Account | None = None
    plan: Plan | None = None

    @property
    def is_too_early(self) -> bool:
        """Whether most of what may come has no vector yet, so that words alone decide."""
        return not self.lexical_only and 2 * self.unindexed > self.eligible


@frozen
class SourceMessage:
    """One stored message as a writer reads it: `text` is its readable text, `created_at` Unix seconds."""

    occurrence: int
    role: str
    text: str
    created_at: float = 0.0
    name: str = ""


@frozen
class Span:
    """A stretch of a stored message: character offsets into its text, `start` < `stop`."""

    occurrence: int
    start: int
    stop: int


@frozen
class Item:
    """
    One thing to remember.

    `text` says it; `question` is what it answers, and `topic` what it is about, "" where a writer says neither.
    `sources` are never empty, and what `text` names (names, numbers, dates, identifiers) stands in them.
    """

    text: str
    sources: tuple[Span, ...]
    question: str = ""
    topic: str = ""
