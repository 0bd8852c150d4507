"""
The differences between a request's history and the head that it continues, as facts that the rules of events ask for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from palimpsest.core.history.alignment import moved_summaries, new_places, resumed_at
from palimpsest.domain import TOOL_ROLES, Chat, Event, Fingerprint, Head, HeadFlag, Message, Shape, Speaker
from palimpsest.wire.message import is_aside

SUMMARY_CHARS = 200  # no summary worth its name is shorter
MARK_CHARS = 160  # "[12 messages omitted]"
SPOKEN = HeadFlag.ASSISTANT | HeadFlag.TOOL  # what is no word of the client's own
_MARK = re.compile(r"(?i)\b(skipped|omitted|truncated|removed|trimmed|elided|dropped|hidden)\b")


@dataclass(frozen=True)
class Changes:
    """
    What differs between the history of a request and its head; `at` indexes the history, `index` the head.

    `prints` are of the history; `kept` says for each of its messages which of the head's it is, or -1. `echo` has the
    places where summaries that passed here stand again (places as in `alignment.new_places`), `summarised_at` is the
    turn of the newest of these.
    """

    chat: Chat
    prints: Sequence[Fingerprint]
    shape: Shape
    head: Head
    kept: Sequence[int]
    echo: Mapping[int, int]
    summarised_at: int
    speaker: Speaker

    @cached_property
    def history(self) -> Sequence[Message]:
        return self.chat.history

    @cached_property
    def fresh(self) -> tuple[int, ...]:
        """Messages that the head does not have."""
        return tuple(at for at, index in enumerate(self.kept) if index < 0)

    @cached_property
    def changed(self) -> tuple[int, ...]:
        """Messages that the head has with another text behind the same opening."""
        pairs = enumerate(self.kept)
        return tuple(at for at, index in pairs if index >= 0 and self.head.fulls[index] != self.prints[at].full)

    @cached_property
    def gone(self) -> tuple[int, ...]:
        """Messages of the head that the request does not have."""
        taken = set(self.kept)
        return tuple(index for index in range(len(self.head.fulls)) if index not in taken)

    @cached_property
    def old_gone(self) -> tuple[int, ...]:
        """Gone messages that stood before something that is still there."""
        last = max(self.kept, default=-1)
        return tuple(index for index in self.gone if index < last)

    @cached_property
    def sent_gone(self) -> tuple[int, ...]:
        """Gone messages that the client had sent; the others are answers, which it may not have got."""
        return tuple(index for index in self.gone if index < self.head.request_length)

    @cached_property
    def inside(self) -> tuple[int, ...]:
        """Fresh messages that stand before one that is kept."""
        last = max((at for at, index in enumerate(self.kept) if index >= 0), default=-1)
        return tuple(at for at in self.fresh if at < last)

    # --- summaries -------------------------------------------------------------------------------

    @cached_property
    def compacted_by_provider(self) -> tuple[int, ...]:
        """New messages that hold what only the provider can read: it made that of what stood before."""
        new = (at for at, index in enumerate(self.kept) if index < 0 or index >= self.head.request_length)
        return tuple(at for at in new if self.history[at].opaque)

    @cached_property
    def moved_summaries(self) -> tuple[int, ...]:
        """Unchanged summaries that moved behind messages which they used to precede."""
        return moved_summaries(self.head, self.kept)

    @cached_property
    def echoing(self) -> tuple[int, ...]:
        """New places of a summary that the proxy has seen as an answer; negative ones are instructions."""
        return tuple(sorted(self.echo.keys() & new_places(self.prints, self.shape, self.head, self.kept)))

    @property
    def resumed(self) -> tuple[int, ...]:
        """Index of the message that says that the dropped conversation continues; empty: none."""
        at = resumed_at(self.history, self.head, self.kept)
        return (at,) if at >= 0 else ()

    @property
    def has_summary_wrapped_anew(self) -> bool:
        """Whether only what a client puts around its summary (files that it read, say) is gone, and no dialogue."""
        has_dialogue_gone = any(self.head.flags[index] & SPOKEN for index in self.gone)
        return not has_dialogue_gone and self.head.event is Event.SUMMARY and self.summarised_at < self.head.turn

    @cached_property
    def stand_ins(self) -> tuple[int, ...]:
        """Long new texts that may be summaries: before something that is kept, or renewed behind the same opening."""
        beside = [at for at in self.changed if self.kept[at] + 1 == self.old_gone[0]]
        texts = ((at, self.history[at]) for at in (*self.inside, *beside))
        return tuple(at for at, message in texts if message.role != "tool" and len(message.text) >= SUMMARY_CHARS)

    @property
    def has_new_long_instruction(self) -> bool:
        """Whether an instruction behind the first is long and was not there: some clients keep a summary in one."""
        known = set(self.head.shape.instructions)
        instructions = [message for message in self.chat.messages if message.is_instruction]
        if len(instructions) < 2:
            return False
        pairs = list(zip(self.shape.instructions, instructions, strict=True))
        return any(
            fingerprint not in known and len(message.text) >= SUMMARY_CHARS for fingerprint, message in pairs[1:]
        )

    # --- changes in place ------------------------------------------------------------------------

    @property
    def is_rewritten(self) -> bool:
        """Whether the first instruction is another one."""
        return self.shape.instructions[:1] != self.head.shape.instructions[:1]

    @property
    def has_tool_results_replaced(self) -> bool:
        """Whether all that is gone are tool results, and as many others stand among what is kept."""
        replaced = [at for at in self.inside if self.history[at].role == "tool"]
        are_tools = all(self.head.flags[index] & HeadFlag.TOOL for index in self.old_gone)
        return are_tools and len(replaced) == len(self.old_gone)

    @property
    def has_only_tool_steps_gone(self) -> bool:
        """Whether all that is gone are tool steps, and nothing has replaced them."""
        steps = HeadFlag.TOOL | HeadFlag.CALLS
        return all(self.head.flags[index] & steps for index in self.old_gone) and not self.inside

    @property
    def has_answer_gone(self) -> bool:
        """Whether an answer of ours is gone that the client had sent before."""
        return any(self.head.flags[index] & HeadFlag.OURS for index in self.sent_gone)

    @property
    def has_only_last_asides_gone(self) -> bool:
        """Whether all that is gone came after the dialogue: asides of the client beside the last question."""
        flags = self.head.flags[: self.head.request_length]
        tail = max((index for index, flag in enumerate(flags) if flag & SPOKEN), default=-1) + 1
        return self.old_gone[0] >= tail and (tail > 0 or len(self.fresh) > len(self.old_gone))

    @property
    def has_preamble_rebuilt(self) -> bool:
        """Whether the client's own first messages were replaced by others, none of which says that it cut anything."""
        is_prefix = self.old_gone == tuple(range(len(self.old_gone)))
        if is_prefix and not (self.is_rewritten and self.inside) and len(self.inside) != len(self.old_gone):
            return False
        if not self.inside and sum(self.history[at].role == "user" for at in self.fresh) < 2:
            return False
        texts = (self.history[at].text for at in self.inside)
        return not any(len(text) <= MARK_CHARS and _MARK.search(text) for text in texts)

    # --- the end ---------------------------------------------------------------------------------

    @property
    def is_last_reworded(self) -> bool:
        """Whether the last message begins as one that stood there and says something else, and nothing else is new."""
        last = len(self.history) - 1
        return not self.fresh and last in self.changed and self.history[last].role == "user"

    @property
    def restores_lost(self) -> bool:
        """
        Whether the message is gone in which the newest compaction was answered, and the compacted history stands.

        Its summary stands, or where it has none the first of what was left. More may be gone with the message.
        """
        head, stands = self.head, set(self.kept).difference(self.kept[at] for at in self.changed)
        if not head.restored_at or any(head.flags[index] & HeadFlag.SUMMARY for index in self.gone):
            return False
        is_begun = max(self.kept, default=-1) >= 0 or any(place < 0 for place in self.echo)
        missing = (index for index in range(len(head.fulls)) if index not in stands)
        return is_begun and any(head.occurrences[index] == head.restored_at for index in missing)

    @property
    def has_no_answer_left(self) -> bool:
        """Whether there were answers of ours, and all of them are gone."""
        ours = {index for index, flags in enumerate(self.head.flags) if flags & HeadFlag.OURS}
        return bool(ours) and ours <= set(self.gone)

    @property
    def is_said_to_be_a_retry(self) -> bool:
        """Whether the client says that it tries again, and only the last question is new."""
        last = len(self.history) - 1
        return self.speaker.retry_hint and self.fresh == (last,) and self.history[-1].role == "user"

    @property
    def ends_in_tool(self) -> bool:
        """Whether tool results came last: as tool messages, or as the user's where a client retells calls in words."""
        history, head = self.history, self.head
        if not history:
            return False
        added = set(self.fresh)
        last = len(history) - 1
        while last in added and history[last].role == "user" and is_aside(history[last].text):
            last -= 1
        if last >= 0 and history[last].role in TOOL_ROLES and (last == len(history) - 1 or last in added):
            return True
        asked = bool(head.flags) and bool(head.flags[-1] & HeadFlag.CALLS) and head.request_length < len(head.fulls)
        retold = any(history[at].role == "assistant" for at in self.fresh)
        answered = any(history[at].role == "tool" for at in self.fresh)
        return asked and retold and not answered and len(head.fulls) - 1 not in self.kept


class AppendOnlyChanges(Changes):
    """The changes where the whole head stands first and unchanged: nothing is gone, and what follows is fresh."""

    changed = gone = old_gone = sent_gone = inside = moved_summaries = ()

    @cached_property
    def fresh(self) -> tuple[int, ...]:
        return tuple(range(len(self.head.fulls), len(self.kept)))
