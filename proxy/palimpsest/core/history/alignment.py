"""
The alignment of a request with stored histories, and the choice of the one that it shares most with.

In order where possible, moved where not: clients re-place file contents and reminders, drop the oldest messages, cut
one in its middle, put a summary in front.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import accumulate
from operator import attrgetter, eq

from palimpsest.core.history.link_keys import LONG_CHARS, flags_of, is_unique
from palimpsest.domain import Fingerprint, Head, HeadFlag, Link, LinkKind, Message, Shape

PHRASE_HITS = 2  # one shared run of eight words may be a saying; two are a quotation
RESUMED_CHARS = 200  # of a message that says it goes on with what was said before; a summary is longer
_RESUMES = re.compile(
    r"(?i)\b(?:session|conversation|chat|work|task)\b.{0,40}\b(?:continued?|continues|continuing|resum\w+|so far)\b"
    r"|\b(?:continued|continuing|continuation|resum\w+|summary|recap)\b.{0,40}"
    r"\b(?:previous|earlier|our|this) (?:session|conversation|chat|work|task)\b"
)
_OF_CLIENT = attrgetter("stream", "user_agent", "model", "tool_names", "instructions")
WHOLE_HITS = 4  # ... and so many are the summary itself, where nothing else leads back

Aligned = tuple[Head, tuple[int, ...]]
"""A head, and for each history message the index into it that it continues, or -1."""


def align(history: Sequence[Message], prints: Sequence[Fingerprint], head: Head) -> tuple[int, ...]:
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
    asked = {prints[at].full for at in range(start, len(prints))}
    for index in range(start, len(fulls)):
        if fulls[index] in asked:
            places[fulls[index]].append(index)
    passed: dict[int, deque[int]] = defaultdict(deque)  # places that the cursor went by: taken only where none is ahead
    cursor = start - 1
    for at in range(start, len(prints)):
        full = prints[at].full
        ahead, behind = places.get(full), passed[full]
        while ahead and ahead[0] <= cursor:
            behind.append(ahead.popleft())
        if not (waiting := ahead or behind):
            continue
        index = waiting.popleft()
        kept[at] = index
        cursor = max(cursor, index)
    fresh = Counter(prints[at].opening for at in range(start, len(prints)) if kept[at] < 0)
    taken = set(kept)
    openings: dict[int, list[int]] = defaultdict(list)
    for index in range(start, len(fulls)):
        is_said = not head.flags[index] & (HeadFlag.TOOL | HeadFlag.CALLS)
        if is_said and head.openings[index] in fresh and index not in taken:
            openings[head.openings[index]].append(index)
    for at in range(start, len(prints)):
        if kept[at] < 0 and history[at].role != "tool" and not history[at].calls:
            same = openings.get(prints[at].opening, [])
            if len(same) == 1 and fresh[prints[at].opening] == 1:
                kept[at] = same[0]
    return tuple(kept)


def alignments(history: Sequence[Message], prints: Sequence[Fingerprint], heads: Iterable[Head]) -> list[Aligned]:
    """
    Each head with its alignment, without states before a compaction where one behind it explains the request.

    `closest` would rank those lower, and a sliding window leaves one at every turn.
    """
    explained: dict[str, int] = {}  # conversation: compactions of the head that explains the request
    aligned = []
    for head in sorted(heads, key=lambda head: (-head.compactions, -head.turn)):
        if head.compactions >= explained.get(head.conversation, 0):
            kept = align(history, prints, head)
            aligned.append((head, kept))
            if not _unexplained_answers(history, kept) and _own_answers(head, kept):
                explained[head.conversation] = head.compactions
    return aligned


def new_places(prints: Sequence[Fingerprint], shape: Shape, head: Head, kept: Sequence[int]) -> set[int]:
    """
    Places in a request whose content the head does not have.

    Returns:
        Indexes into the history; -1 - n for the n-th instruction. Among messages
        that kept their opening but changed after it, only summaries count: people reword for other reasons. A summary
        in the last place is always new.
    """
    known = set(head.shape.instructions)
    instructions = {-1 - n for n, fingerprint in enumerate(shape.instructions) if fingerprint not in known}
    summaries = {at for at, index in enumerate(kept) if index >= 0 and head.flags[index] & HeadFlag.SUMMARY}
    renewed = {at for at in summaries if head.fulls[kept[at]] != prints[at].full or at == len(kept) - 1}
    return instructions | renewed | {at for at, index in enumerate(kept) if index < 0}


def moved_summaries(head: Head, kept: Sequence[int]) -> tuple[int, ...]:
    """Indexes into the history of summaries that moved behind messages which they used to precede."""
    furthest = accumulate(kept, max, initial=-1)  # of what stands before each
    return tuple(
        at
        for at, (index, before) in enumerate(zip(kept, furthest, strict=False))
        if index >= 0 and head.flags[index] & HeadFlag.SUMMARY and before > index
    )


def closest(
    history: Sequence[Message],
    prints: Sequence[Fingerprint],
    shape: Shape,
    links: Sequence[Link],
    aligned: Sequence[Aligned],
    echo: Mapping[int, int],
    counted: Set[int] = frozenset(),
) -> tuple[Head | None, tuple[int, ...], bool]:
    """
    The head that shares most with the request, its alignment, and whether another shares exactly as much.

    Args:
        echo: where summaries that we handed out echo, and in how many shingles of their own; places as `new_places`.
        counted: fingerprints of calls that lead nowhere by themselves, as `link_keys.counted_calls`; that other
            conversations have them, and this one has not, still tells the two apart.
    """
    leading = [link for link in links if link.fingerprint not in counted or link.kind is not LinkKind.CALL]
    hard = {link.conversation for link in leading if link.kind in (LinkKind.CALL, LinkKind.CLIENT_ID, LinkKind.ANSWER)}
    phrases = Counter(link.conversation for link in links if link.kind is LinkKind.PHRASE)
    soft = {link.conversation for link in links if link.kind is LinkKind.MESSAGE}
    soft |= {conversation for conversation, hits in phrases.items() if hits >= PHRASE_HITS}
    called, answered = (_conversations_by_print(links, kind) for kind in (LinkKind.CALL, LinkKind.ANSWER))
    only_here = set().union(*(led_to for led_to in answered.values() if len(led_to) == 1))
    whole = {place for place, hits in echo.items() if hits >= WHOLE_HITS}
    echoed = {link.conversation for link in links if link.kind is LinkKind.ECHO} if whole else set()
    named = {link.conversation for link in links if link.kind is LinkKind.CLIENT_ID}
    echoed_at = {
        link.conversation: link.turn for link in sorted(links, key=lambda link: link.turn) if link.kind is LinkKind.ECHO
    }
    echoes = {(link.conversation, link.fingerprint) for link in links if link.kind in (LinkKind.ECHO, LinkKind.PHRASE)}
    counts = Counter(conversation for conversation, _ in echoes)
    retraced = Counter({conversation: hits for conversation, hits in counts.items() if hits >= PHRASE_HITS})
    compactions: dict[str, int] = {}
    for head, _ in aligned:
        compactions[head.conversation] = max(head.compactions, compactions.get(head.conversation, 0))
    ranked = []
    for head, kept in aligned:
        is_named, is_hard = head.conversation in named, head.conversation in hard
        is_retold = head.conversation in soft and _retells(history, head, kept)
        is_resumed = head.conversation in phrases and _resumes(history, shape, head, kept)
        if not (is_hard or head.conversation in echoed or is_retold or is_resumed):
            continue
        is_only_here = head.conversation in only_here
        if is_hard and not is_named and not _shares_branch(history, head, kept, leading, is_only_here):
            continue
        matched = sum(index >= 0 for index in kept)
        weight = (
            is_named,
            -sum(head.conversation not in owners for owners in called.values()),  # calls that others were given
            _own_answers(head, kept),
            retraced[head.conversation],  # before what clients and people say behind any summary, such as "continue"
            -_unexplained_answers(history, kept),
            _goes_back(head, kept),
            matched > 0,
            head.compactions == compactions[head.conversation],  # what a client has compacted, it seldom takes up again
            (matched - len(head.fulls), 0) if matched else (echoed_at.get(head.conversation, 0), head.turn),
            matched,
            _likeness(shape, head.shape),
        )
        ranked.append((weight, head, kept))
    if not ranked:
        return None, (), False
    ranked.sort(key=lambda row: (row[0], -row[1].turn), reverse=True)
    best = ranked[0]
    twins = {row[1].conversation for row in ranked if row[0] == best[0]}
    return best[1], best[2], len(twins) > 1


def nearest(links: Sequence[Link], aligned: Sequence[Aligned]) -> tuple[Head | None, bool]:
    """The head that a request borrows from without continuing it, and whether it quotes that head."""
    linked = {link.conversation for link in links}
    borrowed = [(sum(i >= 0 for i in kept), -head.turn, head) for head, kept in aligned if head.conversation in linked]
    if (most := max(borrowed, key=lambda row: row[:2], default=None)) and most[0]:
        return most[2], False
    phrases = Counter(link.conversation for link in links if link.kind is LinkKind.PHRASE)
    quoted = [(phrases[head.conversation], head.turn, head) for head, _ in aligned]
    most = max(quoted, key=lambda row: row[:2], default=None)
    return (most[2], True) if most and most[0] >= PHRASE_HITS else (None, False)


def _own_answers(head: Head, kept: Sequence[int]) -> int:
    """How many answers that passed here the history holds; a client's own may stand behind each of its summaries."""
    return sum(index >= 0 and head.flags[index] & HeadFlag.OURS > 0 for index in kept)


def _unexplained_answers(history: Sequence[Message], kept: Sequence[int]) -> int:
    """How many answers in the history the head does not hold."""
    return sum(index < 0 and message.role == "assistant" for index, message in zip(kept, history, strict=True))


def _goes_back(head: Head, kept: Sequence[int]) -> bool:
    """Whether the request begins as the head does, at least through one answer, and all that follows is new."""
    shared = next((at for at, index in enumerate(kept) if index != at), len(kept))
    return max(kept[shared:], default=-1) < 0 and any(flags & HeadFlag.OURS for flags in head.flags[:shared])


def _conversations_by_print(links: Sequence[Link], kind: LinkKind) -> Mapping[int, Set[str]]:
    """The conversations that links of one kind lead to, by fingerprint."""
    found: dict[int, set[str]] = defaultdict(set)
    for link in links:
        if link.kind is kind:
            found[link.fingerprint].add(link.conversation)
    return found


def _shares_branch(
    history: Sequence[Message], head: Head, kept: Sequence[int], links: Sequence[Link], is_only_here: bool
) -> bool:
    """
    Whether the request contains something said in this branch, not only what its siblings share.

    Models open many conversations with the same words: an answer counts behind a question of this branch, or behind
    none. Where no other conversation was given one of the answers, and the newest is there, they count behind any
    question: clients change what they send again. A call that is only numbered, and its result, may stand in other
    conversations, too: beside an answer that leads here they count.

    Args:
        is_only_here: one of the answers leads to no other conversation.
    """
    linked = {link.kind for link in links if link.conversation == head.conversation}
    said, is_answered = HeadFlag.OURS | HeadFlag.TOOL, LinkKind.ANSWER in linked
    newest = max((index for index, flags in enumerate(head.flags) if flags & HeadFlag.OURS), default=-1)
    is_its_own = is_only_here and newest >= 0 and newest in kept
    counts, before = True, ""  # an answer at this place
    for message, index in zip(history, kept, strict=True):
        if message.role == "user":
            counts = is_its_own or index >= 0 or (counts and before == "user")
        elif counts and index >= 0 and head.flags[index] & said and (is_answered or not _is_numbered(message)):
            return True
        before = message.role
    # an answer that the client re-sends in its own words still leads here by its tool calls, or by its echo
    return bool(linked & {LinkKind.CALL, LinkKind.ECHO})


def _is_numbered(message: Message) -> bool:
    """Whether a message is known by calls alone, none of which has an id of its own."""
    is_result = flags_of(message) & HeadFlag.TOOL
    ids = [message.answers_call] if is_result else [call.id for call in message.calls]
    return bool(ids) and len(message.text) < LONG_CHARS and not any(map(is_unique, ids))


def _retells(history: Sequence[Message], head: Head, kept: Sequence[int]) -> bool:
    """
    Whether the client keeps what it said itself and puts our answers in its own words (calls as text, say).

    All that it sent before is still there, and an assistant message is new.
    """
    sent = set(range(head.request_length)) <= set(kept)
    return sent and any(index < 0 and m.role == "assistant" for index, m in zip(kept, history, strict=True))


def _likeness(shape: Shape, other: Shape) -> int:
    return sum(map(eq, _OF_CLIENT(shape), _OF_CLIENT(other)))


def _resumes(history: Sequence[Message], shape: Shape, head: Head, kept: Sequence[int]) -> bool:
    """
    Whether the same client says in front that it goes on with a conversation of which no answer is left.

    It summed up by itself, or by a model that is asked elsewhere, and what it kept never passed here.
    """
    own, other = (shape.instructions, shape.tool_names), (head.shape.instructions, head.shape.tool_names)
    return bool(shape.instructions) and own == other and resumed_at(history, head, kept) >= 0


def resumed_at(history: Sequence[Message], head: Head, kept: Sequence[int]) -> int:
    """
    Index of a message that says the dropped conversation continues, where no answer of that is left; or -1.

    What assistants said without passing here leads nowhere, and is no answer that is left.
    """
    at = next((at for at, message in enumerate(history) if message.role == "user"), -1)
    if at < 0 or len(history[at].text) < RESUMED_CHARS:
        return -1
    has_answers = any(index >= 0 and head.flags[index] & (HeadFlag.OURS | HeadFlag.TOOL) for index in kept)
    return at if not has_answers and _RESUMES.search(history[at].text, 0, RESUMED_CHARS) else -1
