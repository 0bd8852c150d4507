"""
Requests whose history the provider holds: they continue the answer that they name, with all that led to it.

`previous_response_id` names an answer, `conversation` a history that grows. Either way only what is new is sent: the
rest is not gone, it stands in front, blocks of ours included.
"""

from __future__ import annotations

from collections.abc import Sequence

from palimpsest.domain import Chat, Event, Fingerprint, Head, HeadFlag, Lineage, Link, LinkKind


def held_head(links: Sequence[Link], heads: Sequence[Head]) -> Head | None:
    """
    The head of the history that the provider holds for a request; None: it never passed here.

    An answer of a side request led to no head: what it was asked beside goes on.
    """
    turns = {link.turn for link in links if link.kind is LinkKind.REPLY}
    named = {link.conversation for link in links if link.kind in (LinkKind.REPLY, LinkKind.CLIENT_ID)}
    found = [head for head in heads if head.turn in turns] or [head for head in heads if head.conversation in named]
    return max(found, key=lambda head: head.turn, default=None)


def continued(
    chat: Chat,
    prints: Sequence[Fingerprint],
    head: Head,
    heads: Sequence[Head],
    links: Sequence[Link] = (),
    is_repeated: bool = False,
) -> Lineage:
    """
    The lineage of a request that goes on from a head the provider holds.

    Args:
        prints: of `chat.history`, in order.
        heads: of the same conversation, among others: somebody may have gone on from there before.
        is_repeated: the client says that it tries again.
    """
    start = _seen_from(head, links)
    before = list(head.occurrences[start:])
    length = len(before)
    sent = [fingerprint.full for fingerprint in prints]
    later = [
        other
        for other in heads
        if before
        and other.conversation == head.conversation
        and len(other.occurrences) > length
        and list(other.occurrences[:length]) == before
    ]
    again = [other for other in later if list(other.fulls[length : other.request_length]) == sent]
    new = (-1,) * len(sent)
    if again and sent:
        newest = max(again, key=lambda other: other.turn)
        kept = tuple(range(length, length + len(sent)))
        dropped = tuple(range(length + len(sent), len(newest.fulls)))
        why = "the same messages again, after the same answer"
        return Lineage(
            Event.RETRY, newest.role, newest, kept, dropped=dropped, held=tuple(range(length)), evidence=(why,)
        )
    if start:
        event, why = Event.SUMMARY, f"the provider has compacted the first {start} messages of what it holds"
    elif later and chat.follows:
        event, why = Event.EDIT, "it continues from an answer that was continued differently before"
    elif is_repeated:
        event, why = Event.RETRY, "the client marks it as a retry; the attempt before was refused"
    elif chat.history and chat.history[-1].role == "tool":
        event, why = Event.TOOL, "the provider holds the history; new tool results"
    else:
        event, why = Event.APPEND, "the provider holds the history; a new message"
    held, dropped = tuple(range(start, len(head.fulls))), tuple(range(start))
    return Lineage(event, head.role, head, new, dropped=dropped, held=held, evidence=(why,))


def _seen_from(head: Head, links: Sequence[Link]) -> int:
    """
    Index of the first message that the provider still reads.

    It may have compacted on its way to an answer of ours, or as its own answer, which a request then names.
    """
    named = {link.fingerprint for link in links if link.kind is LinkKind.REPLY}
    if any(link.kind is LinkKind.ECHO and link.fingerprint in named for link in links):
        return len(head.fulls)
    wanted = HeadFlag.OURS | HeadFlag.COMPACTED
    return max((index for index, flags in enumerate(head.flags) if flags & wanted == wanted), default=0)
