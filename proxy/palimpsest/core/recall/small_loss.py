"""
Small losses: what a conversation has lost, given back whole while it is little.

A request often needs what it does not ask for: "Can I take ibuprofen?" of somebody who told of weak kidneys. No word or
meaning leads from the one to the other. But where all that was lost is shorter than an ordinary block, nothing has to
be found: the conversation gets it back as a whole, once, and keeps it as long as the block's message is in the request.
"""

from __future__ import annotations

import numpy as np

from palimpsest.core.recall.ranking import Asked, Bools, PassageTable, Rows
from palimpsest.core.recall.utterance import read

LEAST_TELLING = 0.5  # of `PassageTable.tells`: a person's statement, and no question or task
# Cosine to the nearest of what was lost, of MiniLM. Of 60 requests in fourteen English chats that needed something, 57
# are nearer; of 26 other ones ("Write a limerick about a sailor.") 24 are not. Who says "I" or "my" means himself.
LEAST_NEARNESS = 0.25
LEAST_OWN_NEARNESS = 0.13


def small_loss(table: PassageTable, lost: Bools, untold: Bools, asked: Asked, most_chars: int) -> Rows:
    """
    The rows to give back: all that was lost and is not told, or none.

    Args:
        lost: (n,), what the model no longer sees of this conversation, whether a replayed block tells it or not.
        untold: (n,), those of them that no block tells.
        most_chars: that may be lost, all together.
    """
    rows = np.flatnonzero(untold)
    is_small = 0 < table.lengths[lost].sum() <= most_chars
    if not is_small or not len(rows) or not _is_due(table, lost, untold) or not concerns(lost, asked):
        return np.empty(0, np.int64)
    return rows


def _is_due(table: PassageTable, lost: Bools, untold: Bools) -> bool:
    """Whether something is untold that cannot wait for the next block: all of it, or a statement of the user's."""
    told = lost & ~untold
    return not told.any() or bool((untold & table.users & (table.tells >= LEAST_TELLING)).any())


def concerns(lost: Bools, asked: Asked) -> bool:
    """Whether a request may be about the conversation: by whose things it names, and by what is nearest to it."""
    is_own = read(asked.text).own > 0
    if asked.cosines is None:
        return is_own or bool(asked.found)
    return float(asked.cosines[lost].max()) >= (LEAST_OWN_NEARNESS if is_own else LEAST_NEARNESS)
