"""
Reinforcement: what was quoted gains confidence, and what was not loses some, round by round. Off by default: measured,
it gains nothing (docs/papers.md).

LANTERN (arXiv 2606.05182, section 3.2 and appendix A): confidence starts at 0.5; a round, here a block, adds 0.15 to
what it quotes and takes 0.02 from all else, down to 0.10. Success is a moving average of "was quoted", smoothed by 0.1,
from 0.5. Below a confidence of 0.15 a message is no longer recalled. The paper prunes what stays at the floor with a
low success rate; who is there missed 18 rounds or more, so the one rule is both, and nothing is erased.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from palimpsest.core.recall.ranking import Bools, Floats, Rows
from palimpsest.domain.frozen import frozen

FIRST_CONFIDENCE = 0.5  # c0, LANTERN 3.1
FIRST_SUCCESS = 0.5  # s0, LANTERN 3.1
BOOST, DECAY, FLOOR, LEAST_CONFIDENCE, SMOOTHING = 0.15, 0.02, 0.10, 0.15, 0.1


@frozen
class Round:
    """A block: the occurrence that it was said in, which is the newest of its time, and those that it quotes."""

    newest: int
    quoted: Collection[int]


@frozen
class MessageWorth:
    """What messages are worth now, (n,): F * c * s of LANTERN's importance; and which may still be recalled, (n,)."""

    worth: Floats
    may_come: Bools


def message_worth(occurrences: Rows, rounds: Sequence[Round]) -> MessageWorth:
    """
    How messages stand after all rounds of their scope.

    Args:
        occurrences: of the messages, (n,).
        rounds: in order.
    """
    confidence = np.full(len(occurrences), FIRST_CONFIDENCE)
    success = np.full(len(occurrences), FIRST_SUCCESS)
    accesses = np.zeros(len(occurrences))
    for one in rounds:
        was_there = occurrences < one.newest
        quoted = np.isin(occurrences, [*one.quoted])
        faded = np.maximum(confidence - DECAY, np.minimum(confidence, FLOOR))
        confidence = np.where(quoted, np.minimum(confidence + BOOST, 1.0), np.where(was_there, faded, confidence))
        success = np.where(was_there | quoted, success + SMOOTHING * (quoted - success), success)
        accesses += quoted
    return MessageWorth((np.log2(accesses + 1) + 1) * confidence * success, confidence >= LEAST_CONFIDENCE)
