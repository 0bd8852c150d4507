"""
The rules that name what a client did to its history: a table, of which the first row that holds decides.

"Gone" are messages of the head that the request does not have. "Old" is whatever stood before something that is still
there: only a compaction takes that away, or a client that rebuilds what it puts around the dialogue.
"""

from __future__ import annotations

from collections.abc import Callable

from palimpsest.core.history.changes import Changes
from palimpsest.domain import Event, HeadFlag, frozen


def _echoing(c: Changes) -> tuple[int, ...]:
    return tuple(at for at in c.echoing if at >= 0)


def _renewed(c: Changes) -> tuple[int, ...]:
    """Where a newer summary stands behind the opening of the one before: no word of the user's either."""
    return tuple(at for at in c.changed if c.head.flags[c.kept[at]] & HeadFlag.SUMMARY)


@frozen
class Rule:
    """A condition, the event that it means, and why, in words. `summaries` says where in the history they stand."""

    holds: Callable[[Changes], object]
    event: Event
    evidence: str
    summaries: Callable[[Changes], tuple[int, ...]] = lambda _: ()


RULES = (
    # Whatever is gone.
    Rule(lambda c: not (c.fresh or c.changed or c.sent_gone), Event.RETRY, "the same messages again"),
    Rule(
        lambda c: c.gone and c.compacted_by_provider,
        Event.SUMMARY,
        "the provider's compacted form has replaced them",
        lambda c: c.compacted_by_provider,
    ),
    Rule(
        lambda c: c.old_gone and c.moved_summaries,
        Event.SUMMARY,
        "a summary follows messages that it preceded before",
        lambda c: c.moved_summaries,
    ),
    Rule(
        lambda c: c.gone and c.echoing and c.has_summary_wrapped_anew and c.ends_in_tool,
        Event.TOOL,
        "the earlier summary again, in a different message",
        _echoing,
    ),
    Rule(
        lambda c: c.gone and c.echoing and c.has_summary_wrapped_anew,
        Event.APPEND,
        "the earlier summary again, in a different message",
        _echoing,
    ),
    Rule(
        lambda c: c.gone and c.echoing,
        Event.SUMMARY,
        "a new message repeats the answer to a request for a summary",
        _echoing,
    ),
    Rule(
        lambda c: len(c.gone) > 1 and c.resumed,
        Event.SUMMARY,
        "a long new text says that it goes on with them",
        lambda c: c.resumed,
    ),
    # Old messages are gone: changed where they stood, or taken away.
    Rule(lambda c: c.old_gone and c.has_tool_results_replaced, Event.CLEAR, "tool results were replaced in place"),
    Rule(
        lambda c: c.old_gone and c.is_rewritten and c.has_only_tool_steps_gone,
        Event.EDIT,
        "a different system prompt, and tool steps were removed: a hand-over",
    ),
    Rule(
        lambda c: c.old_gone and not c.has_answer_gone and c.has_only_last_asides_gone,
        Event.APPEND,
        "only what the client had added to the last question is gone",
    ),
    Rule(
        lambda c: c.old_gone and not c.has_answer_gone and c.has_preamble_rebuilt,
        Event.APPEND,
        "the client rebuilt its own messages around the dialogue, which is complete",
    ),
    Rule(
        lambda c: len(c.old_gone) > 1 and (c.stand_ins or c.has_new_long_instruction),
        Event.SUMMARY,
        "a long new text has replaced them",
        lambda c: c.stand_ins,
    ),
    Rule(
        lambda c: c.old_gone and c.has_no_answer_left and not c.speaker.names_conversation,
        Event.EDIT,
        "none of the answers is left: cleared on purpose",
    ),
    Rule(lambda c: c.old_gone, Event.TRUNCATE, "nothing has replaced them"),
    # Only what stood last is gone, or nothing is.
    Rule(
        lambda c: c.sent_gone and c.speaker.names_conversation and max(c.kept, default=-1) < 0,
        Event.TRUNCATE,
        "the client names the conversation and sends only what is new",
    ),
    Rule(lambda c: c.sent_gone, Event.EDIT, "the last messages were replaced or dropped"),
    Rule(lambda c: c.is_last_reworded, Event.EDIT, "the last message says something else behind the same beginning"),
    Rule(
        lambda c: c.is_said_to_be_a_retry, Event.RETRY, "the client marks it as a retry; the attempt before was refused"
    ),
    Rule(lambda c: c.ends_in_tool, Event.TOOL, "all messages are there, with new tool results", _renewed),
    Rule(lambda _: True, Event.APPEND, "all messages are there, with a new one", _renewed),
)


def event_of(changes: Changes) -> tuple[Event, tuple[str, ...], tuple[int, ...]]:
    """The event, the evidence for it, and where in the history summaries stand."""
    rule = next(rule for rule in RULES if rule.holds(changes))
    if changes.gone and (rule.event.is_compaction or rule.event is Event.EDIT):
        lost = f"{len(changes.gone)} of {len(changes.head.fulls)} messages of the previous request are gone"
        return rule.event, (lost, rule.evidence), rule.summaries(changes)
    return rule.event, (rule.evidence,), rule.summaries(changes)
