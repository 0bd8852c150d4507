"""
Small losses: what a conversation has lost, given back whole while it is little.

A request often needs what it does not ask for: "Can I take ibuprofen?" of somebody who told of weak kidneys. No word or
meaning leads from the one to the other. But where all that was lost is shorter than an ordinary block, nothing has to
be found: the conversation gets it back as a whole, once, and keeps it as long as the block's message is in the request.
"""

from __future__ import annotations

import numpy as np

from palimpsest.core.recall.ranking import Asked, Bools, PassageTable, Rows
from palimpsest.core.recall.utterance import ENGLISH, read

LEAST_TELLING = 0.5  # of `PassageTable.tells`: a person's statement, and no question or task
# Cosine to the nearest of what the user told and lost, of MiniLM. Of 122 needs in 43 English chats that nobody asks
# for, 117 are told where it is .15, and 108 where any message counts and it is .25; of 83 requests that need nothing
# one is, either way. Who says "I" or "my" means himself. In other languages this model finds any two sentences near.
LEAST_NEARNESS = 0.15
LEAST_OWN_NEARNESS = 0.05
LEAST_FOREIGN_NEARNESS = 0.35


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
    if not is_small or not len(rows) or not _is_due(table, lost, untold) or not concerns(table, lost, asked):
        return np.empty(0, np.int64)
    return rows


def _is_due(table: PassageTable, lost: Bools, untold: Bools) -> bool:
    """Whether something is untold that cannot wait for the next block: all of it, or a statement of the user's."""
    told = lost & ~untold
    return not told.any() or bool((untold & table.users & (table.tells >= LEAST_TELLING)).any())


def concerns(table: PassageTable, lost: Bools, asked: Asked) -> bool:
    """
    Whether a request may be about the conversation: by whose things it names, and by what is nearest to it.

    Of what was lost the user's own words count that are no questions: questions are near to any other.
    """
    said = read(asked.text)
    is_own = said.own > 0
    if asked.cosines is None:
        return is_own or bool(asked.found)
    statements = lost & table.users & ~table.asks
    nearest = float(asked.cosines[statements if statements.any() else lost].max())
    if said.language != ENGLISH:
        return nearest >= LEAST_FOREIGN_NEARNESS
    return nearest >= (LEAST_OWN_NEARNESS if is_own else LEAST_NEARNESS)
