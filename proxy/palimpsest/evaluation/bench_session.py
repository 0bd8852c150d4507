"""
Benchmark: the rank of the session that holds the answer.

A session is as good as its best message: on LoCoMo sums of several, by score or by rank, all measure worse. The gate is
open, as what is compared is the order. Published for LoCoMo, Hit@1: BM25 .640, fusion with e5-large .752.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import astuple, dataclass, fields
from math import log2
from typing import TYPE_CHECKING, Any

from palimpsest.evaluation import vectors
from palimpsest.evaluation.command import systems, systems_flag
from palimpsest.evaluation.datasets import Conversation, read
from palimpsest.evaluation.report import Report, Table, bars, progress
from palimpsest.evaluation.statistics import compare
from palimpsest.evaluation.systems import System
from palimpsest.settings.policy import Policy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DEPTH = 5  # sessions that R@5 and NDCG@5 look at
BUDGET_CHARS = 6000  # of the block that nobody reads here; ranking does not know it


@dataclass(frozen=True, slots=True)
class Placed:
    """How well one question's sessions were ranked, each 0..1."""

    hit_at_1: float
    recall_at_5: float
    ndcg_at_5: float  # a session that holds evidence gains 1
    mrr: float


SCORES = tuple(field.name for field in fields(Placed))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this benchmark."""
    systems_flag(parser)


async def run(given: argparse.Namespace) -> Report:
    """Run the benchmark on the data that the arguments name, and report it."""
    conversations = [conversation for path in given.data for conversation in read(path, given.limit)]
    async with vectors.opened() as embedder:
        chosen = systems(given, embedder, Policy())
        rows = {system.name: await ask(system, conversations) for system in chosen}
    return report([str(path) for path in given.data], rows, given.seed)


async def ask(system: System, conversations: Sequence[Conversation]) -> list[tuple[str, Placed]]:
    """Category and score of every question whose evidence is known."""
    rows = []
    with progress() as bar:
        task = bar.add_task(system.name, total=sum(len(conversation.questions) for conversation in conversations))
        for conversation in conversations:
            asked = [question for question in conversation.questions if question.evidence]
            if not asked:
                continue
            async with system.opened(conversation) as reader:
                for question in asked:
                    pack = await reader.pack(question.text, BUDGET_CHARS)
                    ranked = dict.fromkeys(conversation.messages[at].session for at in pack.ranked)
                    gold = {conversation.messages[at].session for at in conversation.gold(question)}
                    rows.append((question.category, placed(tuple(ranked), gold)))
                    bar.advance(task)
    return rows


def placed(ranked: Sequence[int], gold: AbstractSet[int]) -> Placed:
    """
    Score a ranking of sessions.

    Args:
        ranked: sessions, best first, each once.
        gold: those that hold evidence, at least one.

    Source: Järvelin and Kekäläinen, TOIS 2002, for NDCG.
    """
    ranks = [rank for rank, session in enumerate(ranked, start=1) if session in gold]
    near = [rank for rank in ranks if rank <= DEPTH]
    ideal = range(1, min(len(gold), DEPTH) + 1)
    return Placed(
        hit_at_1=float(ranks[:1] == [1]),
        recall_at_5=len(near) / len(gold),
        ndcg_at_5=sum(1 / log2(rank + 1) for rank in near) / sum(1 / log2(rank + 1) for rank in ideal),
        mrr=1 / ranks[0] if ranks else 0.0,
    )


def report(data: Sequence[str], rows: Mapping[str, Sequence[tuple[str, Placed]]], seed: int) -> Report:
    """
    Make the report: tables, JSON and notes of what was found.

    Args:
        rows: of each system, ours first.
    """
    told = {name: _told(some) for name, some in rows.items()}
    ours, *others = rows
    comparisons = {
        name: {
            score: compare(_column(rows[ours], score), _column(rows[name], score), seed).to_json() for score in SCORES
        }
        for name in others
    }
    categories = told[ours]["by_category"].items()
    return Report(
        title="session: the session that holds the answer, among all of its conversation",
        data={
            "data": list(data),
            **told[ours],
            "systems": {name: told[name] for name in others},
            "comparisons": comparisons,
        },
        tables=[
            Table("all questions", ("system", *SCORES), [(n, *(t[s] for s in SCORES)) for n, t in told.items()]),
            Table("palimpsest by category", ("category", "n", *SCORES), [(n, *t.values()) for n, t in categories]),
        ],
        notes=[f"{len(rows[ours])} questions whose evidence is known; the gate is open."],
        draw=lambda figure: _draw(figure, told),
    )


def _told(rows: Sequence[tuple[str, Placed]]) -> dict[str, Any]:
    """The figures of these results as JSON."""
    categories = sorted({category for category, _ in rows})
    by_category = {name: _means(held for category, held in rows if category == name) for name in categories}
    return {**_means(held for _, held in rows), "by_category": by_category}


def _means(placed: Iterable[Placed]) -> dict[str, Any]:
    """The means of each measure."""
    columns = list(zip(*map(astuple, placed), strict=True))
    count = len(columns[0]) if columns else 0
    return {
        "n": count,
        **{name: round(sum(c) / count, 4) for name, c in zip(SCORES, columns, strict=bool(count))},
    }


def _column(rows: Sequence[tuple[str, Placed]], score: str) -> list[float]:
    return [getattr(held, score) for _, held in rows]


def _draw(figure: Figure, told: Mapping[str, Any]) -> None:
    """Draw the picture of the report."""
    heights = {name: [held[score] for score in SCORES] for name, held in told.items()}
    bars(figure, "Sessions that hold the answer", ("Hit@1", "R@5", "NDCG@5", "MRR"), heights)
