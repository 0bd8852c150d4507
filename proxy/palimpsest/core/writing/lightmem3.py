"""
LightMem-3's path without a model: from turns through two buffers to one summary a topic.

LightMem, "Lightweight and Efficient Memory-Augmented Generation", section 3: each turn is pre-compressed and fills a
sensory buffer of 512 tokens; a full one is cut at topic boundaries, its last topic waits for what follows; topics fill
a short-term buffer, and a full one is summarised in one call. Here a summary is an extract: of each topic the sentences
that tell most that is new, for their length. `batches` is the path itself; a model summarises the same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import groupby
from math import sqrt

from palimpsest.core.archive.chunking import query_terms
from palimpsest.core.recall.ranking import Floats
from palimpsest.core.recall.utterance import QUESTION_MARKS, read_utterance
from palimpsest.core.writing.clauses import SPEAKER_ROLES, Clause, clauses, join_clauses
from palimpsest.core.writing.compression import KEEP, compressed
from palimpsest.core.writing.entries import ENTRY_TOKENS, LEAST_TOKENS, Count, cost, share
from palimpsest.core.writing.information import TermStatistics
from palimpsest.core.writing.topics import boundaries, label
from palimpsest.domain import Item, SourceMessage, frozen

SENSORY_TOKENS = 512  # LightMem-3 5.1
SHORT_TERM_TOKENS = 1024  # LightMem-3 5.5 tries 256 to 1,024: the larger, the fewer calls
# In LightMem-3's figures a turn of LongMemEval, 460 tokens, is 40 after compression; what users say counts for more.
MOST_WORDS = {"user": 48, "assistant": 16}

Compress = Callable[[str, int], str]
"""A text, and how many words may be left of it, to a shorter one that says the same."""


@frozen
class Topic:
    """Messages about one thing (indexes into the segment), and their compressed texts."""

    messages: tuple[int, ...]
    texts: tuple[str, ...]


@frozen
class Buffers:
    """Sizes in compressed tokens, and the share of words that compression keeps."""

    sensory_tokens: int = SENSORY_TOKENS
    short_term_tokens: int = SHORT_TERM_TOKENS
    keep: float = KEEP


PAPER = Buffers()


@frozen
class _Turn:
    messages: tuple[int, ...]
    texts: tuple[str, ...]
    tokens: int


def write(
    segment: Sequence[SourceMessage],
    budget_tokens: int,
    count: Count,
    statistics: TermStatistics,
    buffers: Buffers = PAPER,
    compress: Compress | None = None,
    vectors: Floats | None = None,
) -> tuple[Item, ...]:
    """One item a topic, in order of the conversation; see `entries.Write` and `batches`."""
    found = batches(segment, count, statistics, buffers, compress, vectors)
    topics = [topic for batch in found for topic in batch]
    weights = [sqrt(sum(map(len, topic.texts))) for topic in topics]
    shares = [budget_tokens * weight / sum(weights) for weight in weights]
    spoken_by_message = {at: [*spoken] for at, spoken in groupby(clauses(segment), key=lambda clause: clause.message)}
    items = []
    room = 0.0
    for topic, own, following in zip(topics, shares, (*shares, 0.0)[1:], strict=True):
        room += own  # what one topic leaves, the next one may use
        named = label(topic.texts, statistics)
        spoken = [clause for at in topic.messages for clause in spoken_by_message.get(at, ())]
        entry = ENTRY_TOKENS + count(named)
        # A topic of one turn has a share for less than it says: its best statement may take from the next topic's.
        chosen = _extract(spoken, segment, int(room) - entry, int(room + following) - entry, count, statistics)
        if chosen:
            item = Item(_lines_of(chosen), tuple(clause.span(segment) for clause in chosen), topic=named)
            spent = cost(item, count)
            if spent <= room + following:
                room -= spent
                items.append(item)
    return tuple(items)


def batches(
    segment: Sequence[SourceMessage],
    count: Count,
    statistics: TermStatistics,
    buffers: Buffers = PAPER,
    compress: Compress | None = None,
    vectors: Floats | None = None,
    is_over: bool = True,
) -> Iterator[tuple[Topic, ...]]:
    """
    The contents of the short-term buffer each time that it is full, and once in the end: what one call summarises.

    Args:
        compress: None: by the self-information of words.
        vectors: (n, d), unit length, of the turns in `turns`; None: words alone tell topics apart.
        is_over: False: more may follow, so what does not fill a buffer stays in it.
    """
    short_term: list[Topic] = []
    tokens = 0
    for topic, size in _topics(segment, count, statistics, buffers, compress, vectors, is_over):
        short_term.append(topic)
        tokens += size
        if tokens >= buffers.short_term_tokens:
            yield tuple(short_term)
            short_term, tokens = [], 0
    if short_term and is_over:
        yield tuple(short_term)


def filled(
    unread: Sequence[SourceMessage],
    count: Count,
    statistics: TermStatistics,
    buffers: Buffers = PAPER,
    compress: Compress | None = None,
    vectors: Floats | None = None,
) -> int:
    """How many of the first messages fill the short-term buffer once; 0: they do not yet. See `batches`."""
    first = next(batches(unread, count, statistics, buffers, compress, vectors, is_over=False), ())
    return first[-1].messages[-1] + 1 if first else 0


def turns(segment: Sequence[SourceMessage]) -> list[tuple[int, ...]]:
    """What users and the assistant say, as indexes: a user's messages and the answers to them are one turn."""
    found: list[list[int]] = []
    for at, said in enumerate(segment):
        if said.role not in SPEAKER_ROLES or not said.text.strip():
            continue
        if not found or (said.role == "user" and segment[found[-1][-1]].role != "user"):
            found.append([])
        found[-1].append(at)
    return [tuple(turn) for turn in found]


def _topics(
    segment: Sequence[SourceMessage],
    count: Count,
    statistics: TermStatistics,
    buffers: Buffers,
    compress: Compress | None,
    vectors: Floats | None,
    is_over: bool,
) -> Iterator[tuple[Topic, int]]:
    """Topics with their compressed tokens, as the sensory buffer gives them away."""
    shorten = compress or (lambda text, most: compressed(text, statistics, buffers.keep, most))
    sensory: list[_Turn] = []
    first = 0  # index of the turn that the buffer begins with
    spoken = turns(segment)
    for at, turn in enumerate(spoken if is_over else spoken[:-1]):  # the last may go on
        texts = tuple(shorten(segment[i].text, MOST_WORDS[segment[i].role]) for i in turn)
        sensory.append(_Turn(turn, texts, sum(map(count, texts))))
        if len(sensory) > 1 and sum(held.tokens for held in sensory) > buffers.sensory_tokens:
            near = None if vectors is None else vectors[first : at + 1]
            cuts = boundaries([" ".join(held.texts) for held in sensory], statistics, near)
            cuts = cuts or [len(sensory) - 1]  # one topic fills the buffer: it is given away, but for its last turn
            for start, stop in zip([0, *cuts[:-1]], cuts, strict=True):
                yield _topic_and_tokens(sensory[start:stop])
            sensory = sensory[cuts[-1] :]
            first = at + 1 - len(sensory)
    if sensory and is_over:
        near = None if vectors is None else vectors[first:]
        cuts = boundaries([" ".join(held.texts) for held in sensory], statistics, near)
        for start, stop in zip([0, *cuts], [*cuts, len(sensory)], strict=True):
            yield _topic_and_tokens(sensory[start:stop])


def _topic_and_tokens(held: Sequence[_Turn]) -> tuple[Topic, int]:
    messages = tuple(at for turn in held for at in turn.messages)
    texts = tuple(text for turn in held for text in turn.texts)
    return Topic(messages, texts), sum(turn.tokens for turn in held)


def _extract(
    spoken: Sequence[Clause],
    segment: Sequence[SourceMessage],
    room: int,
    most: int,
    count: Count,
    statistics: TermStatistics,
) -> list[Clause]:
    """
    The statements that tell most that is new for their length, in order (Lin and Bilmes, ACL 2011).

    Args:
        room: tokens of all of them.
        most: tokens of the best one, if it stands alone.
    """
    terms = [frozenset(query_terms(clause.text)) for clause in spoken]
    tokens = [count(f"{clause.speaker}: {clause.text}") + 1 for clause in spoken]
    said: set[str] = set()

    def gain(at: int) -> float:
        return statistics.information(terms[at] - said) * share(segment[spoken[at].message]) / tokens[at]

    telling = (at for at, clause in enumerate(spoken) if not clause.text.endswith(QUESTION_MARKS))
    waiting = [(-gain(at), at) for at in telling if not read_utterance(spoken[at].text).is_small_talk]
    heapify(waiting)
    chosen: list[int] = []
    while waiting and (room if chosen else most) >= LEAST_TOKENS // 2:
        _, at = heappop(waiting)
        now = gain(at)  # gains only shrink: whoever is still ahead of all others is the best
        if waiting and -now > waiting[0][0]:
            heappush(waiting, (-now, at))
        elif now and tokens[at] <= (room if chosen else most):
            room -= tokens[at]
            chosen.append(at)
            said |= terms[at]
    return [spoken[at] for at in sorted(chosen)]


def _lines_of(chosen: Sequence[Clause]) -> str:
    """The chosen statements as text, a line for each run of one speaker."""
    lines = []
    for (_, speaker), said in groupby(chosen, key=lambda clause: (clause.role, clause.speaker)):
        text = join_clauses([clause.text for clause in said])
        lines.append(f"{speaker}: {text}" if speaker else text)
    return "\n".join(lines)
