"""
Benchmark: CALMem's own experiments. Relevance of the first five, the floor, kinds of memory, time (section 9).

Its five chunks are the unit: a chunk is relevant when its message is evidence. Where a question has one message of
evidence, as most here have, one relevant chunk of five is all that there is; the bound is told beside the measure.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from palimpsest.core.archive.chunking import kind
from palimpsest.domain.errors import MemoryFault
from palimpsest.evaluation import growth, palimpsest, vectors
from palimpsest.evaluation.baselines.dense import chunks_of
from palimpsest.evaluation.bench_growth import numbers
from palimpsest.evaluation.command import systems, systems_flag
from palimpsest.evaluation.costs import Indexing, Search, indexing, search
from palimpsest.evaluation.datasets import Conversation, Question, read
from palimpsest.evaluation.nearest import Nearest
from palimpsest.evaluation.report import Report, Table, lines, progress
from palimpsest.memory.embedding.embedder import LocalEmbedder
from palimpsest.settings.policy import ModelPolicy, Policy
from palimpsest.telemetry.metrics import Metrics

TOP = 5  # CALMem's k
FLOORS = (0.25, 0.30, 0.35, 0.40, 0.45, 0.50)  # CALMem 9.6
FLOOR = 0.40  # CALMem 4.3
KINDS = {"episodic": ("episodic",), "semantic": ("semantic",), "both": ("episodic", "semantic", "procedural")}
SIZES = "5000,22000,60000"  # CALMem 9.2
BUDGET_CHARS = 6000  # of the block that nobody reads here


@dataclass(frozen=True, slots=True)
class Five:
    """What the first five are worth. `precision` is None where none was returned: there is nothing to be precise."""

    precision: float | None
    recall: float
    reciprocal_rank: float
    returned: int
    bound: float  # of precision, were everything relevant among the five


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this benchmark."""
    systems_flag(parser)
    parser.add_argument("--sizes", default=SIZES, metavar="N[,N]", help=f"passages, for time ({SIZES})")


async def run(given: argparse.Namespace) -> Report:
    """Run the benchmark on the data that the arguments name, and report it."""
    conversations = [conversation for path in given.data for conversation in read(path, given.limit)]
    compared: dict[str, list[Five]] = {}
    floors: dict[float, list[Five]] = {floor: [] for floor in FLOORS}
    kinds: dict[str, list[Five]] = {name: [] for name in KINDS}
    async with vectors.opened() as embedder:
        with progress() as bar:
            chosen = systems(given, embedder, Policy())
            task = bar.add_task("asking", total=len(conversations) * (len(chosen) + 1))
            for conversation in conversations:
                asked = [question for question in conversation.questions if question.evidence]
                for system in chosen:
                    async with system.opened(conversation) as reader:
                        for question in asked:
                            pack = await reader.pack(question.text, BUDGET_CHARS)
                            five = first_five(list(pack.ranked[:TOP]), set(conversation.gold(question)))
                            compared.setdefault(system.name, []).append(five)
                    bar.advance(task)
                nearest = await Nearest.of(chunks_of(conversation), embedder)
                for question in asked:
                    by_floor, by_kind = await dense(nearest, conversation, question)
                    for floor, five in by_floor.items():
                        floors[floor].append(five)
                    for name, five in by_kind.items():
                        kinds[name].append(five)
                bar.advance(task)
        question = (await embedder.embed_passages(["What does a search cost?"]))[0]
        searches = []
        for size in numbers(given.sizes):
            made = await growth.prepare(growth.stores_folder(), size, conversations, (), embedder, given.seed)
            async with palimpsest.opened(embedder, folder=made) as store:
                searches.append(await search(store, question))
    return report(given, compared, floors, kinds, searches, await _indexing(conversations))


async def dense(
    nearest: Nearest, conversation: Conversation, question: Question
) -> tuple[dict[float, Five], dict[str, Five]]:
    """The first five by cosine alone, behind every floor, and of every kind of passage."""
    gold, cosines = set(conversation.gold(question)), await nearest.cosines(question.text)
    order = np.argsort(-cosines, kind="stable")
    roles = [conversation.messages[piece.messages[0]].role for piece in nearest.pieces]
    of = [kind(piece.text, role) for piece, role in zip(nearest.pieces, roles, strict=True)]

    def messages(floor: float, chosen: Sequence[str] = KINDS["both"]) -> list[int]:
        rows = (row for row in order if cosines[row] >= floor and of[row] in chosen)
        return [nearest.pieces[row].messages[0] for row, _ in zip(rows, range(TOP), strict=False)]

    by_floor = {floor: first_five(messages(floor), gold) for floor in FLOORS}
    return by_floor, {name: first_five(messages(FLOOR, chosen), gold) for name, chosen in KINDS.items()}


def first_five(messages: Sequence[int], gold: set[int]) -> Five:
    """
    Score the first five passages of a ranking.

    Args:
        messages: of the passages that came, best first, at most five; a message may come twice.
    """
    relevant = [message in gold for message in messages]
    return Five(
        precision=sum(relevant) / len(relevant) if relevant else None,
        recall=len(gold.intersection(messages)) / len(gold),
        reciprocal_rank=1 / (1 + relevant.index(True)) if any(relevant) else 0.0,
        returned=len(messages),
        bound=min(TOP, len(gold)) / TOP,
    )


def means(rows: Sequence[Five]) -> dict[str, float | None]:
    """CALMem's measures. Noise is the share of what came that is not relevant; `silent` where nothing came."""
    precise = [row.precision for row in rows if row.precision is not None]
    precision = float(np.mean(precise)) if precise else None
    return {
        "p_at_5": precision,
        "noise": None if precision is None else 1 - precision,
        "r_at_5": float(np.mean([row.recall for row in rows])),
        "mrr": float(np.mean([row.reciprocal_rank for row in rows])),
        "chunks": float(np.mean([row.returned for row in rows])),
        "silent": float(np.mean([row.returned == 0 for row in rows])),
        "p_at_5_bound": float(np.mean([row.bound for row in rows])),
    }


def report(
    given: argparse.Namespace,
    compared: Mapping[str, Sequence[Five]],
    floors: Mapping[float, Sequence[Five]],
    kinds: Mapping[str, Sequence[Five]],
    searches: Sequence[Search],
    messages: Sequence[Indexing],
) -> Report:
    """Make the report: tables, JSON and notes of what was found."""
    told = {name: means(rows) for name, rows in compared.items()}
    by_floor = [{"floor": floor, **means(rows)} for floor, rows in floors.items()]
    by_kind = {name: means(rows) for name, rows in kinds.items()}
    n = len(next(iter(compared.values())))
    measures = ("p_at_5", "r_at_5", "mrr", "noise", "chunks", "silent")
    columns = ("P@5", "R@5", "MRR", "noise", "chunks", "none came")
    return Report(
        title="calmem: the experiments of CALMem's section 9",
        data={
            "data": [str(path) for path in given.data],
            "n": n,
            "systems": told,
            "floors": by_floor,
            "kinds": by_kind,
            "search": [asdict(one) for one in searches],
            "indexing": [asdict(one) for one in messages],
        },
        tables=[
            Table(
                f"The first {TOP}",
                ("system", *columns),
                [(name, *(held[key] for key in measures)) for name, held in told.items()],
            ),
            Table(
                "Cosine alone, by floor",
                ("floor", *columns),
                [(f"{held['floor']:.2f}", *(held[key] for key in measures)) for held in by_floor],
            ),
            Table(
                f"Cosine alone, floor {FLOOR:.2f}, by kind of passage",
                ("kind", *columns),
                [(name, *(held[key] for key in measures)) for name, held in by_kind.items()],
            ),
            Table(
                "One search, milliseconds (median)",
                ("passages", "database scan", "cache", "ratio"),
                [
                    (one.passages, f"{one.scan_ms:.1f}", f"{one.cache_ms:.1f}", f"{one.scan_ms / one.cache_ms:.1f}")
                    for one in searches
                ],
            ),
            Table(
                "One message that is indexed, milliseconds (median)",
                ("characters", "passages", "cut", "embedded", "written"),
                [
                    (
                        one.chars,
                        round(one.passages),
                        *(f"{ms:.1f}" for ms in (one.digest_ms, one.embed_ms, one.write_ms)),
                    )
                    for one in messages
                ],
            ),
        ],
        notes=[
            f"{n} questions whose evidence is known. P@5 could be {told[next(iter(told))]['p_at_5_bound']:.3f} at most:"
            " few questions have five messages of evidence.",
            "Kinds are those of the archive, by rule. Facts that an agent writes: bench dual.",
            "Vectors of the stores that searches are timed in are random but for the conversations' own.",
        ],
        draw=lambda figure: lines(
            figure, ("floor", "floor, cosine"), "", by_floor, "p_at_5", "r_at_5", "mrr", "silent"
        ),
    )


async def _indexing(conversations: Sequence[Conversation]) -> list[Indexing]:
    """Measure indexing with a fresh embedding model, which has no cache."""
    model = LocalEmbedder(ModelPolicy(), Metrics())  # not the one with a cache
    try:
        if not await model.warm():
            raise MemoryFault(f"loading the embedding model: {model.status}; run palimpsest model install")
        return await indexing(conversations, model)
    finally:
        await model.close()
