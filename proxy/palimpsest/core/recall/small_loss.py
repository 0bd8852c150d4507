"""
Small losses: what a conversation has lost, given back whole while it is little.

A request often needs what it does not ask for: "Can I take ibuprofen?" of somebody who told of weak kidneys. No word or
meaning leads from the one to the other. But where all that was lost is shorter than an ordinary block, nothing has to
be found: the conversation gets it back as a whole, once, and keeps it as long as the block's message is in the request.
Only general questions do not come, nor their answers: they can be asked again.
Where more was lost, but the user told little, what he told comes in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from palimpsest.core.archive.chunking import names
from palimpsest.core.recall.ranking import LEAST_TELLING, Bools, PassageTable, QueryMatches, Rows
from palimpsest.core.recall.utterance import ENGLISH, is_telling, read_utterance

SHARE_TOLD = 1 / 5  # three or four statements: more are no longer little, and one is found among them
LEAST_STATING = 0.2  # ... of what a request may be about: a task that was asked for is near to any other task
# Cosine to the nearest of that, of MiniLM. By these 102 chats, in windows of five messages, are told 230 of 236 needs
# that nobody asks for, and something in 35 of 201 turns that need nothing; where any message counts, and .25 and .13
# do, 224 and 50. Who says "I" or "my" means himself. In other languages this model finds any two sentences near.
LEAST_NEARNESS = 0.15
LEAST_OWN_NEARNESS = 0.05
LEAST_FOREIGN_NEARNESS = 0.4
LONG_TALK_MARGIN = 0.07  # where more was lost than what is given: the talk is about other things, too


GENERAL = re.compile(  # what anybody could ask, of a word, a country or a line of code
    r"(?i)\W{0,9}(?![^\"\u201c\u00ab]*\b(?:my|mine|ours?|me|us|we|it|that|this|these|those|above|earlier|before|two"
    r"|the (?!following|capital|plural|past|population|distance|difference|word))\b)"
    r"(?:and |please |(?:can|could|would) you )*(?:(?:translate|spell|define|convert)\b"
    r"|how (?:do|does|would|can) (?:i|you|we|one) (?:say|spell|pronounce)\b|(?:another|a better) word for\b"
    r"|what does \W?[\w ]{1,30}\W? mean\b"
    r"|what(?:'s| is| was) the (?:capital|plural|past tense|population|distance|difference between)\b"
    r"|(?:regex|bash|python|sql|javascript|css|excel)\b)"
)


def small_loss(table: PassageTable, lost: Bools, untold: Bools, asked: QueryMatches, most_chars: int) -> Rows:
    """
    The rows to give back: all that was lost and is not told, or what the user told of it, or none.

    Args:
        lost: (n,), what the model no longer sees of this conversation, whether a replayed block tells it or not.
        untold: (n,), those of them that no block tells.
        most_chars: that may be lost, all together. Of what the user told a fifth of them, where more was lost.
    """
    whole, told, margin = lost, lost & table.users & (table.tells >= LEAST_TELLING), 0.0
    is_small = 0 < table.lengths[whole].sum() <= most_chars
    if not is_small and 0 < table.lengths[told].sum() <= most_chars * SHARE_TOLD:
        whole, is_small, margin = told, True, LONG_TALK_MARGIN
    rows = np.flatnonzero(untold & whole)
    if not is_small or not len(rows) or not _is_due(table, whole, untold & whole):
        return np.empty(0, np.int64)
    return rows if concerns(table, whole, asked, margin) else np.empty(0, np.int64)


def without_general(table: PassageTable, rows: Rows, said: Mapping[int, str]) -> Rows:
    """
    The rows without the user's questions that speak of nothing of his own and name nothing, and without their answers.

    Anybody could ask those, and they can be asked again: "How long do cats sleep?"

    Args:
        rows: of one conversation, in order.
        said: the text of each.
    """
    kept: list[int] = []
    is_general = False
    for row in rows.tolist():
        if table.users[row]:
            text = said.get(row, "")
            is_general = bool(table.asks[row]) and not (read_utterance(text).own or names(text))
        if not is_general:
            kept.append(row)
    return np.array(kept, np.int64)


def _is_due(table: PassageTable, lost: Bools, untold: Bools) -> bool:
    """Whether something is untold that cannot wait for the next block: all of it, or a statement of the user's."""
    told = lost & ~untold
    return not told.any() or bool((untold & table.users & (table.tells >= LEAST_TELLING)).any())


def concerns(table: PassageTable, lost: Bools, asked: QueryMatches, margin: float) -> bool:
    """
    Whether a request may be about the conversation: by whose things it names, and by what is nearest to it.

    Of what was lost only what the user told counts, if anything: questions and tasks are near to any other.

    Args:
        margin: that it has to be nearer.
    """
    said = read_utterance(asked.text)
    if said.is_small_talk or is_telling(asked.text) or GENERAL.match(asked.text):
        return False
    is_own = said.own > 0
    if asked.cosines is None:
        return is_own or bool(asked.found)
    statements = lost & table.users & ~table.only_asks(slice(None)) & (table.tells >= LEAST_STATING)
    nearest = float(asked.cosines[statements if statements.any() else lost].max()) - margin
    if said.language != ENGLISH:
        return nearest >= LEAST_FOREIGN_NEARNESS
    return nearest >= (LEAST_OWN_NEARNESS if is_own else LEAST_NEARNESS)
