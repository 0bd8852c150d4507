"""
Benchmark: whether a block holds the newest of several statements, and shows that it is the newest.

Asked are BEAM's questions of updated knowledge and LoCoMo's of time. A statement is a message of evidence; it is told
when most of its words stand in the block, under the heading of its day. The newer of two is seen by its date where the
days differ, and by its place behind the other where they do not.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from palimpsest.evaluation import vectors
from palimpsest.evaluation.datasets import Conversation, DatasetError, Question, read
from palimpsest.evaluation.palimpsest import Palimpsest
from palimpsest.evaluation.report import Report, Table, bars, progress
from palimpsest.evaluation.score import BlockText

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CATEGORIES = ("knowledge_update", "temporal")  # BEAM; LoCoMo
BUDGET_CHARS = 6000  # of a restore: `core/block/pressure.RESTORE_CHARS`
COLUMNS = (
    *("category", "n", "newest told", "... dated", "several statements", "older alone", "both told", "days differ"),
    "newest last",
)
_DAY = re.compile(r"^\[(\d{4}-\d\d-\d\d)\]$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class UpdateOutcome:
    """The outcome of a question: which of its statements a block holds. None: not several, or not both in it."""

    newest: bool  # stands in the block
    dated: bool  # ... under its own day
    older_alone: bool | None  # an older one stands there without it
    both: bool | None
    by_date: bool | None  # of both: their days differ
    in_order: bool | None  # of both: the newest stands behind the oldest


MEASURES = tuple(field.name for field in fields(UpdateOutcome))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Nothing beyond what all share."""


async def run(given: argparse.Namespace) -> Report:
    """Run the benchmark on the data that the arguments name, and report it."""
    rows: list[tuple[str, UpdateOutcome]] = []
    async with vectors.opened() as embedder:
        system = Palimpsest(embedder)
        for path in given.data:
            with progress() as bar:
                for conversation in bar.track(read(path, given.limit), description=f"asking {path.name}"):
                    asked = [q for q in conversation.questions if q.category in CATEGORIES and q.evidence]
                    async with system.opened(conversation) as reader:
                        for question in asked:
                            pack = await reader.pack(question.text, BUDGET_CHARS)
                            rows.append((question.category, told(pack.text, conversation, question)))
    if not rows:
        raise DatasetError(f"looking for updates: no question is of the category {' or '.join(CATEGORIES)}")
    return report([str(path) for path in given.data], rows)


def told(block: str, conversation: Conversation, question: Question) -> UpdateOutcome:
    """Places of the statements of one question in a block of ours."""
    parts = days(block)
    said = [conversation.messages[at] for at in conversation.gold(question)]
    places = [_place(parts, message.content) for message in said]
    newest, its_day = places[-1], datetime.fromtimestamp(said[-1].at, UTC).date().isoformat()
    is_there = newest is not None
    both = is_there and places[0] is not None
    changes = len(said) > 1
    return UpdateOutcome(
        newest=is_there,
        dated=newest is not None and parts[newest][0] == its_day,
        older_alone=not is_there and any(place is not None for place in places) if changes else None,
        both=both if changes else None,
        by_date=said[0].at // 86_400 != said[-1].at // 86_400 if changes and both else None,
        in_order=_is_behind(block, said[0].content, said[-1].content) if changes and both else None,
    )


def days(block: str) -> list[tuple[str, str]]:
    """A block by its headings: each day with what stands under it, in order."""
    pieces = _DAY.split(block)
    return list(zip(pieces[1::2], pieces[2::2], strict=True))


def _place(parts: Sequence[tuple[str, str]], message: str) -> int | None:
    """Under which heading a message stands; None where it does not."""
    return next((at for at, (_, text) in enumerate(parts) if BlockText(text).holds(message)), None)


def _is_behind(block: str, older: str, newer: str) -> bool:
    """Whether the newer of two messages ends behind the older one: the block up to the older one's end lacks it."""
    lines = block.splitlines()
    ends = [
        next((at for at in range(1, len(lines) + 1) if BlockText("\n".join(lines[:at])).holds(message)), 0)
        for message in (older, newer)
    ]
    return ends[0] < ends[1]


def report(data: Sequence[str], rows: Sequence[tuple[str, UpdateOutcome]]) -> Report:
    """Make the report: tables, JSON and notes of what was found."""
    by_category = {
        name: summary([held for category, held in rows if category == name])
        for name in CATEGORIES
        if any(category == name for category, _ in rows)
    }
    return Report(
        title="updates: the newest statement, its date, and what it replaces",
        data={"data": list(data), "n": len(rows), "categories": by_category},
        tables=[
            Table(
                f"blocks of {BUDGET_CHARS:,} characters",
                COLUMNS,
                [
                    (
                        name,
                        held["n"],
                        *(held[m] for m in ("newest", "dated")),
                        held["n_several"],
                        *(held[m] for m in ("older_alone", "both", "by_date", "in_order")),
                    )
                    for name, held in by_category.items()
                ],
            )
        ],
        notes=[
            "Older alone and both told are shares of the questions with several statements; days differ and newest last"
            " of those whose oldest and newest are both told. Nothing is marked as replaced.",
        ],
        draw=lambda figure: _draw(figure, by_category),
    )


def summary(rows: Sequence[UpdateOutcome]) -> dict[str, Any]:
    """The share of each measure, over the questions that it says something of."""
    values = [asdict(row) for row in rows]
    shares = {name: [held[name] for held in values if held[name] is not None] for name in MEASURES}
    means = {name: float(np.mean(held)) if held else None for name, held in shares.items()}
    return {"n": len(rows), "n_several": len(shares["both"]), **means}


def _draw(figure: Figure, by_category: Mapping[str, Mapping[str, Any]]) -> None:
    """Draw the picture of the report."""
    bars(
        figure,
        f"The newest statement in a block of {BUDGET_CHARS:,} characters",
        MEASURES,
        {name: [held[measure] or 0.0 for measure in MEASURES] for name, held in by_category.items()},
    )
