"""
Facts: what a message states that can stand alone, as a value of one slot of one subject.
"""

from __future__ import annotations

from enum import StrEnum

from palimpsest.domain.frozen import frozen
from palimpsest.domain.memories import Reach

USER_SUBJECT = "user"  # of what users say of themselves
PROJECT_SUBJECT = "project"  # of decisions, instructions, notes and settings
NO_LONGER = "no longer "  # begins the slot of what ends a value: "no longer home"
NO_LONGER_ANY = "no longer any "  # ... of what ends the newest value, whatever it is


class FactCategory(StrEnum):
    """The kind of thing that a fact states."""

    IDENTITY = "identity"  # who somebody is: name, home, work, numbers under which others know them
    PREFERENCE = "preference"  # what somebody likes, avoids or cannot have
    INSTRUCTION = "instruction"  # an order that holds from now on
    DECISION = "decision"  # what the user settled on
    NOTE = "note"  # what the user asks to be remembered
    SETTING = "setting"  # a value under a name: a port, a path, a branch, a deadline


@frozen
class FactProposal:
    """
    A fact as a message states it: text[start:stop] of the message is the statement.

    `subject` is "user", "project" or the person or thing of the user's that is spoken of ("sister"). `is_single`: the
    slot holds one value at a time, so that a newer one supersedes it; values of other slots stand beside each other.
    `confidence` is the share of such proposals that were right where they were read, 0 to 1.
    """

    subject: str
    slot: str
    value: str
    category: FactCategory
    start: int
    stop: int
    is_single: bool
    confidence: float


class FactOrigin(StrEnum):
    """How a fact came to be stored."""

    MESSAGE = "message"  # found in a message; gone with it
    TOOL = "tool"  # written by an agent or an operator, in their own words


@frozen
class FactSource:
    """
    Where a fact was stated.

    Of a message: its place, where text[start:stop] is the statement. Of a tool: its name, and which program called it.
    """

    origin: FactOrigin
    conversation: str = ""  # public id
    turn: str = ""  # public id
    occurrence: int = 0  # of the message, in the journal
    start: int = 0  # characters of the message's text
    stop: int = 0
    role: str = ""
    tool: str = ""
    who: str = ""


@frozen
class Fact:
    """
    A stored fact, valid from `valid_from` until `valid_until` (Unix seconds; None: open).

    What was said several times is one fact: its source is the newest place, `repeats` counts all (1 where only what
    stands was read). `superseded_by` is the id of the fact that took its place in a slot of one value, "" where none
    did; `is_current` is False also of what is not valid any more, or not yet.
    """

    id: str
    tenant: str
    user: str
    scope: str
    subject: str
    slot: str
    value: str
    category: FactCategory
    source: FactSource
    confidence: float  # 0 to 1
    said_at: float  # Unix seconds
    valid_from: float | None = None
    valid_until: float | None = None
    is_single: bool = False
    is_pinned: bool = False
    repeats: int = 1
    superseded_by: str = ""
    is_current: bool = True
    number: int = 0  # of its row: rises with each that is stored
    place: int | None = None  # what it supersedes there: `core.facts.marks.place_print`


@frozen
class FactScope:
    """
    Whose facts may be seen: those of one user in one project, as conversations have them.

    Where nobody is named (`user` ""), or no farther is looked (`reach` conversation), they are those that the messages
    of `conversation` state; with reach tenant those of all who are not named.
    """

    tenant: str
    user: str = ""
    scope: str | None = ""  # project; None: each of them
    conversation: str = ""  # public id
    reach: Reach = Reach.USER


@frozen
class AddedFact:
    """A fact in the words of an agent or an operator, ready to store. Times in Unix seconds."""

    id: str
    tenant: str
    user: str
    scope: str
    subject: str
    slot: str
    value: str
    category: FactCategory
    said_at: float
    tool: str
    who: str = ""
    is_single: bool = True
    is_pinned: bool = False
    valid_from: float | None = None
    valid_until: float | None = None
