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
    old messages gone                                           compaction:truncate

"Old" is whatever stood before something that is still there. Prefix hashes find none of the summaries; system prompts
and tool lists collide between conversations and change within one: neither is used as a key.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict, deque
from collections.abc import Sequence

import orjson

from proxy.core.echo import shingles
from proxy.core.roles import Asked, decide
from proxy.domain import (
    Chat,
    Clues,
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
    Turn,
)

LONG_CHARS = 60  # shorter texts recur in other conversations: "Ok.", "Thanks!", "continue"
SUMMARY_CHARS = 200  # no summary worth its name is shorter
TASK_CHARS = 20  # a sub-agent's task is a sentence; shorter arguments are names and numbers
TASK_MESSAGES = 4  # a sub-agent's task stands first, or behind a preamble and its acknowledgement
CLUE_MESSAGES = 400  # the newest messages lead back; looking up more costs time and finds the same conversation
ECHO_CHARS = 120_000  # shingled at most per request: a transcript repeats its evidence many times over
ECHO_PRINTS = 4000  # looked up at most
KEPT_SHINGLES = 8  # remembered of one answer
ECHO_HITS = 2  # one shared run of eight words may be a quotation; two are an echo
_MARK = re.compile(r"(?i)\b(skipped|omitted|truncated|removed|trimmed|elided|dropped|hidden)\b")
MARK_CHARS = 160  # "[12 messages omitted]"


Aligned = tuple[Head, tuple[int, ...]]
"""A head, and for each history message the index into it that it continues, or -1."""


# --- what a request and an answer leave behind -----------------------------------------------------


def flags_of(message: Message) -> int:
    """The `HeadFlag` bits of a message, as far as the message alone tells."""
    role = {"user": HeadFlag.USER, "assistant": HeadFlag.ASSISTANT, "tool": HeadFlag.TOOL, "function": HeadFlag.TOOL}
    flags = role.get(message.role, 0)
    if len(message.text) >= LONG_CHARS:
        flags |= HeadFlag.LONG
    if message.calls:
        flags |= HeadFlag.CALLS
    return flags


def id_print(key: bytes, kind: str, value: str) -> int:
    """A keyed 63-bit fingerprint of an id."""
    digest = hashlib.blake2b(
        value.encode("utf-8", "surrogatepass"), digest_size=8, key=key[:64], person=kind.encode()[:16]
    )
    return int.from_bytes(digest.digest(), "big") >> 1


def answer_links(message: Message, print: Fingerprint, turn: Turn, key: bytes) -> tuple[tuple[LinkKind, int], ...]:
    """
    What an answer that we hand out will be known by.

    Args:
        turn: the request that it answers. Of side answers only summaries are known again, by their echo; a short
            answer is known only together with what it answered.
    """
    echo = _kept_shingles(message.text, key)
    if turn.role is Role.SIDE:
        return tuple((LinkKind.ECHO, value) for value in echo) if turn.summarises else ()
    links = []
    if message.text or message.calls:
        links.append((LinkKind.ANSWER, _answer_print(print.full, len(message.text), turn.last_full, key)))
    for call in message.calls:
        if call.id:
            links.append((LinkKind.CALL, id_print(key, "call", call.id)))
        links += [
            (LinkKind.TASK, id_print(key, "task", " ".join(value.split()))) for value in _sentences(call.arguments)
        ]
    links += [(LinkKind.PHRASE, value) for value in echo]
    return tuple(dict.fromkeys(links))


def request_links(
    history: Sequence[Message], prints: Sequence[Fingerprint], new: Sequence[int], speaker: Speaker, key: bytes
) -> tuple[tuple[LinkKind, int], ...]:
    """
    What the new messages of a main request will be known by: the client's ids, its long messages, and what people said
    where it may be quoted (an answer that only calls tools leaves nothing else to quote).

    Assistant messages that did not pass here are the client's own: it may open every conversation with the same ones.
    """
    links = [(LinkKind.CLIENT_ID, id_print(key, "client", value)) for value in speaker.client_ids]
    for at in new:
        message = history[at]
        if message.role == "user":
            links += [(LinkKind.PHRASE, value) for value in _kept_shingles(message.text, key)]
        if message.role in ("user", "assistant") and len(message.text) >= LONG_CHARS:
            links.append((LinkKind.MESSAGE, prints[at].full))
        links += [(LinkKind.CALL, id_print(key, "call", call.id)) for call in message.calls if call.id]
    return tuple(dict.fromkeys(links))


def shape_of(chat: Chat, instructions: Sequence[Fingerprint], user_agent: str) -> Shape:
    """What the request looks like from outside."""
    return Shape(
        model=chat.model,
        tool_names=chat.tool_names,
        instructions=tuple(print.full for print in instructions),
        opens=instructions[0].opening if instructions else 0,
        stream=chat.stream,
        user_agent=user_agent,
        capped=chat.max_reply_tokens is not None,
    )


# --- what to look up -------------------------------------------------------------------------------


def clues(history: Sequence[Message], prints: Sequence[Fingerprint], speaker: Speaker, key: bytes) -> Clues:
    """The first look-up: what leads this request back to a conversation."""
    found: dict[LinkKind, list[int]] = defaultdict(list)
    found[LinkKind.CLIENT_ID] = [id_print(key, "client", value) for value in speaker.client_ids]
    for at in range(max(0, len(history) - CLUE_MESSAGES), len(history)):
        message = history[at]
        if message.role == "assistant" and (message.text or message.calls):
            found[LinkKind.ANSWER].append(_answer_at(history, prints, at, key))
        if message.role in ("user", "assistant") and len(message.text) >= LONG_CHARS:
            found[LinkKind.MESSAGE].append(prints[at].full)
        found[LinkKind.CALL] += [id_print(key, "call", call.id) for call in message.calls if call.id]
        if message.answers_call:
            found[LinkKind.CALL].append(id_print(key, "call", message.answers_call))
    return Clues(speaker.tenant, {kind: tuple(dict.fromkeys(values)) for kind, values in found.items() if values})


def further_clues(chat: Chat, lineage: Lineage, speaker: Speaker, key: bytes) -> Clues | None:
    """The second look-up, where the first left the question open: echoes, transcripts, tasks. None: not needed."""
    if not lineage.is_open:
        return None
    history = chat.history
    unknown = (*lineage.fresh, *lineage.changed)
    echoes: list[int] = []
    room = ECHO_CHARS
    candidates = [history[at] for at in unknown if history[at].role != "tool"]
    for message in [m for m in chat.messages if m.is_instruction] + candidates:
        if room > 0 and len(message.text) >= LONG_CHARS:
            echoes += shingles(message.text[:room], key)
            room -= len(message.text)
    echoes = list(dict.fromkeys(echoes))[:ECHO_PRINTS]
    tasks = [id_print(key, "task", " ".join(m.text.split())) for m in history[:TASK_MESSAGES] if m.role == "user"]
    parents = [id_print(key, "client", value) for value in speaker.parent_ids]
    found = {LinkKind.ECHO: echoes, LinkKind.TASK: tasks, LinkKind.CLIENT_ID: parents}
    if lineage.head is None:
        found[LinkKind.PHRASE] = echoes
    return Clues(speaker.tenant, {kind: values for kind, values in found.items() if values})


# --- what it means ---------------------------------------------------------------------------------


def trace(
    chat: Chat,
    prints: Sequence[Fingerprint],
    shape: Shape,
    asked: Asked,
    speaker: Speaker,
    seen: Seen,
    key: bytes,
    *,
    further: Seen | None = None,
) -> Lineage:
    """
    Name what the client did since the request before.

    Args:
        prints: of `chat.history`, in order.
        seen: what the store knows of `clues`.
        further: what it knows of `further_clues`; None when not looked up (yet).

    Returns:
        A lineage; `is_open` where `further_clues` would say more.
    """
    history = chat.history
    more = further or Seen()
    links = (*seen.links, *(link for link in more.links if link.kind is not LinkKind.CLIENT_ID))
    heads = {head.turn: head for head in (*seen.heads, *more.heads)}
    aligned = [(head, _align(history, prints, head)) for head in heads.values()]
    echo = _echoing(chat, links, key)
    head, kept, ambiguous = _closest(history, shape, links, aligned, bool(echo))
    near, quotes = (head, False) if head else _nearest(links, aligned)
    is_side, evidence = decide(asked, shape, near.shape if near else None, quotes)
    parent = near.conversation if near else _most(links, (LinkKind.PHRASE, LinkKind.ECHO, LinkKind.CLIENT_ID))
    if is_side:
        return Lineage(
            Event.START,
            Role.SIDE,
            kept=(-1,) * len(history),
            parent=parent,
            is_open=not parent and further is None,
            summarises=asked.summarises,
            evidence=evidence,
        )
    if head is None:
        role, parent, why = _newcomer(speaker, more.links)
        return Lineage(
            Event.START,
            role,
            kept=(-1,) * len(history),
            parent=parent,
            evidence=(*why, "nothing that this proxy handed out reappears"),
            is_open=further is None,
        )
    verdict = _compare(chat, prints, shape, head, kept, echo, speaker, key)
    gone = _unmatched(head, kept)
    return Lineage(
        event=verdict[0],
        role=head.role,
        head=head,
        kept=kept,
        changed=tuple(at for at, index in enumerate(kept) if index >= 0 and head.fulls[index] != prints[at].full),
        dropped=gone,
        summary_at=verdict[2],
        parent=parent if head.role is Role.SUBAGENT else "",
        ambiguous=ambiguous,
        window_full=verdict[0] is Event.TRUNCATE and head.event is Event.TRUNCATE,
        evidence=verdict[1],
        is_open=further is None and bool(gone),
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


def _closest(
    history: Sequence[Message], shape: Shape, links: Sequence[Link], aligned: Sequence[Aligned], echoes: bool
) -> tuple[Head | None, tuple[int, ...], bool]:
    """The head that shares most with the request, its alignment, and whether another shares exactly as much."""
    hard = {link.conversation for link in links if link.kind in (LinkKind.CALL, LinkKind.CLIENT_ID, LinkKind.ANSWER)}
    phrases = Counter(link.conversation for link in links if link.kind is LinkKind.PHRASE)
    soft = {link.conversation for link in links if link.kind is LinkKind.MESSAGE}
    soft |= {conversation for conversation, hits in phrases.items() if hits >= ECHO_HITS}
    calls = Counter(link.conversation for link in links if link.kind is LinkKind.CALL)
    echoed = {link.conversation for link in links if link.kind is LinkKind.ECHO} if echoes else set()
    named = {link.conversation for link in links if link.kind is LinkKind.CLIENT_ID}
    told = {
        link.conversation: link.turn for link in sorted(links, key=lambda link: link.turn) if link.kind is LinkKind.ECHO
    }
    compactions: dict[str, int] = {}
    for head, _ in aligned:
        compactions[head.conversation] = max(head.compactions, compactions.get(head.conversation, 0))
    ranked = []
    for head, kept in aligned:
        is_named, is_hard = head.conversation in named, head.conversation in hard
        if not (
            is_hard or head.conversation in echoed or (head.conversation in soft and _retells(history, head, kept))
        ):
            continue
        if is_hard and not is_named and not _ours(head, kept, links):
            continue
        matched = sum(index >= 0 for index in kept)
        unexplained = sum(i < 0 and message.role == "assistant" for i, message in zip(kept, history, strict=True))
        weight = (
            is_named,
            -unexplained,
            matched > 0,
            head.compactions == compactions[head.conversation],  # what a client has compacted, it seldom takes up again
            (matched - len(head.fulls), 0) if matched else (told.get(head.conversation, 0), head.turn),
            matched,
            calls[head.conversation],
            _likeness(shape, head.shape),
        )
        ranked.append((weight, head, kept))
    if not ranked:
        return None, (), False
    ranked.sort(key=lambda row: (row[0], -row[1].turn), reverse=True)
    best = ranked[0]
    twins = {row[1].conversation for row in ranked if row[0] == best[0]}
    return best[1], best[2], len(twins) > 1


def _nearest(links: Sequence[Link], aligned: Sequence[Aligned]) -> tuple[Head | None, bool]:
    """The head that a request borrows from without continuing it, and whether it quotes it inside a message."""
    linked = {link.conversation for link in links}
    borrowed = [(sum(i >= 0 for i in kept), -head.turn, head) for head, kept in aligned if head.conversation in linked]
    if (most := max(borrowed, key=lambda row: row[:2], default=None)) and most[0]:
        return most[2], False
    phrases = Counter(link.conversation for link in links if link.kind is LinkKind.PHRASE)
    quoted = [(phrases[head.conversation], head.turn, head) for head, _ in aligned]
    most = max(quoted, key=lambda row: row[:2], default=None)
    return (most[2], True) if most and most[0] >= ECHO_HITS else (None, False)


def _ours(head: Head, kept: Sequence[int], links: Sequence[Link]) -> bool:
    """Something that was said in this branch reappears, not just in a sibling of it."""
    if any(index >= 0 and head.flags[index] & (HeadFlag.OURS | HeadFlag.TOOL) for index in kept):
        return True
    # an answer that the client re-sends in its own words still leads here by its tool calls, or by its echo
    linked = {link.kind for link in links if link.conversation == head.conversation}
    return bool(linked & {LinkKind.CALL, LinkKind.ECHO})


def _retells(history: Sequence[Message], head: Head, kept: Sequence[int]) -> bool:
    """
    The client keeps what it said itself and tells our answers in its own words (tool calls as text, say).

    All that it sent before is still there, and an assistant message is new.
    """
    sent = set(range(head.request_length)) <= set(kept)
    return sent and any(index < 0 and m.role == "assistant" for index, m in zip(kept, history, strict=True))


def _likeness(shape: Shape, other: Shape) -> int:
    return sum(
        (
            shape.stream == other.stream,
            shape.user_agent == other.user_agent,
            shape.model == other.model,
            shape.tool_names == other.tool_names,
            shape.instructions == other.instructions,
        )
    )


def _align(history: Sequence[Message], prints: Sequence[Fingerprint], head: Head) -> tuple[int, ...]:
    """
    For each history message the index into the head that it continues, or -1.

    In order where possible, moved where not: clients re-place file contents and reminders. A message whose text
    changed behind its opening still counts, if it is the only one that opens so; tool results count whole only.
    """
    kept = [-1] * len(prints)
    places: dict[int, deque[int]] = defaultdict(deque)
    start = 0
    fulls = head.fulls
    while start < len(prints) and start < len(fulls) and prints[start].full == fulls[start]:
        kept[start] = start
        start += 1
    for index in range(start, len(fulls)):
        places[fulls[index]].append(index)
    cursor = start - 1
    for at in range(start, len(prints)):
        waiting = places.get(prints[at].full)
        if not waiting:
            continue
        index = next((index for index in waiting if index > cursor), waiting[0])
        waiting.remove(index)
        kept[at] = index
        cursor = max(cursor, index)
    taken = set(kept)
    openings: dict[int, list[int]] = defaultdict(list)
    for index in range(start, len(fulls)):
        if index not in taken and not head.flags[index] & (HeadFlag.TOOL | HeadFlag.CALLS):
            openings[head.openings[index]].append(index)
    fresh = Counter(prints[at].opening for at in range(start, len(prints)) if kept[at] < 0)
    for at in range(start, len(prints)):
        if kept[at] < 0 and history[at].role != "tool" and not history[at].calls:
            same = openings.get(prints[at].opening, [])
            if len(same) == 1 and fresh[prints[at].opening] == 1:
                kept[at] = same[0]
    return tuple(kept)


def _unmatched(head: Head, kept: Sequence[int]) -> tuple[int, ...]:
    taken = set(kept)
    return tuple(index for index in range(len(head.fulls)) if index not in taken)


def _compare(
    chat: Chat,
    prints: Sequence[Fingerprint],
    shape: Shape,
    head: Head,
    kept: tuple[int, ...],
    echo: frozenset[int],
    speaker: Speaker,
    key: bytes,
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
    if gone and echo and (old_gone or len(gone) > len(answered)):
        where = tuple(at for at in (*fresh, *changed) if at in echo)
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
    if old_gone[0] >= tail and sum(index < 0 for index in kept) > len(old_gone):
        return Event.APPEND, ("what the client put beside the last question stands beside the next one, renewed",), ()
    is_prefix = list(old_gone) == list(range(len(old_gone)))
    if is_prefix and not (rewritten and inside) and len(inside) != len(old_gone):
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
    if history[-1].role in ("tool", "function"):
        return True
    asked = bool(head.flags) and bool(head.flags[-1] & HeadFlag.CALLS) and head.request_length < len(head.fulls)
    retold = any(history[at].role == "assistant" for at in fresh)
    answered = any(history[at].role == "tool" for at in fresh)
    return asked and retold and not answered and len(head.fulls) - 1 not in kept


def _echoing(chat: Chat, links: Sequence[Link], key: bytes) -> frozenset[int]:
    """History indexes (-1: an instruction) of the messages in which a side answer echoes."""
    known = {link.print for link in links if link.kind is LinkKind.ECHO}
    if not known:
        return frozenset()
    found = set()
    at = -1
    for message in chat.messages:
        at += not message.is_instruction
        if message.role == "tool" or len(message.text) < LONG_CHARS:
            continue
        if len(known.intersection(shingles(message.text[:ECHO_CHARS], key))) >= min(ECHO_HITS, len(known)):
            found.add(-1 if message.is_instruction else at)
    return frozenset(found)


def _answer_at(history: Sequence[Message], prints: Sequence[Fingerprint], at: int, key: bytes) -> int:
    return _answer_print(prints[at].full, len(history[at].text), prints[at - 1].full if at else 0, key)


def _answer_print(full: int, chars: int, last_full: int, key: bytes) -> int:
    return full if chars >= LONG_CHARS else id_print(key, "short", f"{last_full}:{full}")


def _kept_shingles(text: str, key: bytes) -> list[int]:
    """The same few of any text, chosen by their value: a quotation that is cut still holds some of them."""
    return sorted(shingles(text, key))[:KEPT_SHINGLES]


def _sentences(arguments: str) -> list[str]:
    """String values of a call's arguments that could be a task for somebody."""
    try:
        value = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return []
    texts = value.values() if isinstance(value, dict) else ()
    return [text for text in texts if isinstance(text, str) and len(text) >= TASK_CHARS]


def _most(links: Sequence[Link], kinds: tuple[LinkKind, ...]) -> str:
    """The conversation that most links of these kinds lead to, or ""."""
    counted = Counter(link.conversation for link in links if link.kind in kinds)
    return counted.most_common(1)[0][0] if counted else ""
