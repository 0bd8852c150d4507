"""
Benchmark: the rank of what a question asks for by its exact name.

Paths, hashes, ticket ids, error codes, names in code: what the index takes for an identifier and what few messages
hold, asked bare and in a question. CALMem names this as its gap: 5 % found (section 8).
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from palimpsest.core.archive.chunking import identifiers
from palimpsest.core.redaction.redaction import redact
from palimpsest.evaluation import vectors
from palimpsest.evaluation.command import systems, systems_flag
from palimpsest.evaluation.datasets import Conversation, read
from palimpsest.evaluation.report import Report, Table, bars, progress
from palimpsest.evaluation.statistics import compare
from palimpsest.evaluation.systems import System
from palimpsest.wire.message import readable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HOLDERS = 3  # messages that may hold it: what stands in more names nothing exactly
MIN_CHARS = 4  # "v1" and the like stand in every other word
EACH = 5  # of every kind in every conversation, unless --limit says otherwise
FORMS = {"bare": "{}", "asked": "What was {} about?"}
KINDS = {  # the first that fits a name whole, in lower case
    "url": r"https?://.+|(?:www\.)?(?:[\w-]+\.)+(?:com|dev|io|net|org)(?:/.*)?",
    "path": r".*[/\\].*|[\w.-]+\.[a-z]{1,5}",
    "ticket": r"[a-z]{2,10}-\d+",
    "hash": r"(?=.*\d)[\da-f]{7,40}|[\da-f]{4,}(?:-[\da-f]{4,})+",
    "number": r"v?[\d.:_-]+",
    "code": r"[a-z]{1,5}\d+|err_\w+",
    "name": r".+",
}
BUDGET_CHARS = 6000  # of the block that nobody reads here; ranking does not know it


@dataclass(frozen=True, slots=True)
class Named:
    """An identifier, as it was written, and the messages that hold it, by index."""

    text: str
    kind: str
    holders: frozenset[int]


@dataclass(frozen=True, slots=True)
class Row:
    kind: str
    form: str
    rank: int  # of the first message that holds it; 0: not among the candidates


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this benchmark."""
    systems_flag(parser)


async def run(given: argparse.Namespace) -> Report:
    """Run the benchmark on the data that the arguments name, and report it."""
    conversations = [conversation for path in given.data for conversation in read(path)]
    chosen = [(c, found) for c in conversations if (found := choose(c, given.limit or EACH, Random(given.seed)))]
    async with vectors.opened() as embedder:
        rows = {system.name: await ask(system, chosen) for system in systems(given, embedder)}
    return report([str(path) for path in given.data], rows, given.seed)


def choose(conversation: Conversation, each: int, random: Random) -> list[Named]:
    """So many identifiers of every kind, where there are as many. What redaction takes out cannot be found again."""
    texts = [
        "" if said.role in ("system", "developer") else redact(readable(said.text, said.calls))
        for said in conversation.messages
    ]
    lowered = [text.lower() for text in texts]
    by_kind: dict[str, list[Named]] = defaultdict(list)
    for name in sorted({name for text in texts for name in identifiers(text) if len(name) >= MIN_CHARS}):
        holders = [at for at, text in enumerate(lowered) if name in text]
        if 0 < len(holders) <= HOLDERS:
            start = lowered[holders[0]].find(name)
            written = texts[holders[0]][start : start + len(name)]
            by_kind[kind_of(name)].append(Named(written, kind_of(name), frozenset(holders)))
    return [named for held in by_kind.values() for named in random.sample(held, min(each, len(held)))]


def kind_of(name: str) -> str:
    return next(kind for kind, pattern in KINDS.items() if re.fullmatch(pattern, name))


async def ask(system: System, chosen: Sequence[tuple[Conversation, Sequence[Named]]]) -> list[Row]:
    """Every identifier, in both forms, of the conversation that holds it."""
    rows = []
    with progress() as bar:
        task = bar.add_task(system.name, total=sum(len(named) for _, named in chosen))
        for conversation, every in chosen:
            async with system.opened(conversation) as reader:
                for named in every:
                    for form, question in FORMS.items():
                        pack = await reader.pack(question.format(named.text), BUDGET_CHARS)
                        ranks = (rank for rank, at in enumerate(pack.ranked, start=1) if at in named.holders)
                        rows.append(Row(named.kind, form, next(ranks, 0)))
                    bar.advance(task)
    return rows


def report(data: Sequence[str], rows: Mapping[str, Sequence[Row]], seed: int) -> Report:
    """
    Make the report: tables, JSON and notes of what was found.

    Args:
        rows: of each system, ours first.
    """
    told = {name: _told(some) for name, some in rows.items()}
    ours, *others = rows
    first = [row.rank == 1 for row in rows[ours]]
    comparisons = {
        name: {"rank_1": compare(first, [row.rank == 1 for row in rows[name]], seed).to_json()} for name in others
    }
    parts = [*told[ours]["by_kind"].items(), *told[ours]["by_form"].items()]
    return Report(
        title="identifiers: asked for by their exact names",
        data={
            "data": list(data),
            **told[ours],
            "systems": {name: told[name] for name in others},
            "comparisons": comparisons,
        },
        tables=[
            Table("all", ("system", *SHARES), [(name, *(held[s] for s in SHARES)) for name, held in told.items()]),
            Table("palimpsest by kind and form", ("part", "n", *SHARES), [(n, *held.values()) for n, held in parts]),
        ],
        notes=[f"{len(first)} questions; each identifier stands in at most {HOLDERS} messages of its conversation."],
        draw=lambda figure: _draw(figure, told),
    )


SHARES = ("rank_1", "rank_5", "found")


def _told(rows: Sequence[Row]) -> dict[str, Any]:
    """The figures of these results as JSON."""
    return {
        **_shares(rows),
        "by_kind": {
            kind: _shares([row for row in rows if row.kind == kind])
            for kind in KINDS
            if any(r.kind == kind for r in rows)
        },
        "by_form": {form: _shares([row for row in rows if row.form == form]) for form in FORMS},
    }


def _shares(rows: Sequence[Row]) -> dict[str, float]:
    count = max(len(rows), 1)
    return {
        "n": len(rows),
        "rank_1": round(sum(row.rank == 1 for row in rows) / count, 4),
        "rank_5": round(sum(0 < row.rank <= 5 for row in rows) / count, 4),
        "found": round(sum(row.rank > 0 for row in rows) / count, 4),
    }


def _draw(figure: Figure, told: Mapping[str, Any]) -> None:
    """Draw the picture of the report."""
    bars(
        figure,
        "Messages that hold an identifier, asked for by its name",
        ("first", "among the first five", "found at all"),
        {name: [held[share] for share in SHARES] for name, held in told.items()},
    )
