"""
Benchmark: recall, time and memory while a tenant's store grows from a hundred to a hundred thousand memories.

The questions of some conversations are asked of ever larger stores: first of a part of these conversations, then of
them all, then among what many others said. Each size is measured in a process of its own, bound to one core.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from palimpsest.core.recall.diagnosis import QUERY_CHARS
from palimpsest.core.recall.generosity import DEMANDS
from palimpsest.domain import BlockKind, Generosity, Reach
from palimpsest.evaluation import growth, palimpsest, vectors
from palimpsest.evaluation.datasets import Conversation, read
from palimpsest.evaluation.report import Report, Table
from palimpsest.evaluation.score import BlockText, Evidence
from palimpsest.settings.policy import LogPolicy
from palimpsest.telemetry import logs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = "100,1000,3000,10000,30000,100000"
BUDGET_CHARS = 6000  # of a restore: `core/block/pressure.RESTORE_CHARS`
LOGS = 100  # long texts that are asked, as when somebody pastes a log
MEGABYTE = 1_000_000
LEAST_HELP = DEMANDS[Generosity.BALANCED][BlockKind.RECALL].least_help
MAXRSS_BYTES = 1 if sys.platform == "darwin" else 1024  # unit of ru_maxrss


@dataclass(frozen=True, slots=True)
class Grown:
    """One size. `found` by conversation and question, `helps` of those questions; times in milliseconds."""

    memories: int
    found: Mapping[tuple[str, str], Evidence]
    question_ms: Sequence[float]
    log_ms: Sequence[float]
    first_ms: float
    peak_bytes: int
    helps: Sequence[float] = ()  # how probable the judge finds it that memory helps


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this benchmark."""
    parser.add_argument("--noise", nargs="+", default=[], type=Path, metavar="DATA", help="what others said")
    parser.add_argument("--sizes", default=SIZES, metavar="N[,N]", help=f"memories ({SIZES})")
    parser.add_argument(
        "--speed-sizes", default="", metavar="N[,N]", help="of which only time and memory are measured: noise repeats"
    )


async def run(given: argparse.Namespace) -> Report:
    """Run the benchmark on the data that the arguments name, and report it."""
    own = [conversation for path in given.data for conversation in read(path, given.limit)]
    noise = [conversation for path in given.noise for conversation in read(path)]
    folder = growth.stores_folder()
    pasted = long_texts(noise or own)
    whole = sum(len(conversation.messages) for conversation in own)
    grown = []
    for size, seed in [(size, None) for size in numbers(given.sizes)] + [
        (size, given.seed) for size in numbers(given.speed_sizes)
    ]:
        asked = [growth.part_of(conversation, min(1.0, size / whole)) for conversation in own]
        async with vectors.opened() as embedder:
            made = await growth.prepare(folder, size, asked, noise if size > whole else (), embedder, seed)
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
            ask = asyncio.get_running_loop().run_in_executor
            grown.append(await ask(alone, measure, made, asked, pasted, seed is None))
    return report(given, own, grown)


def measure(folder: Path, conversations: Sequence[Conversation], pasted: Sequence[str], scored: bool) -> Grown:
    """Ask one store everything; to be run in a process of its own, for the sake of its peak of memory."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    logs.configure(LogPolicy(level="error"))
    return asyncio.run(_measure(folder, conversations, pasted, scored))


async def _measure(folder: Path, conversations: Sequence[Conversation], pasted: Sequence[str], scored: bool) -> Grown:
    """Ask one store everything; see `measure`."""
    found: dict[tuple[str, str], Evidence] = {}
    question_ms, log_ms, helps = [], [], []
    async with vectors.opened() as embedder, palimpsest.opened(embedder, folder=folder) as store:
        await store.know(conversations)
        readers = [store.reader(conversation, reach=Reach.TENANT) for conversation in conversations]
        started = perf_counter()
        await readers[0].recall("What is the first thing that anybody asks of this store?")
        first_ms = (perf_counter() - started) * 1000
        for conversation, reader in zip(conversations, readers, strict=True):
            for question in conversation.questions:
                recalled = await reader.recall(question.text)
                question_ms.append(recalled.elapsed_ms)
                if scored and (gold := [conversation.messages[at].content for at in conversation.gold(question)]):
                    block = reader.block(recalled, question.text, BUDGET_CHARS)
                    found[conversation.id, question.id] = BlockText(block.text if block else "").evidence(gold)
                    helps.append(recalled.helps)
        for text in pasted:
            log_ms.append((await readers[0].recall(text)).elapsed_ms)
        memories = await growth.count_of(store)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * MAXRSS_BYTES
    return Grown(memories, found, question_ms, log_ms, first_ms, peak, helps)


def long_texts(conversations: Sequence[Conversation]) -> list[str]:
    """The ends of long messages, as the proxy asks them, evenly from all of these conversations."""
    every = [
        said.text for said in chain.from_iterable(c.messages for c in conversations) if len(said.text) > QUERY_CHARS
    ]
    return [text[-QUERY_CHARS:] for text in every[:: max(1, len(every) // LOGS)][:LOGS]]


def numbers(text: str) -> list[int]:
    """`100,1000` as numbers, rising."""
    return sorted(int(part) for part in text.split(",") if part)


def report(given: argparse.Namespace, own: Sequence[Conversation], grown: Sequence[Grown]) -> Report:
    """The smallest store that was asked everything is what the others are compared with, question by question."""
    most = max(len(each.found) for each in grown)
    small = next(each for each in grown if len(each.found) == most)
    told = [_told(each, small) for each in grown]
    columns = ("memories", "n", "any", "all", "all: points lost", "speaks", "ms p50", "ms p95", "log ms p50",
               "log ms p95", "first ms", "peak MB")  # fmt: skip
    rows = [
        (
            *(held["memories"], held["n"], held["any"], held["all"]),
            None if held["lost"] is None else f"{100 * held['lost']['all']:+.1f}",
            held["speaks"],
            *(f"{held[name][key]:.1f}" for name in ("latency_ms", "log_latency_ms") for key in ("p50", "p95")),
            *(f"{held['first_ms']:,.0f}", f"{held['peak_mb']:,.0f}"),
        )
        for held in told
    ]
    return Report(
        title="growth: recall, time and memory of one tenant's store as it grows",
        data={
            "data": [str(path) for path in given.data],
            "noise": [str(path) for path in given.noise],
            "n": most,
            "conversations": len(own),
            "compared_with": small.memories,
            "sizes": told,
        },
        tables=[Table(f"{BUDGET_CHARS:,} characters, the whole tenant in reach", columns, rows)],
        notes=[
            "Speaks: share of these questions that the default of memory.generosity answers in an ordinary turn.",
            "Points lost: against the smallest store that was asked every question, over the questions asked of both.",
            "Times are of one recall on one core, embedding included; first: passages are still to be read. Logs"
            f" are the last {QUERY_CHARS:,} characters of long messages. Peak is that of the whole process.",
            "Noise has the vectors of its passages' beginnings and ends. Where no recall is told, texts repeat, and the"
            " vectors of what repeats are random.",
        ],
        draw=lambda figure: _draw(figure, told),
    )


def _told(grown: Grown, small: Grown) -> dict[str, Any]:
    """The figures of these results as JSON."""
    both = grown.found.keys() & small.found.keys()
    found = list(grown.found.values())
    return {
        "memories": grown.memories,
        "n": len(found),
        "any": float(np.mean([evidence.any for evidence in found])) if found else None,
        "all": float(np.mean([evidence.all for evidence in found])) if found else None,
        "lost": {
            "any": float(np.mean([small.found[key].any - grown.found[key].any for key in both])),
            "all": float(np.mean([small.found[key].all - grown.found[key].all for key in both])),
        }
        if both
        else None,
        "speaks": float(np.mean(np.array(grown.helps) >= LEAST_HELP)) if grown.helps else None,
        "latency_ms": _percentiles(grown.question_ms),
        "log_latency_ms": _percentiles(grown.log_ms),
        "first_ms": grown.first_ms,
        "peak_mb": grown.peak_bytes / MEGABYTE,
    }


def _percentiles(times_ms: Sequence[float]) -> dict[str, float]:
    p50, p95 = np.percentile(times_ms, [50, 95]) if len(times_ms) else (np.nan, np.nan)
    return {"p50": round(float(p50), 2), "p95": round(float(p95), 2)}


def _draw(figure: Figure, told: Sequence[Mapping[str, Any]]) -> None:
    """Draw the picture of the report."""
    left, right = figure.subplots(1, 2)
    scored = [held for held in told if held["n"]]
    for name in ("any", "all"):
        left.plot([held["memories"] for held in scored], [held[name] for held in scored], marker="o", label=name)
    left.set_ylim(0, 1)
    left.set_ylabel("evidence in the block")
    for name, label in (("latency_ms", "questions"), ("log_latency_ms", "long logs")):
        for key in ("p50", "p95"):
            times = [held[name][key] for held in told]
            right.plot([held["memories"] for held in told], times, marker="o", label=f"{label} {key}")
    right.set_yscale("log")
    right.set_ylabel("milliseconds")
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_xlabel("memories of the tenant")
        axes.grid(alpha=0.3)
        axes.legend(frameon=False)
