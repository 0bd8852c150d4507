"""
What has a memory been worth so far? It gains by being recalled, and fades while others are.

LANTERN (arXiv 2606.05182, section 3.2 and appendix A): confidence c starts at 0.5; a round, that is a block that was
said, adds 0.15 to what stands in it and takes 0.02 from all the rest, down to 0.10. Success s is a moving average of
"was recalled", smoothed by 0.1, from 0.5. Under a confidence of 0.15 a memory is no longer recalled; it stays archived.
The paper prunes what stays at the floor with a low success rate: whoever is there has missed 18 rounds or more, and
has a success rate under 0.15, so the one rule is both.

Fading is computed when it is asked for, so that a round writes what it recalled and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from proxy.core.recall.ranking import Bools, Floats, Rows
from proxy.domain import Reach
from proxy.settings.policy import ReinforcementPolicy

FIRST_CONFIDENCE = 0.5  # c0, LANTERN 3.1
FIRST_SUCCESS = 0.5  # s0, LANTERN 3.1


@dataclass(frozen=True, slots=True)
class Standing:
    """How a message stood right after the round, counted from 1, that recalled it last."""

    round: int
    confidence: float
    success: float
    accesses: int


@dataclass(frozen=True, slots=True)
class Rounds:
    """
    The rounds of one scope.

    `newest` are, for each round in order, the newest occurrence there was: later messages took no part in it;
    `recalled` are the messages, by occurrence, that any of them recalled.
    """

    newest: tuple[int, ...] = ()
    recalled: Mapping[int, Standing] | None = None


def scope_name(reach: Reach, conversation: str, user: str, project: str) -> str:
    """What rounds are kept apart by, inside a tenant: only what the same questions may look at fades together."""
    parts = {Reach.CONVERSATION: (conversation,), Reach.USER: (user, project), Reach.TENANT: (project,)}[reach]
    return "\0".join((reach.value, *parts))


def rewarded(occurrence: int, rounds: Rounds, policy: ReinforcementPolicy) -> Standing:
    """How a message stands that the round behind all of these recalls."""
    confidence, success, accesses = standings(np.array([occurrence]), rounds, policy)
    return Standing(
        round=len(rounds.newest) + 1,
        confidence=min(1.0, float(confidence[0]) + policy.boost),
        success=float(success[0]) + policy.smoothing * (1 - float(success[0])),
        accesses=int(accesses[0]) + 1,
    )


def standings(occurrences: Rows, rounds: Rounds, policy: ReinforcementPolicy) -> tuple[Floats, Floats, Rows]:
    """Confidence, success rate and accesses of messages now, each (n,), for occurrences (n,)."""
    newest = np.array(rounds.newest, np.int64)
    missed = len(newest) - np.searchsorted(newest, occurrences)  # rounds that happened since it was said
    confidence = np.full(len(occurrences), FIRST_CONFIDENCE)
    success = np.full(len(occurrences), FIRST_SUCCESS)
    accesses = np.zeros(len(occurrences), np.int64)
    for occurrence, standing in (rounds.recalled or {}).items():
        rows = occurrences == occurrence
        missed[rows] = len(newest) - standing.round
        confidence[rows], success[rows], accesses[rows] = standing.confidence, standing.success, standing.accesses
    faded = np.maximum(confidence - policy.decay * missed, np.minimum(confidence, policy.floor))
    return faded, success * (1 - policy.smoothing) ** missed, accesses


def worth(occurrences: Rows, rounds: Rounds, policy: ReinforcementPolicy) -> tuple[Floats, Bools]:
    """
    For occurrences (n,), each (n,): F * c * s of LANTERN's importance, with F = log2(accesses + 1) + 1; and whether a
    message is recalled at all.
    """
    confidence, success, accesses = standings(occurrences, rounds, policy)
    return (np.log2(accesses + 1) + 1) * confidence * success, confidence >= policy.threshold
