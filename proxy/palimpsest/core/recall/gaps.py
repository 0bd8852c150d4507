"""
The write gap and the retrieval gap: at which stage the answers to probes get lost, as shares of them.

The write gap is the share of answers that are not in what is stored, the retrieval gap that of answers which are stored
and do not come back. What is larger by more than a margin is the verdict.

Source: WhenLoss (arXiv 2605.24579), sections 3.3 and 3.4, where a reader's scores take the place of shares.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from math import sqrt

from palimpsest.core.recall.trail import Gap
from palimpsest.domain import Json, frozen

MARGIN = 0.02  # WhenLoss 3.4: closer gaps do not tell
SURE = 1.96  # standard errors on either side: 95 of 100 such estimates hold the true share


class ProbeStage(StrEnum):
    """Where the answer to a probe was lost, in the order of the stages."""

    STORED = "stored"  # the turn could not be stored
    REDACTED = "redacted"
    INDEXED = "indexed"
    EMBEDDED = "embedded"
    CANDIDATE = "candidate"
    RANKED = "ranked"
    LIKELY = "likely"
    PACKED = "packed"
    FOUND = "found"  # it was not lost


@frozen
class Loss:
    """The meaning of a loss at a stage: which gap it belongs to, and what to change."""

    gap: Gap
    meaning: str
    advice: str


LOSSES: Mapping[ProbeStage, Loss] = {
    ProbeStage.STORED: Loss(Gap.WRITE, "the turn could not be stored", "see the log for what was set aside"),
    ProbeStage.REDACTED: Loss(
        Gap.WRITE, "it was mistaken for, or is, a credential", "nothing, if it is one; else set archive.redact to false"
    ),
    ProbeStage.INDEXED: Loss(
        Gap.WRITE,
        "no passage holds it: the middle of a very long message is not indexed, or the index is damaged",
        "palimpsest index --all, if it is more than that of long messages",
    ),
    ProbeStage.EMBEDDED: Loss(
        Gap.WRITE,
        "its passage waits for its vector, and is not found by its words alone",
        "wait; palimpsest doctor says whether the embedding model is there",
    ),
    ProbeStage.CANDIDATE: Loss(
        Gap.RETRIEVAL,
        "it was not among the candidates for the question",
        "another embedding model may find it: palimpsest model list",
    ),
    ProbeStage.RANKED: Loss(
        Gap.RETRIEVAL,
        "too many other passages are nearer to the question",
        "set memory.reach to conversation, or keep users and projects apart",
    ),
    ProbeStage.LIKELY: Loss(Gap.RETRIEVAL, "memory was not sure enough to help", "set memory.generosity to generous"),
    ProbeStage.PACKED: Loss(
        Gap.RETRIEVAL, "more likely passages filled the block", "set memory.generosity to generous"
    ),
}


@frozen
class GapEstimate:
    """
    What became of probes.

    `stages` counts them by the stage at which they got lost, all stages in order, `found` last.
    """

    stages: Mapping[ProbeStage, int]
    since: float = 0.0  # Unix seconds, of the oldest probe; 0: there is none
    until: float = 0.0  # of the newest

    @property
    def probes(self) -> int:
        return sum(self.stages.values())

    @property
    def write(self) -> float:
        """The write gap, 0..1."""
        return self._lost_share(Gap.WRITE)

    @property
    def retrieval(self) -> float:
        """The retrieval gap, 0..1."""
        return self._lost_share(Gap.RETRIEVAL)

    @property
    def verdict(self) -> str:
        return verdict(self.write, self.retrieval)

    def error(self, share: float) -> float:
        """Half the width of the 95 % interval of a share of these probes (Agresti and Coull 1998)."""
        count = self.probes + 4
        near = (share * self.probes + 2) / count
        return SURE * sqrt(near * (1 - near) / count)

    def _lost_share(self, gap: Gap) -> float:
        lost = sum(count for stage, count in self.stages.items() if stage in LOSSES and LOSSES[stage].gap is gap)
        return lost / self.probes if self.probes else 0.0


def estimate(stages: Iterable[str], since: float = 0.0, until: float = 0.0) -> GapEstimate:
    """The estimate from the stages at which probes got lost; those that are not known are left out."""
    counts = dict.fromkeys(ProbeStage, 0)
    for stage in stages:
        if stage in counts:
            counts[ProbeStage(stage)] += 1
    return GapEstimate(counts, since, until)


def verdict(write: float, retrieval: float) -> str:
    """Where more gets lost: "write", "retrieval", or "mixed" where the gaps are within the margin of one another."""
    if write > retrieval + MARGIN:
        return Gap.WRITE.value
    return Gap.RETRIEVAL.value if retrieval > write + MARGIN else "mixed"


def as_json(found: GapEstimate) -> Json | None:
    """The estimate as JSON; None: there were no probes."""
    if not found.probes:
        return None
    return {
        "probes": found.probes,
        "since": found.since,
        "until": found.until,
        "write_gap": round(found.write, 4),
        "write_error": round(found.error(found.write), 4),
        "retrieval_gap": round(found.retrieval, 4),
        "retrieval_error": round(found.error(found.retrieval), 4),
        "verdict": found.verdict,
        "stages": {stage.value: count for stage, count in found.stages.items()},
    }
