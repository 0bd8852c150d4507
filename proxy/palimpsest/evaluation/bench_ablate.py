"""
Benchmark: ablation of recall. One part is left out or changed at a time, everything else stays as it is.

Every variant answers the same questions of the same stores; its difference to the policy as it stands is paired by
question. Vectors are looked at apart: what is nearest to a question when they are kept in fewer bits.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from palimpsest.core.archive.chunking import WINDOW_CHARS
from palimpsest.core.recall.ranking import REACH_PASSAGES, RECIPE, RRF_DAMPING_RANKS, WEIGHTS, Recipe
from palimpsest.domain.errors import MemoryFault
from palimpsest.domain.ports import Embedder, Vectors
from palimpsest.evaluation import compression, palimpsest, vectors
from palimpsest.evaluation.baselines.dense import chunks_of
from palimpsest.evaluation.datasets import Conversation, Question, read
from palimpsest.evaluation.nearest import Nearest
from palimpsest.evaluation.palimpsest import Store
from palimpsest.evaluation.report import Report, Table, lines, progress
from palimpsest.evaluation.score import BlockText, Evidence
from palimpsest.evaluation.statistics import compare
from palimpsest.evaluation.vectors import CachedEmbedder
from palimpsest.settings.embedding_models import DEFAULT

BUDGET_CHARS = 6000  # what a restore may say: `core/block/pressure.RESTORE_CHARS`
BUDGETS_CHARS = (2000, 3000, 4000, 5000, 6000, 7000, 8000)  # LANTERN sweeps 2 to 8 thousand
DEPTHS = (10, 200)  # passages: the first few lines of a block, and the pool of `core/recall/ranking.Recipe`
EVIDENCE_DEPTH = 30  # passages among which evidence is looked for


class NoModel:
    """An embedder whose model is missing: recall goes by words alone."""

    name = "none"
    dimensions = DEFAULT.dimensions
    ready = False

    async def embed_queries(self, texts: Sequence[str]) -> Vectors:
        raise MemoryFault("embedding a question: this variant has no model")

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        raise MemoryFault("embedding passages: this variant has no model")


@dataclass(frozen=True, slots=True, eq=False)
class Variant:
    """One thing that is other than it is. Two are never equal."""

    group: str
    name: str
    recipe: Recipe = RECIPE
    embedder: Embedder | None = None
    window_chars: int = WINDOW_CHARS


AS_IT_IS = Variant("policy", "as it is")


def variants() -> tuple[Variant, ...]:
    """All variants that are measured, those of one store beside each other."""
    return (
        AS_IT_IS,
        *(Variant("signal left out", name, Recipe(weights={**WEIGHTS, name: 0.0})) for name in WEIGHTS),
        Variant("signal left out", "meaning, no model at all", embedder=NoModel()),
        Variant("signal left out", "surroundings", Recipe(reach_passages=0)),
        *(
            Variant("surroundings, passages", f"{reach} for {REACH_PASSAGES}", Recipe(reach_passages=reach))
            for reach in (1, 2, 3, 8)
        ),
        *(
            Variant("reciprocal ranks, damping", f"{ranks}", Recipe(fusion="rrf", damping_ranks=ranks))
            for ranks in (10, 30, RRF_DAMPING_RANKS, 120)
        ),
        *(Variant("MMR lambda", f"{balance}", Recipe(mmr_lambda=balance)) for balance in (0.3, 0.5, 0.7, 0.9, 1.0)),
        *(Variant("candidates", f"{count}", Recipe(candidates=count)) for count in (50, 100, 400)),
        *(Variant("passage, characters", f"{chars}", window_chars=chars) for chars in (300, 500, 2000)),
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Nothing beyond what all share."""


async def run(given: argparse.Namespace) -> Report:
    """Run the benchmark on the data that the arguments name, and report it."""
    conversations = [conversation for path in given.data for conversation in read(path, given.limit)]
    every = variants()
    keys: tuple[Variant | int, ...] = (*every, *BUDGETS_CHARS)
    found: dict[Variant | int, list[Evidence]] = {key: [] for key in keys}
    kept: dict[str, list[Sequence[float]]] = {}
    async with vectors.opened() as embedder:
        with progress() as bar:
            task = bar.add_task("asking", total=sum(len(_known(c)) for c in conversations) * len(every))
            for conversation in conversations:
                for chars, together in groupby(every, key=lambda variant: variant.window_chars):
                    async with palimpsest.opened(embedder, window_chars=chars) as store:
                        await store.write([conversation])
                        for variant in together:
                            for key, evidence in (await ask(store, conversation, variant)).items():
                                found[key] += evidence
                            bar.advance(task, len(_known(conversation)))
                for name, rows in (await compressed(embedder, conversation)).items():
                    kept.setdefault(name, []).extend(rows)
    return report([str(path) for path in given.data], found, kept, given.seed)


async def ask(store: Store, conversation: Conversation, variant: Variant) -> dict[Variant | int, list[Evidence]]:
    """Every question whose evidence is known; of the policy as it is, within all budgets."""
    reader = store.reader(conversation, recipe=variant.recipe, embedder=variant.embedder)
    budgets: dict[Variant | int, int] = {variant: BUDGET_CHARS}
    if variant is AS_IT_IS:
        budgets |= {chars: chars for chars in BUDGETS_CHARS}
    found: dict[Variant | int, list[Evidence]] = {key: [] for key in budgets}
    for question in _known(conversation):
        gold = [conversation.messages[at].content for at in conversation.gold(question)]
        recalled = await reader.recall(question.text)
        for key, chars in budgets.items():
            block = reader.block(recalled, question.text, chars)
            found[key].append(BlockText(block.text if block else "").evidence(gold))
    return found


async def compressed(embedder: CachedEmbedder, conversation: Conversation) -> dict[str, list[Sequence[float]]]:
    """By way to keep vectors, for each question: shares of the nearest passages and of evidence that it finds."""
    chunks = chunks_of(conversation)
    held, of = (await Nearest.of(chunks, embedder)).vectors, np.array([chunk.messages[0] for chunk in chunks])
    asked = _known(conversation)
    exact_questions = await embedder.embed_passages([question.text for question in asked])
    shares: dict[str, list[Sequence[float]]] = {}
    depths = (*DEPTHS, EVIDENCE_DEPTH)
    for question, exactly in zip(asked, exact_questions, strict=True):
        gold = set(conversation.gold(question))
        (hurried,) = await embedder.embed_queries([question.text])
        scores = {name: way(held, exactly) for name, way in compression.WAYS.items()}
        scores["fp16, question by the 8-bit model"] = compression.halves(held, hurried)
        found = {name: [compression.nearest(one, depth) for depth in depths] for name, one in scores.items()}
        found["1 bit, rescored"] = [compression.rescored(held, exactly, depth) for depth in depths]
        for name, rows in found.items():
            alike = [len(np.intersect1d(a, b)) / len(b) for a, b in zip(rows, found["fp32"], strict=True)]
            evidence = len(gold.intersection(of[rows[-1]].tolist())) / len(gold)
            shares.setdefault(name, []).append((*alike[:-1], evidence))
    return shares


def report(
    data: Sequence[str],
    found: Mapping[Variant | int, Sequence[Evidence]],
    kept: Mapping[str, Sequence[Sequence[float]]],
    seed: int,
) -> Report:
    """
    Make the report: tables, JSON and notes of what was found.

    Args:
        found: by variant, and of the policy as it is by budget; the questions in the same order everywhere.
        kept: by way to keep vectors, for each question what `compressed` returns.
    """
    usual = found[AS_IT_IS]
    changed: list[dict[str, Any]] = []
    for variant, evidence in found.items():
        if isinstance(variant, Variant):
            told = {"group": variant.group, "variant": variant.name, **_means(evidence)}
            against = compare([e.fraction for e in evidence], [e.fraction for e in usual], seed)
            changed.append({**told, "difference": against.to_json()})
    budgets = [{"chars": chars, **_means(found[chars])} for chars in BUDGETS_CHARS]
    names = (*(f"same_at_{depth}" for depth in DEPTHS), f"evidence_at_{EVIDENCE_DEPTH}")
    ways = [
        {"way": name, **dict(zip(names, np.mean(rows, axis=0).tolist(), strict=True))} for name, rows in kept.items()
    ]
    return Report(
        title="ablate: what each part of recall is worth",
        data={"data": list(data), "n": len(usual), "variants": changed, "budgets": budgets, "vectors": ways},
        tables=[
            Table(
                f"One change at a time, {BUDGET_CHARS:,} characters",
                ("changed", "to", "any", "all", "fraction", "points of fraction", "95 %", "p (Wilcoxon)"),
                [
                    (
                        *(held["group"], held["variant"], held["any"], held["all"], held["fraction"]),
                        f"{100 * held['difference']['difference']:+.1f}",
                        f"{100 * held['difference']['low']:+.1f} .. {100 * held['difference']['high']:+.1f}",
                        f"{held['difference']['p']:.2g}",
                    )
                    for held in changed
                ],
            ),
            Table(
                "The policy as it is, by budget",
                ("characters", "any", "all", "fraction"),
                [(held["chars"], held["any"], held["all"], held["fraction"]) for held in budgets],
            ),
            Table(
                "Vectors in fewer bits: what is nearest to a question",
                ("kept as", *(f"same of {depth}" for depth in DEPTHS), f"evidence in {EVIDENCE_DEPTH}"),
                [(held["way"], *(held[name] for name in names)) for held in ways],
            ),
        ],
        notes=[
            f"{len(usual)} questions whose evidence is known. Points, their 95 % interval and p are paired by question,"
            " against the policy as it is.",
            f"Rescored: the nearest of {compression.RESCORED} times as many that the signs chose.",
        ],
        draw=lambda figure: lines(
            figure, ("chars", "characters of the block"), "evidence in the block", budgets, "any", "all", "fraction"
        ),
    )


def _known(conversation: Conversation) -> list[Question]:
    """The questions whose evidence is known."""
    return [question for question in conversation.questions if question.evidence]


def _means(found: Sequence[Evidence]) -> dict[str, float]:
    return {
        "any": float(np.mean([evidence.any for evidence in found])),
        "all": float(np.mean([evidence.all for evidence in found])),
        "fraction": float(np.mean([evidence.fraction for evidence in found])),
    }
