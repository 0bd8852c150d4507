"""
The lineage of a request: the conversation that it continues, and what the client did to its history meanwhile.

Most clients send no id, so a request is led back by what the proxy handed out itself: answers and tool-call ids that
reappear. Then the history of the request is aligned with the head that it shares most with, and what differs is named
by the rules of `events`:

    nothing of ours reappears                                   start
    all is there, and more                                      append, or tool when tool results came
    all is there, and nothing more                              retry
    the end was replaced, or the last message reworded          edit
    tool texts replaced in their places                         compaction:clear_tool_results
    old messages gone, a summariser's answer echoes in a new    compaction:summary
    old messages gone, a long new text has replaced them    compaction:summary
    all gone, a long new text says that it goes on with it      compaction:summary
    old messages gone, what the provider made of them is new    compaction:summary
    old messages gone                                           compaction:truncate

Prefix hashes find none of the summaries; system prompts and tool lists collide between conversations and change within
one: neither is used as a key.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence

from palimpsest.core.history import link_keys
from palimpsest.core.history.alignment import PHRASE_HITS, WHOLE_HITS, Aligned, alignments, closest, nearest
from palimpsest.core.history.changes import AppendOnlyChanges, Changes
from palimpsest.core.history.events import event_of
from palimpsest.core.history.request_roles import Intent, is_side_request
from palimpsest.core.history.shingles import shingles
from palimpsest.core.reading import Reading
from palimpsest.domain import (
    Chat,
    Continuation,
    Event,
    Fingerprint,
    Follows,
    Head,
    HeadFlag,
    KnownHistory,
    Lineage,
    Link,
    LinkKind,
    Role,
    Shape,
    Speaker,
)

INDEXES = tuple(range(2048))  # made once: most histories are shorter
NOTHING = KnownHistory()
NAMING = (LinkKind.CLIENT_ID, LinkKind.REPLY)  # of links: by these a request says which conversation it continues
SHORT_SHARE = 1 / 3  # of a message's runs: as many are a client's own words around a summary of forty words
GOING_ON = (Event.APPEND, Event.TOOL, Event.EDIT)
UNTOLD = "the newest compaction got nothing back yet: what it removed is restored now"
RESTORED_GONE = "the message in which the compaction was answered is gone: what that removed is restored again"


def trace(
    chat: Chat,
    prints: Sequence[Fingerprint],
    shape: Shape,
    intent: Intent,
    speaker: Speaker,
    key: bytes,
    seen: KnownHistory,
    further: KnownHistory = NOTHING,
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
    if speaker.names_conversation:
        links, heads = _only_named(links, heads)
    aligned = alignments(history, prints, heads.values())
    echo = _echoing(chat, links, key)
    if chat.held:
        from palimpsest.core.history.server_history import continued, held_head  # few clients leave it to the provider

        head, kept, ambiguous = held_head(links, list(heads.values())), (-1,) * len(history), False
        shape = link_keys.inherited(chat, shape, head)
    else:
        reached = (links, aligned) if speaker.names_conversation else _unnamed(links, aligned)
        head, kept, ambiguous = closest(history, prints, shape, *reached, echo, link_keys.counted_calls(history, key))
    if head is not None and intent.lone and _is_handed_out(head, prints, kept, further.links):
        head, kept, ambiguous = None, (), False
    near, quotes = (head, not chat.held and max(kept, default=0) < 0) if head else nearest(links, aligned)
    adds_nothing = bool(history) and history[-1].role == "assistant" and min(kept, default=-1) >= 0
    is_side, evidence = is_side_request(intent, shape, near.shape if near else None, quotes, adds_nothing)
    parent = near.conversation if near else _likeliest(links, (LinkKind.PHRASE, LinkKind.ECHO, LinkKind.CLIENT_ID))
    if is_side:
        return Lineage(
            Event.START,
            Role.SIDE,
            kept=(-1,) * len(history),
            parent=parent,
            summarises=intent.summarises,
            evidence=evidence,
            repeats=_repeated(prints, head, kept) if head is not None and intent.compacts and not chat.held else None,
        )
    if head is None:
        role, parent, why = _role_of_new(speaker, further.links)
        return Lineage(
            Event.START,
            role,
            kept=(-1,) * len(history),
            parent=parent,
            evidence=(*why, "none of the proxy's earlier answers reappears"),
        )
    if chat.held:
        return continued(chat, prints, head, list(heads.values()), seen.links, speaker.retry_hint)
    summarised_at = max((link.turn for link in links if link.kind is LinkKind.ECHO), default=0)
    changes = Changes(chat, prints, shape, head, kept, echo, summarised_at, speaker)
    event, evidence, summary_at = event_of(changes)
    restores_again = event is Event.EDIT and changes.restores_lost
    if restores_again:
        evidence = (*evidence, RESTORED_GONE)
    elif head.is_untold and event in GOING_ON:
        restores_again, evidence = True, (*evidence, UNTOLD)
    return Lineage(
        event=event,
        role=head.role,
        head=head,
        kept=kept,
        changed=changes.changed,
        dropped=changes.gone,
        summary_at=summary_at,
        ambiguous=ambiguous,
        window_full=event is Event.TRUNCATE and head.event is Event.TRUNCATE,
        restores_again=restores_again,
        evidence=evidence,
    )


def follows(reading: Reading, before: Follows, speaker: Speaker) -> Continuation | None:
    """
    The look-up that proves that a request only goes on; None: it may do more, which `trace` finds out.

    A long answer, and behind it what people say or tools answer: nothing in that can lead to another conversation.
    """
    history, prints, at = reading.history, reading.history_prints, before.messages
    new = history[at + 1 :]
    chat = reading.chat
    if not new or len(new) >= link_keys.NEWEST_CLUES or chat.held or chat.follows or chat.compacts:
        return None
    answer = history[at]
    is_plain = answer.role == "assistant" and len(answer.text) >= link_keys.LONG_CHARS
    if not is_plain or speaker != before.speaker or speaker.retry_hint:
        return None
    called = {call.id for call in answer.calls} | {""}
    if any(m.role == "assistant" or m.calls or m.answers_call not in called for m in new):
        return None
    if reading.opaque:
        return None
    return Continuation(speaker.tenant, before.turn, prints[at].full)


def extended(
    reading: Reading, shape: Shape, intent: Intent, asking: Continuation, seen: KnownHistory, speaker: Speaker
) -> Lineage | None:
    """
    What `trace` says of a request that repeats all of a head and goes on; None where it might say something else.

    Args:
        asking: of `follows`.
        seen: the links that its answer left anywhere, and the newest heads of the conversation, the newest first.
    """
    if not seen.heads or {link.conversation for link in seen.links} != {seen.heads[0].conversation}:
        return None
    head, older = seen.heads[0], seen.heads[1:]
    length, sent, prints = len(head.fulls), head.request_length, reading.history_prints
    if any(other.compactions >= head.compactions for other in older) or not head.flags[-1] & HeadFlag.OURS:
        return None
    if not 0 < length < len(prints) or prints[length - 1].full != asking.answer or sent != length - 1:
        return None
    fulls = head.fulls if isinstance(head.fulls, array) else array("q", head.fulls)
    if reading.history_fulls[:length] != fulls:
        return None
    if is_side_request(intent, shape, head.shape, False)[0]:
        return None
    kept = _indexes(length) + (-1,) * (len(prints) - length)
    changes = AppendOnlyChanges(reading.chat, prints, shape, head, kept, {}, 0, speaker)
    event, evidence, summary_at = event_of(changes)
    if again := head.is_untold:
        evidence = (*evidence, UNTOLD)
    return Lineage(
        event, head.role, head, kept, summary_at=summary_at, restores_again=again, evidence=evidence, goes_on=True
    )


def _indexes(count: int) -> tuple[int, ...]:
    return INDEXES[:count] if count <= len(INDEXES) else tuple(range(count))


def _role_of_new(speaker: Speaker, links: Sequence[Link]) -> tuple[Role, str, tuple[str, ...]]:
    """Role, parent and evidence of a conversation that continues none: a subagent or a main one."""
    if speaker.subagent_hint:
        parent = _likeliest(links, (LinkKind.CLIENT_ID,))
        return Role.SUBAGENT, parent, ("the client names the conversation that it belongs to",)
    task = next((link for link in links if link.kind is LinkKind.TASK), None)
    if task is not None:
        return (Role.SUBAGENT, task.conversation, ("its first message is an argument of an earlier tool call",))
    return Role.MAIN, "", ()


def _only_named(links: Sequence[Link], heads: Mapping[int, Head]) -> tuple[tuple[Link, ...], dict[int, Head]]:
    """What leads to the conversation that the caller names, to the history it names, or to whom it serves."""
    named = {link.conversation for link in links if link.kind in NAMING}
    kept = tuple(link for link in links if link.conversation in named or link.kind is LinkKind.TASK)
    return kept, {turn: head for turn, head in heads.items() if head.conversation in named}


def _unnamed(links: Sequence[Link], aligned: Sequence[Aligned]) -> tuple[Sequence[Link], Sequence[Aligned]]:
    """The same without what leads to conversations that our own header names: a request without it continues none."""
    named = {head.conversation for head, _ in aligned if head.is_named}
    others = [one for one in aligned if one[0].conversation not in named]
    return [link for link in links if link.conversation not in named], others


def _is_handed_out(head: Head, prints: Sequence[Fingerprint], kept: Sequence[int], links: Sequence[Link]) -> bool:
    """Whether the request begins a subagent: its task, and no message of it, comes from this conversation."""
    is_shared = any(index >= 0 and head.fulls[index] == prints[at].full for at, index in enumerate(kept))
    return not is_shared and any(link.kind is LinkKind.TASK for link in links)


def _repeated(prints: Sequence[Fingerprint], head: Head, kept: Sequence[int]) -> tuple[Head, tuple[int, ...]]:
    """What stands in the head as it is sent; without the last message, which a block can then stand on."""
    said = zip(prints[:-1], kept, strict=False)
    return head, tuple(index if index >= 0 and head.fulls[index] == one.full else -1 for one, index in said)


def _echoing(chat: Chat, links: Sequence[Link], key: bytes) -> dict[int, int]:
    """
    Places at which summaries that we handed out echo, as in `align.new_places`.

    Returns:
        For each place the shingles in their own words, at least `WHOLE_HITS` where the message is hardly more than
        the summary. What they quote, people may say again without any summary.
    """
    known = {link.fingerprint for link in links if link.kind is LinkKind.ECHO}
    quoted = {link.fingerprint for link in links if link.kind is LinkKind.PHRASE}
    if not known:
        return {}
    found = {}
    histories, instructions = 0, 0
    for message in chat.messages:
        place = -1 - instructions if message.is_instruction else histories
        histories, instructions = histories + (place >= 0), instructions + (place < 0)
        if known.intersection(link_keys.opaque_prints(message, key)):
            found[place] = WHOLE_HITS
        elif message.role != "tool" and len(message.text) >= link_keys.LONG_CHARS:
            own = shingles(message.text[: link_keys.ECHO_CHARS], key)
            hits = known.intersection(own)
            if len(hits) >= PHRASE_HITS:
                # Of a short summary the sample may keep fewer: then a message that says little else is the whole.
                is_short = len(hits - quoted) >= max(PHRASE_HITS, SHORT_SHARE * len(own))
                found[place] = max(len(hits - quoted), WHOLE_HITS * is_short)
    return found


def _likeliest(links: Sequence[Link], kinds: tuple[LinkKind, ...]) -> str:
    """The conversation that most links of these kinds lead to, or ""."""
    counted = Counter(link.conversation for link in links if link.kind in kinds)
    return counted.most_common(1)[0][0] if counted else ""
