"""
Passages that a compaction took away, ordered by what they name that nothing else says: for when nobody asks anything.

After a compaction an agent goes on working, and what it will need next is known to nobody; similarity to the messages
that still stand finds what they say already. So a block is filled like a summary is made: each passage in turn that
names most for its length, counting only what neither the client's summary, nor the messages that stand, nor an earlier
passage names (coverage under a budget: Lin and Bilmes, "A Class of Submodular Functions for Document Summarization",
ACL 2011; greedy by gain per cost). Names are the tags of `core/archive/chunking.py`: paths, errors, versions ...
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from heapq import heapify, heappop, heappush

from palimpsest.core.archive.chunking import ASKS, names_something
from palimpsest.domain.frozen import frozen

UNNAMED = 0.2  # what a passage that names nothing new still counts, in names: talk without names comes back too
TOLD = 3.0  # names that a user's surest statement counts for: decisions and facts are told in words, not in names
TELLING = 0.15  # who tells less, in a short line or a short question that names nothing new, greets, thanks or asks
GREETING_CHARS = 60  # of such a line; longer ones hold facts that no tag names: 1 point of what transcripts lost
BARE_QUESTION_CHARS = 120  # of such a question; longer ones bring facts along
SHORT_CHARS = 80  # shorter passages cost no less: each takes a line
OLD_LOSS = 0.3  # share that the oldest passage loses against the newest: what is recent is needed sooner
RESULT_SHARE = 0.05  # of what a tool returned: it is long, and can be had again


@frozen
class LostPassage:
    """
    One passage that may come back: its memory id, its length, its tags, and whether a tool said it.

    `tells` is how surely a user tells something with it, 0..1 (`digest.judged`); 0 for what others say. Whoever tells
    less and names nothing comes last, and not at all where it is a question or as short as greetings are.
    """

    id: int
    chars: int
    tags: frozenset[str]
    is_result: bool
    tells: float = 0.0


def by_coverage(
    lost: Sequence[LostPassage], shown: Set[str], limit: int, *, with_prose: bool = True
) -> list[tuple[LostPassage, float]]:
    """
    Choose the passages that together name most of what is gone, each with its gain, best first.

    Args:
        lost: in the order in which they were said.
        shown: tags of what still stands.
        limit: passages, >= 0.
        with_prose: whether passages come, last of all, that neither tell nor name anything new.

    Returns:
        At most `limit` passages, each with its gain when it was chosen: new names per 1,000 characters, weighted. Ties
        go to the newer one. The same passages with another `limit` come in the same order.
    """
    named = [frozenset(filter(names_something, one.tags - shown)) for one in lost]
    weights = [
        (RESULT_SHARE if one.is_result else 1.0) * (1 - OLD_LOSS * (len(lost) - at) / len(lost))
        for at, one in enumerate(lost)
    ]
    covered: set[str] = set()

    def gain(at: int) -> float:
        """What a passage adds to those chosen before, per 1000 characters; 0 for what names and tells nothing."""
        new, passage = len(named[at] - covered), lost[at]
        is_noise = not with_prose or passage.chars < (BARE_QUESTION_CHARS if ASKS in passage.tags else GREETING_CHARS)
        if not new and passage.tells < TELLING and is_noise:
            return 0.0
        return weights[at] * 1000 * (new + UNNAMED + TOLD * passage.tells) / max(passage.chars, SHORT_CHARS)

    waiting = [(-gain(at), -at) for at in range(len(lost))]
    heapify(waiting)
    chosen: list[tuple[LostPassage, float]] = []
    while waiting and len(chosen) < limit:
        _, minus = heappop(waiting)
        now = gain(-minus)  # gains only shrink: whoever is still ahead of all others is the best
        if waiting and -now > waiting[0][0]:
            heappush(waiting, (-now, minus))
            continue
        if not now:
            break
        chosen.append((lost[-minus], now))
        covered |= named[-minus]
    return chosen
