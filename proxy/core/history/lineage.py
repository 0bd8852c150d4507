"""
How does this request continue what we saw? Align it with what is stored, and name what the client did.

Most clients send no id, so a request is led back by what the proxy handed out itself: answers and tool-call ids that
reappear. Then the history of the request is aligned with the head that it shares most with, and the gaps say what
happened:

    nothing of ours reappears                                   start
    all is there, and more                                      append, or tool when tool results came
    all is there, and nothing more                              retry
    the end was replaced                                        edit
    tool texts replaced in their places                         compaction:clear_tool_results
    old messages gone, a summariser's answer echoes in a new    compaction:summary
    old messages gone, a long new text stands in their place    compaction:summary
    old messages gone, what the provider made of them is new    compaction:summary
    old messages gone                                           compaction:truncate

"Old" is whatever stood before something that is still there. Prefix hashes find none of the summaries; system prompts
and tool lists collide between conversations and change within one: neither is used as a key.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from proxy.core.history.alignment import (
    PHRASE_HITS,
    WHOLE_HITS,
    alignments,
    closest,
    moved_summaries,
    nearest,
    new_places,
)
from proxy.core.history.link_keys import ECHO_CHARS, LONG_CHARS, opaque_prints
from proxy.core.history.request_roles import Asked, decide
from proxy.core.history.server_history import continued, followed, inherited
from proxy.core.history.shingles import shingles
from proxy.domain import (
    Chat,
    Event,
    Fingerprint,
    Head,
    HeadFlag,
    Lineage,
    Link,
    LinkKind,
    Message,
    Role,
    Seen,
    Shape,
    Speaker,
)
from proxy.wire.message import is_aside

SUMMARY_CHARS = 200  # no summary worth its name is shorter
MARK_CHARS = 160  # "[12 messages omitted]"
NOTHING = Seen()
_MARK = re.compile(r"(?i)\b(skipped|omitted|truncated|removed|trimmed|elided|dropped|hidden)\b")


def trace(
    chat: Chat,
    prints: Sequence[Fingerprint],
    shape: Shape,
    asked: Asked,
    speaker: Speaker,
    key: bytes,
    seen: Seen,
    further: Seen = NOTHING,
) -> Lineage:
    """
    Name what the client did since the request before.

    Args:
        prints: of `chat.history`, in order.
        seen: what the store knows of `clues`.
        further: what it knows of `further_clues`, which depend on the lineage without it.
    """
    history = chat.history
    links = (*seen.links, *(link for link in further.links if link.kind is not LinkKind.CLIENT_ID))
    heads = {head.turn: head for head in (*seen.heads, *further.heads)}
    aligned = alignments(history, prints, heads.values())
    echo = _echoing(chat, links, key)
    if chat.held:
        head, kept, ambiguous = followed(links, list(heads.values())), (-1,) * len(history), False
        shape = inherited(chat, shape, head)
    else:
        head, kept, ambiguous = closest(history, prints, shape, links, aligned, echo)
    if head is not None and asked.lone and _is_handed_out(head, prints, kept, further.links):
        head, kept, ambiguous = None, (), False
    near, quotes = (head, not chat.held and max(kept, default=0) < 0) if head else nearest(links, aligned)
    adds_nothing = bool(history) and history[-1].role == "assistant" and min(kept, default=-1) >= 0
    is_side, evidence = decide(asked, shape, near.shape if near else None, quotes, adds_nothing)
    parent = near.conversation if near else _most(links, (LinkKind.PHRASE, LinkKind.ECHO, LinkKind.CLIENT_ID))
    if is_side:
        return Lineage(
            Event.START,
            Role.SIDE,
            kept=(-1,) * len(history),
            parent=parent,
            summarises=asked.summarises,
            evidence=evidence,
        )
    if head is None:
        role, parent, why = _newcomer(speaker, further.links)
        return Lineage(
            Event.START,
            role,
            kept=(-1,) * len(history),
            parent=parent,
            evidence=(*why, "nothing that this proxy handed out reappears"),
        )
    if chat.held:
        return continued(chat, prints, head, list(heads.values()), seen.links, speaker.retry_hint)
    told = max((link.turn for link in links if link.kind is LinkKind.ECHO), default=0)
    verdict = _compare(chat, prints, shape, head, kept, echo, told, speaker)
    gone = _unmatched(head, kept)
    return Lineage(
        event=verdict[0],
        role=head.role,
        head=head,
        kept=kept,
        changed=tuple(at for at, index in enumerate(kept) if index >= 0 and head.fulls[index] != prints[at].full),
        dropped=gone,
        summary_at=verdict[2],
        ambiguous=ambiguous,
        window_full=verdict[0] is Event.TRUNCATE and head.event is Event.TRUNCATE,
        evidence=verdict[1],
    )


def _newcomer(speaker: Speaker, links: Sequence[Link]) -> tuple[Role, str, tuple[str, ...]]:
    if speaker.subagent_hint:
        parent = _most(links, (LinkKind.CLIENT_ID,))
        return Role.SUBAGENT, parent, ("the client names the conversation that it serves",)
    task = next((link for link in links if link.kind is LinkKind.TASK), None)
    if task is not None:
        return (
            Role.SUBAGENT,
            task.conversation,
            ("its first message is an argument of a tool call that was handed out",),
        )
    return Role.MAIN, "", ()


def _is_handed_out(head: Head, prints: Sequence[Fingerprint], kept: Sequence[int], links: Sequence[Link]) -> bool:
    """A sub-agent may share the id of the conversation that it serves, and a preamble; nothing that was said there."""
    said = any(index >= 0 and head.fulls[index] == prints[at].full for at, index in enumerate(kept))
    return not said and any(link.kind is LinkKind.TASK for link in links)


def _unmatched(head: Head, kept: Sequence[int]) -> tuple[int, ...]:
    taken = set(kept)
    return tuple(index for index in range(len(head.fulls)) if index not in taken)


def _compare(
    chat: Chat,
    prints: Sequence[Fingerprint],
    shape: Shape,
    head: Head,
    kept: tuple[int, ...],
    echo: Mapping[int, int],
    told: int,
    speaker: Speaker,
) -> tuple[Event, tuple[str, ...], tuple[int, ...]]:
    """The event, the evidence, and where in the history the summary stands."""
    history = chat.history
    fresh = [at for at, index in enumerate(kept) if index < 0]
    changed = [at for at, index in enumerate(kept) if index >= 0 and head.fulls[index] != prints[at].full]
    gone = _unmatched(head, kept)
    last_index = max(kept, default=-1)
    old_gone = [index for index in gone if index < last_index]
    answered = [index for index in gone if index >= head.request_length]
    if not fresh and not changed and set(gone) <= set(answered):
        return Event.RETRY, ("the same messages again",), ()
    said = f"{len(gone)} of {len(head.fulls)} messages that stood there last are gone"
    new = [at for at, index in enumerate(kept) if index < 0 or index >= head.request_length]
    opaque = tuple(at for at in new if history[at].opaque)
    if opaque and gone:
        return Event.SUMMARY, (said, "what the provider made of them stands in their place"), opaque
    moved = moved_summaries(head, kept)
    if moved and old_gone:
        return Event.SUMMARY, (said, "a summary stands behind what it stood in front of"), moved
    echoing = echo.keys() & new_places(prints, shape, head, kept)
    if echoing and gone and _is_wrapped_anew(head, gone, told):
        goes_on = Event.TOOL if _ends_in_tool(history, head, kept, fresh) else Event.APPEND
        return goes_on, ("the summary of before, in other company",), ()
    if echoing and gone:
        where = tuple(sorted(at for at in echoing if at >= 0))
        return Event.SUMMARY, (said, "the answer to a summariser's request echoes in a new message"), where
    last_kept_at = max((at for at, index in enumerate(kept) if index >= 0), default=-1)
    inside = [at for at in fresh if at < last_kept_at]
    if old_gone:
        if event := _in_place(history, shape, head, kept, gone, old_gone, inside):
            return event
        beside = [at for at in changed if kept[at] + 1 == old_gone[0]]  # a summary renewed behind the same opening
        standing_in = _stand_ins(chat, shape, head, [*inside, *beside])
        if standing_in is not None and len(old_gone) > 1:
            return Event.SUMMARY, (said, "a long new text stands in their place"), standing_in
        if _cleared(head, gone) and not _opted_in(speaker):
            return Event.EDIT, (said, "not one answer of ours is left: cleared on purpose"), ()
        return Event.TRUNCATE, (said, "nothing stands in their place"), ()
    if len(gone) > len(answered):
        if _opted_in(speaker) and last_index < 0:
            return Event.TRUNCATE, (said, "the client names the conversation and sends only what is new"), ()
        return Event.EDIT, (said, "what stood at the end was replaced or dropped"), ()
    if speaker.retry_hint and fresh == [len(history) - 1] and history[-1].role == "user":
        return Event.RETRY, ("the client says that it tries again; the try before was refused",), ()
    if _ends_in_tool(history, head, kept, fresh):
        return Event.TOOL, ("all is there, and tool results came",), ()
    return Event.APPEND, ("all is there, and a message came",), ()


def _is_wrapped_anew(head: Head, gone: Sequence[int], told: int) -> bool:
    """
    What a client puts around a summary, files read again, say, goes when its process ends; nothing else is gone.

    Args:
        told: the turn of the newest summary that echoes.
    """
    spoken = HeadFlag.ASSISTANT | HeadFlag.TOOL
    is_dialogue_there = not any(head.flags[index] & spoken for index in gone)
    return is_dialogue_there and head.event is Event.SUMMARY and told < head.turn


def _cleared(head: Head, gone: Sequence[int]) -> bool:
    ours = {index for index, flags in enumerate(head.flags) if flags & HeadFlag.OURS}
    return bool(ours) and ours <= set(gone)


def _opted_in(speaker: Speaker) -> bool:
    """Whoever names the conversation in our own header wants it continued, whatever is sent of it."""
    return any(value.startswith("palimpsest:") for value in speaker.client_ids)


def _in_place(
    history: Sequence[Message],
    shape: Shape,
    head: Head,
    kept: Sequence[int],
    gone: Sequence[int],
    old_gone: Sequence[int],
    inside: Sequence[int],
) -> tuple[Event, tuple[str, ...], tuple[int, ...]] | None:
    """Old messages changed where they stood: cleared tools, a hand-over, a rebuilt preamble. None: they are gone."""
    tools = HeadFlag.TOOL
    if all(head.flags[index] & tools for index in old_gone):
        replaced = [at for at in inside if history[at].role == "tool"]
        if len(replaced) == len(old_gone):
            return Event.CLEAR, (f"{len(replaced)} tool results were replaced in their places",), ()
    rewritten = shape.instructions[:1] != head.shape.instructions[:1]
    if rewritten and all(head.flags[index] & (tools | HeadFlag.CALLS) for index in old_gone) and not inside:
        return Event.EDIT, ("another system prompt, and tool steps were filtered out: a hand-over",), ()
    answered = any(head.flags[index] & HeadFlag.OURS for index in gone if index < head.request_length)
    if answered:
        return None
    spoken = HeadFlag.ASSISTANT | HeadFlag.TOOL
    tail = max((index for index in range(head.request_length) if head.flags[index] & spoken), default=-1) + 1
    if old_gone[0] >= tail and (tail or sum(index < 0 for index in kept) > len(old_gone)):
        return Event.APPEND, ("only what the client had put beside the last question is gone",), ()
    is_prefix = list(old_gone) == list(range(len(old_gone)))
    if is_prefix and not (rewritten and inside) and len(inside) != len(old_gone):
        return None
    if not inside and sum(index < 0 and m.role == "user" for index, m in zip(kept, history, strict=True)) < 2:
        return None
    marked = any(len(history[at].text) <= MARK_CHARS and _MARK.search(history[at].text) for at in inside)
    if marked:
        return None
    return Event.APPEND, ("the client rebuilt messages of its own around the dialogue, which is all there",), ()


def _stand_ins(chat: Chat, shape: Shape, head: Head, inside: Sequence[int]) -> tuple[int, ...] | None:
    """Where a summary stands: long new texts before something kept, or () for a new instruction. None: nowhere."""
    history = chat.history
    found = tuple(at for at in inside if history[at].role != "tool" and len(history[at].text) >= SUMMARY_CHARS)
    if found:
        return found
    known = set(head.shape.instructions)
    instructions = [m for m in chat.messages if m.is_instruction]
    if len(instructions) > 1 and any(
        print not in known and len(message.text) >= SUMMARY_CHARS
        for print, message in list(zip(shape.instructions, instructions, strict=True))[1:]
    ):
        return ()
    return None


def _ends_in_tool(history: Sequence[Message], head: Head, kept: Sequence[int], fresh: Sequence[int]) -> bool:
    """Tool results came; some clients send them as user messages and tell the calls in their own words."""
    if not history:
        return False
    added = set(fresh)
    last = len(history) - 1
    while last in added and history[last].role == "user" and is_aside(history[last].text):
        last -= 1
    if last >= 0 and history[last].role in ("tool", "function") and (last == len(history) - 1 or last in added):
        return True
    asked = bool(head.flags) and bool(head.flags[-1] & HeadFlag.CALLS) and head.request_length < len(head.fulls)
    retold = any(history[at].role == "assistant" for at in fresh)
    answered = any(history[at].role == "tool" for at in fresh)
    return asked and retold and not answered and len(head.fulls) - 1 not in kept


def _echoing(chat: Chat, links: Sequence[Link], key: bytes) -> dict[int, int]:
    """
    Where summaries that we handed out echo, places as in `align.new_places`.

    Returns:
        For each place the shingles in their own words. What they quote, people may say again without any summary.
    """
    known = {link.print for link in links if link.kind is LinkKind.ECHO}
    quoted = {link.print for link in links if link.kind is LinkKind.PHRASE}
    if not known:
        return {}
    found = {}
    histories, instructions = 0, 0
    for message in chat.messages:
        place = -1 - instructions if message.is_instruction else histories
        histories, instructions = histories + (place >= 0), instructions + (place < 0)
        if known.intersection(opaque_prints(message, key)):
            found[place] = WHOLE_HITS
        elif message.role != "tool" and len(message.text) >= LONG_CHARS:
            hits = known.intersection(shingles(message.text[:ECHO_CHARS], key))
            if len(hits) >= PHRASE_HITS:
                found[place] = len(hits - quoted)
    return found


def _most(links: Sequence[Link], kinds: tuple[LinkKind, ...]) -> str:
    """The conversation that most links of these kinds lead to, or ""."""
    counted = Counter(link.conversation for link in links if link.kind in kinds)
    return counted.most_common(1)[0][0] if counted else ""
