"""
Benchmark: whether the gaps that memory's probes tell are those of real questions, and move with damage as they should.

The protocol is WhenLoss 6.4: entries dropped when memory is written must move the write gap, ranks swapped when it is
read the retrieval gap, and neither the other. Beside the probes stand the questions of the data, asked as an ordinary
turn would: of each it is told whether the block holds a message of its evidence, else whether one is indexed.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Any

from palimpsest.core.block.packing import pack
from palimpsest.core.block.pressure import recall_budget
from palimpsest.core.recall.diagnosis import answering
from palimpsest.core.recall.gaps import ProbeStage, estimate
from palimpsest.core.recall.generosity import DEMANDS
from palimpsest.domain import BlockKind, Generosity, Query, Recalled, Tier
from palimpsest.domain.ports import Embedder, Retriever
from palimpsest.evaluation import palimpsest, vectors
from palimpsest.evaluation.bench_diagnose import Damage
from palimpsest.evaluation.datasets import Conversation, read
from palimpsest.evaluation.palimpsest import DAY_SECONDS, Store
from palimpsest.evaluation.report import Report, Table, bars, progress
from palimpsest.features.gaps.probing import NoCounts, Prober
from palimpsest.memory.index.passage_tables import PassageTables
from palimpsest.memory.recall.recall import Recall
from palimpsest.memory.request.decider import RECALL_LIMIT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PROBES = 100  # of each conversation
DAMAGES = (Damage("", 0.0), *(Damage(stage, share) for stage in ("write", "retrieval") for share in (0.25, 0.5)))
DEMAND = DEMANDS[Generosity.BALANCED][BlockKind.RECALL]


@dataclass(slots=True)
class Stages:
    """At which stage probes, and the answers to questions, got lost."""

    probed: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)


class Swapped:
    """A retriever that returns a sample of the last ones of what it found, as if they were the best."""

    def __init__(self, inner: Retriever, share: float) -> None:
        self._inner = inner
        self._share = share

    async def recall(self, query: Query, limit: int) -> Recalled:
        found = await self._inner.recall(query, limit)
        last = round(len(found.candidates) * self._share)
        return replace(found, candidates=found.candidates[len(found.candidates) - last :])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this benchmark."""
    parser.add_argument("--probes", type=int, default=PROBES, metavar="N", help=f"of each conversation ({PROBES})")


async def run(given: argparse.Namespace) -> Report:
    """Run the benchmark on the data that the arguments name, and report it."""
    conversations = [conversation for path in given.data for conversation in read(path, given.limit)]
    found = {damage: Stages() for damage in DAMAGES}
    async with vectors.opened() as embedder:
        with progress() as bar:
            for conversation in bar.track(conversations, description="probing"):
                for damage, stages in found.items():
                    await measure(embedder, conversation, damage, given.probes, given.seed, stages)
    return report([str(path) for path in given.data], found)


async def measure(
    embedder: Embedder, conversation: Conversation, damage: Damage, probes: int, seed: int, stages: Stages
) -> None:
    """Probe one conversation, and ask its questions."""
    dropped = damage.share if damage.stage == "write" else 0.0
    async with palimpsest.opened(embedder, dropped=dropped) as store:
        await store.write([conversation])

        def recall(tables: PassageTables) -> Retriever:
            asked_at = conversation.messages[-1].at + DAY_SECONDS
            retriever = Recall(store.database, tables, embedder, NoCounts(), lambda: asked_at)
            return Swapped(retriever, damage.share) if damage.stage == "retrieval" else retriever

        chance = Random(f"{seed} {conversation.id}")
        prober = Prober(store.database, store.tables, recall, lambda: store.policy, lambda: 1.0, chance)
        for stage, count in (await prober.probe_now(probes)).stages.items():
            stages.probed += [stage] * count
        stages.asked += await _asked(store, conversation, recall(store.tables))


async def _asked(store: Store, conversation: Conversation, retriever: Retriever) -> list[str]:
    """The stage of each question whose evidence is known: it is found where any message of that is."""
    budget = recall_budget(Tier.CALM)
    assert budget is not None
    occurrences, found = store.occurrences(conversation), []
    for question in conversation.questions:
        query = Query(palimpsest.TENANT, conversation.id, question.text)
        recalled = await retriever.recall(query, RECALL_LIMIT)
        block, _ = pack(recalled.candidates, answering(budget, DEMAND), BlockKind.RECALL, question.text)
        held = set(block.occurrences) if block and recalled.helps >= DEMAND.least_help else set()
        if gold := {occurrences[at] for at in conversation.gold(question)}:
            lost = ProbeStage.INDEXED if gold <= store.unindexed else ProbeStage.PACKED
            found.append(ProbeStage.FOUND if held & gold else lost)
    return [*map(str, found)]


def report(data: Sequence[str], found: dict[Damage, Stages]) -> Report:
    """Make the report: tables, JSON and notes of what was found."""
    told = [_told(damage, stages) for damage, stages in found.items()]
    columns = (
        "damage",
        *(f"{what}: {name}" for what in ("probes", "questions") for name in ("write", "retrieval", "n")),
    )
    names = [f"{what}_{name}" for what in ("probed", "asked") for name in ("write", "retrieval", "n")]
    return Report(
        title="gaps: what memory's probes say is lost, and what questions say",
        data={"data": list(data), "damages": told},
        tables=[Table("gaps", columns, [(one["damage"], *(one[name] for name in names)) for one in told])],
        notes=[
            "Both go through the gate and the block of an ordinary turn. Probes are of rare words of one message, "
            "questions as people ask them, found where any message of their evidence is.",
        ],
        draw=lambda figure: _draw(figure, told),
    )


def _told(damage: Damage, stages: Stages) -> dict[str, Any]:
    """The figures of these results as JSON."""
    probed, asked = estimate(stages.probed), estimate(stages.asked)
    return {
        "damage": f"{damage.stage} {damage.share:.0%}" if damage.stage else "none",
        **{"probed_write": round(probed.write, 4), "probed_retrieval": round(probed.retrieval, 4)},
        **{"probed_n": probed.probes, "verdict": probed.verdict},
        **{"asked_write": round(asked.write, 4), "asked_retrieval": round(asked.retrieval, 4), "asked_n": asked.probes},
        "stages": {stage.value: count for stage, count in probed.stages.items()},
    }


def _draw(figure: Figure, told: Sequence[dict[str, Any]]) -> None:
    """Draw the picture of the report."""
    names = ("probed_write", "probed_retrieval", "asked_write", "asked_retrieval")
    heights = {name.replace("_", ", "): [one[name] for one in told] for name in names}
    bars(figure, "What is lost, by damage", [one["damage"] for one in told], heights)
