"""
The trail of a statement from the archive into a request, stage by stage, and what to change where it ends.

Whatever a model was not told got lost at one of these stages: it was never written (a write gap), or it was stored and
not brought back (a retrieval gap). The first stage that fails says which, and what would change it.

Source: WhenLoss, section 3, applied to a live archive; its stages are those of `core/conversation`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

from palimpsest.domain import Json, Note, frozen


class Gap(StrEnum):
    """Which half of memory a failed stage belongs to."""

    WRITE = "write"
    RETRIEVAL = "retrieval"


@frozen
class StatementMatch:
    """A stored message that holds the statement, or is nearest to it."""

    occurrence: int
    role: str
    turn: int  # number in its conversation, from 1
    excerpt: str


@frozen
class Trace:
    """
    What was found about one statement, for one turn of one conversation.

    `held` is empty where no message holds the statement. What follows it is about the first of them.
    """

    turn: int = 0  # its number, from 1
    turns: int = 0  # of the conversation
    held: tuple[StatementMatch, ...] = ()
    is_near: bool = False  # no message holds these words: `held` is the nearest by meaning
    home: str = ""  # public id of another conversation, within reach, that `held` is of
    elsewhere: tuple[str, ...] = ()  # public ids of other conversations that hold it
    set_aside: int = 0  # messages of the conversation that could not be stored
    erased: int = 0  # messages of it whose text was erased
    passages: int = 0  # of the message
    waiting: int = 0  # passages among them without a vector
    is_retired: bool = False
    is_visible: bool = False  # it stood in the request, or in what the provider kept of it
    is_later: bool = False  # it was said after the request
    is_trimmed: bool = False  # the client sent it, and it stayed behind (`overflow: trim`)
    is_lost: bool = False  # a compaction of the conversation took it away
    question: str = ""  # what memory looked for, or would look for
    asks_otherwise: bool = False  # the turn did not ask that
    note: Note | None = None  # why memory did not look in the turn
    place: int = 0  # among the candidates, from 1; 0: it is not among them
    candidates: int = 0
    probability: float = 0.0  # of answering the question
    helps: float = 0.0  # probability that memory helps with the question
    least_help: float = 0.0
    cut: str = ""  # why it was not packed
    is_packed: bool = False  # a block made now would hold it
    blocks: tuple[int, ...] = ()  # numbers of the turns whose blocks quote it
    by_meaning: int = 0  # its place by this signal alone
    by_words: int = 0


@frozen
class Stage:
    """One stage. `passed` None: it was not reached, or it does not apply."""

    name: str
    passed: bool | None
    detail: str
    advice: str = ""  # what would change it; "" where it passed
    gap: Gap = Gap.RETRIEVAL


NOTES: Mapping[Note, tuple[str, str]] = {
    Note.OFF: (
        "memory was off for the request",
        "see memory.mode, memory.off_for_clients, off_for_models, off_for_tenants and off_for_roles",
    ),
    Note.UNKNOWN_MODE: (
        "x-palimpsest-memory held a word that it does not know, so memory was off",
        "send on, read-only or off",
    ),
    Note.DISABLED: ("an operator had switched memory off", "switch it on again with palimpsest enable"),
    Note.NO_TENANT: ("the request named no tenant", "see tenants in docs/security.md"),
    Note.SIDE_REQUEST: (
        "the request was a title, a summary or the like",
        "ask about a turn of the conversation itself",
    ),
    Note.CALM: (
        "nothing was lost, and memory may look no further than this conversation",
        "set memory.reach to user, and let clients send x-palimpsest-user, to bring back other conversations",
    ),
    Note.NOTHING_RELEVANT: ("nothing was likely enough to help", "set memory.generosity to generous"),
    Note.INDEXING: (
        "most passages had no vector yet, and were found by their words alone",
        "ask again when they are indexed: /readyz has pending 0 then",
    ),
    Note.NO_QUESTION: (
        "no words of a person stood at the end of the request",
        "it can come with the next message of the user that has a text",
    ),
    Note.TOOL_LOOP: ("the model was working through tool calls", "it can come with the next message of the user"),
    Note.PRESSURE: ("the context window was full", "it can come back after the client compacts its history"),
    Note.AMBIGUOUS: (
        "two conversations matched the request equally well",
        "let the client send x-palimpsest-conversation",
    ),
    Note.DEADLINE: ("memory took longer than allowed", "raise memory.deadline_ms, or see the load of the machine"),
    Note.AWAY: (
        "memory was unreachable, and the turn was archived later",
        "see palimpsest doctor, and docs/scaling.md",
    ),
    Note.FAULT: ("memory failed; the log says why", "see palimpsest doctor and the log"),
    Note.UNREADABLE: ("the body is no request that memory understands", "see what the provider answers to it"),
    Note.WINDOW_FULL: ("the context window had no room for a block", "it can come back once the request is shorter"),
    Note.REPLAY_CAP: (
        "earlier blocks fill the share of the window that they may take",
        "it can come after a compaction",
    ),
    Note.TOO_LARGE: ("the request was too large to be read", "see docs/settings.md for the limit"),
    Note.TOO_LONG: ("the provider refused the request for its length", "it is sent without a block then"),
}


def cause_of(record: Mapping[str, Any]) -> tuple[str, str]:
    """What the note of an explanation means, and what would change it; two empty texts: it has none."""
    note, gate = record.get("note"), record.get("gate")
    if note != Note.NOTHING_RELEVANT or (gate and not gate["admitted"] and "is required" in gate["reason"]):
        return next((told for one, told in NOTES.items() if one == note), ("", ""))
    if not gate:
        return "the message asks for nothing", "ask for what was said before"
    if not gate["admitted"]:
        return gate["reason"], "ask in words of what was said; what the model sees already does not come again"
    left_out = "; ".join(dict.fromkeys(one["why"] for one in record.get("candidates", ()) if one["why"]))
    return f"what was found is not repeated: {left_out or 'the model sees it'}", "nothing to change"


def required(reason: str) -> str:
    """The gate's reason, reworded where it requires no probability."""
    return reason.replace("; 0.00 is required", "; no probability is required here")


def stages(trace: Trace) -> tuple[Stage, ...]:
    """
    The stages in order: archived, indexed, lost, asked, ranked, likely, packed, said.

    Those behind the first that fails are told too, as they would have gone, where they could be tried.
    """
    if not trace.held:
        return (_never_archived(trace),)
    return (_archived(trace), *_retrieved(trace))


def last_stage(trail: tuple[Stage, ...]) -> Stage | None:
    """The stage at which the trail ends; None: it does not, the statement was said."""
    said = trail[-1]
    return None if said.passed else next((stage for stage in trail if stage.passed is False), said)


def _never_archived(trace: Trace) -> Stage:
    """The stage for a statement that no message of the conversation holds, with the likely reason."""
    if trace.elsewhere:
        names = ", ".join(trace.elsewhere)
        advice = "ask in its own words; set memory.reach to user or tenant, if it may not come from there yet"
        return Stage("archived", False, f"not in this conversation, but in {names}", advice)
    why = "no message of this conversation has these words or is similar to them"
    if trace.set_aside:
        why += f"; {trace.set_aside} could not be stored: see the log"
    if trace.erased:
        why += f"; {trace.erased} were erased"
    advice = "it was said while memory was off or read-only, before the proxy, or in other words: try palimpsest search"
    return Stage("archived", False, why, advice, Gap.WRITE)


def _archived(trace: Trace) -> Stage:
    """The stage for a statement that was archived, with the message that first held it."""
    first = trace.held[0]
    nearest = "the nearest message was said" if trace.is_near else "said"
    again = f", and in {len(trace.held) - 1} more messages" if len(trace.held) > 1 else ""
    where = f"turn {first.turn} of {trace.home}" if trace.home else f"turn {first.turn}"
    return Stage("archived", True, f"{nearest} by the {first.role} in {where}{again}: {first.excerpt}")


def _retrieved(trace: Trace) -> Iterator[Stage]:
    """The stages behind the archive: indexed, lost, asked, ranked, said."""
    if trace.is_retired:
        yield Stage(
            "indexed", False, "the message is retired: not recalled until that is undone", "palimpsest unretire"
        )
    elif not trace.passages:
        detail = "the message is an instruction, or was erased, and cannot be recalled"
        yield Stage("indexed", False, detail, "nothing to change: instructions come with every request", Gap.WRITE)
    elif trace.waiting:
        detail = f"{trace.waiting} of its passages wait for their vectors: found by words alone until then"
        yield Stage("indexed", True, detail)
    else:
        yield Stage("indexed", True, "found by words and by meaning")
    if trace.blocks and not trace.is_visible:
        yield from _repeated_block_stage(trace)
        return
    yield _compaction_stage(trace)
    yield _query_stage(trace)
    yield from _ranking_stages(trace)
    if trace.blocks:
        yield Stage("said", True, f"quoted in the block of turn {_numbers(trace.blocks)}")
    else:
        yield Stage("said", False, "no block quotes it", "ask for it: a block made now would hold it")


def _repeated_block_stage(trace: Trace) -> Iterator[Stage]:
    detail = f"quoted in the block of turn {_numbers(trace.blocks)}, which is repeated as long as its message is sent"
    yield Stage("said", True, detail)


def _compaction_stage(trace: Trace) -> Stage:
    """The stage that says whether a compaction removed the message."""
    if trace.is_visible:
        advice = "nothing to change: the model sees it; messages in the request are not quoted again"
        return Stage("lost", False, "the message was still in the request", advice)
    if trace.is_later:
        return Stage("lost", False, "it was said after this turn's request", "name a later turn with --turn")
    if trace.is_trimmed:
        return Stage("lost", True, "the client sent the message, and overflow: trim left it out")
    if trace.home:
        return Stage("lost", True, "it stands in another conversation, within memory.reach")
    if not trace.is_lost:
        advice = "what a user drops by an edit or by clearing the history does not come back"
        return Stage("lost", False, "no compaction removed the message", advice)
    return Stage("lost", True, "a compaction removed the message")


def _query_stage(trace: Trace) -> Stage:
    """The stage that says what memory looked for in the turn, or why for nothing."""
    if trace.asks_otherwise:
        return Stage("asked", True, f"the turn asked something else; this is for: {trace.question}")
    if trace.note is None:
        return Stage("asked", True, f"memory looked for: {trace.question}")
    why, advice = NOTES.get(trace.note, (trace.note.value, ""))
    return Stage("asked", False, why, advice)


def _ranking_stages(trace: Trace) -> Iterator[Stage]:
    """The stages of the ranking: place among candidates, probability, room in the block."""
    if not trace.place:
        detail = f"it is not among the {trace.candidates} best candidates for the question"
        yield Stage("ranked", False, detail, "ask with words of the statement, or wait until it is indexed")
        return
    detail = f"place {trace.place} of {trace.candidates}; by meaning {trace.by_meaning}, by words {trace.by_words}"
    yield Stage("ranked", True, detail)
    likely = required(f"memory helps with a probability of {trace.helps:.2f}; {trace.least_help:.2f} is required")
    if trace.helps < trace.least_help:
        yield Stage("likely", False, likely, "set memory.generosity to generous, or ask for what was said before")
    else:
        yield Stage("likely", True, f"{likely}; this passage answers with {trace.probability:.3f}")
    if trace.is_packed:
        yield Stage("packed", True, "a block for the question would hold it")
    else:
        yield Stage("packed", False, trace.cut or "no room", "set memory.generosity to generous")


def _numbers(turns: tuple[int, ...]) -> str:
    return ", ".join(map(str, turns))


def as_json(trace: Trace) -> Json:
    """The stages, the one at which the trail ends, and which half of memory that is."""
    passed = stages(trace)
    end = last_stage(passed)
    return {
        "turn": trace.turn,
        "question": trace.question,
        "stages": [
            {"stage": stage.name, "passed": stage.passed, "found": stage.detail, "advice": stage.advice}
            for stage in passed
        ],
        "lost_at": end.name if end else None,
        "gap": end.gap.value if end else None,
    }
