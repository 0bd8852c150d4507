"""Facts: what a message states that can stand alone, as a value of one slot of one subject."""

from __future__ import annotations

from dataclasses import KW_ONLY
from enum import StrEnum

from palimpsest.domain.frozen import described, frozen
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


CATEGORIES = ", ".join(f"`{category}`" for category in FactCategory)


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

    origin: FactOrigin = described("`message`, or `tool`: added by a program.")
    conversation: str = described("Id of the conversation.", default="")
    turn: str = described("Id of the turn that brought the message.", default="")
    occurrence: int = described("Number of the message occurrence.", default=0)
    start: int = described("Start of the statement in the message text, in characters.", default=0)
    stop: int = described("End of the statement, in characters.", default=0)
    role: str = described("Who said it: `user` or `tool`.", default="")
    quote: str = described("The words that state it, where facts are listed.", default="")
    tool: str = described("The tool that added it.", default="", is_exported=True)
    who: str = described("The program that called the tool.", default="", is_exported=True)


@frozen
class Fact:
    """
    A fact, valid from `valid_from` until `valid_until` (Unix seconds; None: open).

    This is the one list of its fields. HTTP, command line and export show them as they are described here; a column
    for one of them is read and written in `store/knowledge/`.

    What was said several times is one fact: its source is the newest place, `repeats` counts all (1 where only what
    is current was read). `is_current` is False also of what is not valid any more, or not yet. What is to be stored for
    a program has no id and no time yet.
    """

    _: KW_ONLY
    id: str = described("Id of the fact.", default="")
    tenant: str = described("Its owner.", default="", is_exported=True)
    user: str = described("Its owner.", default="", is_exported=True)
    scope: str = described("The project in which it was stated.", default="", is_exported=True)
    subject: str = described("What it is about.", is_exported=True)
    slot: str = described("Which of its properties.", is_exported=True)
    value: str = described("The value of the property.", is_exported=True)
    category: FactCategory = described(f"{CATEGORIES}.", default=FactCategory.NOTE, is_exported=True)
    confidence: float = described("Measured share of correct facts of this form, 0 to 1.", default=1.0)
    said_at: float = described(
        "When it was last stated, Unix seconds (as all times here).", default=0.0, is_exported=True
    )
    valid_from: float | None = described("Start of validity; null: unlimited.", default=None, is_exported=True)
    valid_until: float | None = described("End of validity; null: unlimited.", default=None, is_exported=True)
    is_single: bool = described(
        "Whether its slot has one value at a time.", name="single", default=True, is_exported=True
    )
    repeats: int = described("How often it was stated.", default=1)
    is_pinned: bool = described(
        "Whether it is pinned: listed before all others.", name="pinned", default=False, is_exported=True
    )
    is_current: bool = described("Whether it holds now.", name="current", default=True)
    superseded_by: str | None = described("Id of the fact that superseded it.", default=None)
    source: FactSource = described("Where it was last stated.", is_exported=True)
    number: int = 0  # of its row: rises with each that is stored
    place: int | None = None  # what it supersedes there: `core.facts.marks.place_print`


def by_tool(tool: str, who: str = "") -> FactSource:
    """The source of a fact that a program added by a tool."""
    return FactSource(FactOrigin.TOOL, tool=tool, who=who)


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
class FactQuery:
    """
    The look-up of facts for one request.

    `since` is an occurrence: only what changed after it was journalled is asked for; 0: all that stand. `told` are ids
    of facts that the model still sees in blocks of before.
    """

    whose: FactScope
    since: int = 0
    shown: tuple[str, ...] = ()


@frozen
class Stated:
    """One message that states a value, or what a tool was told (occurrence and fingerprint 0)."""

    fact: str  # id
    value: str
    occurrence: int = 0
    full: int = 0


@frozen
class CurrentFact:
    """A fact, all that state it, and what states other values of its slot, the newest first."""

    fact: Fact
    stated: tuple[Stated, ...] = ()
    earlier: tuple[Stated, ...] = ()


@frozen
class CurrentFacts:
    """
    The facts that hold, pinned ones first and then the newest; and those of `FactQuery.shown` that are over.

    `since` is the time of `FactQuery.since`, Unix seconds.
    """

    facts: tuple[CurrentFact, ...] = ()
    ended: tuple[Fact, ...] = ()
    since: float = 0.0
