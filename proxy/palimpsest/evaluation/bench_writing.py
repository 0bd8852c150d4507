"""
Benchmark: the papers' experiments around writers of memory, on the proxy's own writers and without a model.

WhenLoss 6.6 (components and weights of EPC, number of probe questions), LightMem-3 5.4 and 5.5 (accuracy of topic
boundaries; share of words kept by size of the short-term buffer), and what each writer would ask of a model.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from palimpsest.core.recall.ranking import Floats
from palimpsest.core.writing import epc
from palimpsest.core.writing.entries import PAPER, Weights
from palimpsest.core.writing.lightmem3 import Buffers, batches, turns, write
from palimpsest.core.writing.writers import WRITERS
from palimpsest.domain import Item, SourceMessage
from palimpsest.evaluation import segmentation, vectors
from palimpsest.evaluation.assistant import SilentAssistant, Spent
from palimpsest.evaluation.bench_diagnose import ScorableQuestion, answerable
from palimpsest.evaluation.datasets import Conversation, read
from palimpsest.evaluation.diagnosis import Segments
from palimpsest.evaluation.report import Report, Table, progress
from palimpsest.evaluation.segmentation import Found
from palimpsest.evaluation.writing import SEGMENTS, TENANT, at_once, by_session, shown, token_count, turn_vectors
from palimpsest.features.items.model_writers import ModelWriters

WRITE_TOKENS = 5_000  # WhenLoss 5.3
VARIANTS: Mapping[str, Weights] = {
    "as in the paper": PAPER,
    "coverage alone": replace(PAPER, specificity=0.0, redundancy=0.0),
    "without coverage": replace(PAPER, coverage=0.0),
    "without specificity": replace(PAPER, specificity=0.0),
    "without redundancy": replace(PAPER, redundancy=0.0),
    "twice the redundancy": replace(PAPER, redundancy=0.6),
    "1 question at once": replace(PAPER, probes=1),
    "3 questions at once": replace(PAPER, probes=3),
    "10 questions at once": replace(PAPER, probes=10),
    "all questions at once": replace(PAPER, probes=1_000_000),
}
KEPT = (0.4, 0.6, 0.8)  # LightMem-3, tables 8 and 9
BUFFERS = (256, 512, 768, 1024)

Asked = Sequence[tuple[Conversation, Sequence[ScorableQuestion]]]
Vectors = Mapping[str, Floats]
"""Of the turns of each conversation, by its id: LightMem-3 tells topics apart by them."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the flags of this benchmark."""
    help = f"budget of what is kept ({WRITE_TOKENS})"
    parser.add_argument("--write-tokens", type=int, default=WRITE_TOKENS, metavar="N", help=help)


async def run(given: Namespace) -> Report:
    """Run the benchmark on the data that the arguments name, and report it."""
    conversations = [conversation for path in given.data for conversation in read(path, given.limit)]
    asked = [(conversation, answerable(conversation)) for conversation in conversations]
    with progress() as bar:
        task = bar.add_task("writing", total=len(VARIANTS) + len(KEPT) * len(BUFFERS) + len(WRITERS) + 1)
        async with vectors.opened() as embedder:
            found = await segmentation.measured(conversations, embedder)
            near = {one.id: await turn_vectors(messages_of(one), embedder) for one in conversations}
        bar.advance(task)
        ablation = {}
        for name, weights in VARIANTS.items():
            ablation[name] = by_epc(asked, given.write_tokens, weights)
            bar.advance(task)
        sweep = {}
        for keep in KEPT:
            for size in BUFFERS:
                buffers = Buffers(short_term_tokens=size, keep=keep)
                sweep[keep, size] = by_buffers(asked, given.write_tokens, buffers, near)
                bar.advance(task)
        spent = {}
        for name in WRITERS:
            spent[name] = await cost_of(conversations, name, near)
            bar.advance(task)
    return report(given, sum(len(turns_of(one)) for one in conversations), ablation, sweep, spent, found)


def by_epc(asked: Asked, tokens: int, weights: Weights) -> float | None:
    """Span recall in what EPC without a model keeps."""
    return _span_recall(
        asked,
        lambda conversation: [
            item
            for segment, share, statistics in by_session(conversation, tokens)
            for item in epc.write(segment, share, token_count, statistics, weights)
        ],
    )


def by_buffers(asked: Asked, tokens: int, buffers: Buffers, near: Vectors) -> tuple[int, float | None]:
    """Calls that LightMem-3 would make, and span recall in what it keeps without a model."""
    calls = 0

    def written(conversation: Conversation) -> Sequence[Item]:
        """The items that are written of a conversation."""
        nonlocal calls
        ((segment, share, statistics),) = at_once(conversation, tokens)
        apart = near[conversation.id]
        calls += sum(1 for _ in batches(segment, token_count, statistics, buffers, vectors=apart))
        return write(segment, share, token_count, statistics, buffers, vectors=apart)

    recall = _span_recall(asked, written)
    return calls, recall


async def cost_of(conversations: Sequence[Conversation], name: str, near: Vectors) -> Spent:
    """What a writer asks of a model that keeps nothing; the tokens of answers are not counted."""
    assistant = SilentAssistant()
    writers = ModelWriters(assistant, token_count)
    for conversation in conversations:
        for segment, share, statistics in SEGMENTS[name](conversation, WRITE_TOKENS):
            apart = near[conversation.id] if SEGMENTS[name] is at_once else None  # only of a whole conversation
            await writers.write(name, segment, share, statistics, TENANT, apart)
    return assistant.spent


def messages_of(conversation: Conversation) -> Sequence[SourceMessage]:
    """A conversation, as writers read it."""
    ((segment, _, _),) = at_once(conversation, 0)
    return segment


def turns_of(conversation: Conversation) -> Sequence[tuple[int, ...]]:
    """The turns of a conversation, as writers count them."""
    return turns(messages_of(conversation))


def report(
    given: Namespace,
    turn_count: int,
    ablation: Mapping[str, float | None],
    sweep: Mapping[tuple[float, int], tuple[int, float | None]],
    spent: Mapping[str, Spent],
    found: Mapping[str, Found],
) -> Report:
    """One table an experiment."""
    per_1000 = 1000 / max(turn_count, 1)
    costs: list[list[str | float | int | None]] = [["any, by rule", 0, 0, None]]
    for name, one in spent.items():
        calls = round(one.calls * per_1000)
        costs.append([f"{name} by model", calls, round(one.prompt_tokens * per_1000), round(1000 / max(calls, 1), 1)])
    tables = [
        Table("what is asked of a model, per 1,000 turns", ("writer", "calls", "prompt tokens", "turns a call"), costs),
        Table(
            f"EPC by rule, span recall in {given.write_tokens:,} tokens",
            ("u(e)", "CSM"),
            [[name, value] for name, value in ablation.items()],
        ),
        Table(
            "LightMem-3: share of words kept, and short-term buffer",
            ("kept", "buffer", "calls per 1,000 turns", "CSM span recall"),
            [[f"{keep:.1f}", size, round(calls * per_1000), value] for (keep, size), (calls, value) in sweep.items()],
        ),
        Table(
            "topic boundaries, within one turn",
            ("by", "recall", "precision", "F1", "told", "known"),
            [[way, one.recall, one.precision, one.f1, one.told, one.known] for way, one in found.items()],
        ),
    ]
    data = {
        "data": [str(path) for path in given.data],
        "turns": turn_count,
        "costs": {name: {"calls": one.calls, "prompt_tokens": one.prompt_tokens} for name, one in spent.items()},
        "epc": ablation,
        "buffers": {f"{keep} {size}": {"calls": calls, "CSM": value} for (keep, size), (calls, value) in sweep.items()},
        "boundaries": {
            way: {"recall": one.recall, "precision": one.precision, "f1": one.f1} for way, one in found.items()
        },
    }
    notes = [f"{turn_count:,} turns: a user's messages and the answers to them"]
    return Report("writing: the experiments around writers", data, tables, notes)


def _span_recall(asked: Asked, written: Callable[[Conversation], Sequence[Item]]) -> float | None:
    """The share of spans of the answers that stand in what was written; None: there are none."""
    values = []
    for conversation, questions in asked:
        stored = Segments([shown(conversation, item).text for item in written(conversation)])
        values += [stored.span_recall(one.spans) for one in questions if one.spans]
    return float(np.mean(values)) if values else None
