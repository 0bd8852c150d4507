"""
Benchmark: how often memory stays silent where nothing is known, and what that costs.

Each conversation is asked the questions of all others: a block is noise then. Its own questions say what is lost when
the gate is shut more firmly. One curve over the gate's threshold shows both.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from palimpsest.core.block.packing import pack
from palimpsest.core.recall.generosity import DEMANDS
from palimpsest.domain import BlockKind, Budget, Generosity
from palimpsest.evaluation import palimpsest, vectors
from palimpsest.evaluation.datasets import Conversation, DatasetError, read
from palimpsest.evaluation.palimpsest import Store
from palimpsest.evaluation.report import Report, Table, progress
from palimpsest.evaluation.score import BlockText, Evidence

if TYPE_CHECKING:
    from matplotlib.figure import Figure

THRESHOLDS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)  # probabilities that memory helps
BUDGET_CHARS = 6000  # of a restore: `core/block/pressure.RESTORE_CHARS`
RECALL_BUDGET = Budget(3000, 600)  # what `core/block/pressure` gives a recall in a calm window
DEMAND = DEMANDS[Generosity.BALANCED][BlockKind.RECALL]
NOTHING = Evidence(False, False, 0.0)


@dataclass(frozen=True, slots=True)
class QuestionOutcome:
    """The outcome of a question: the probability that memory helps, the length of the block, and its evidence."""

    is_own: bool
    helps: float
    chars: int  # of an ordinary block; 0 where nothing is said
    evidence: Evidence | None = None  # of own questions, behind an open gate; None: it is not known


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Nothing beyond what all share."""


async def run(given: argparse.Namespace) -> Report:
    """Run the benchmark on the data that the arguments name, and report it."""
    conversations = [conversation for path in given.data for conversation in read(path, given.limit)]
    if len(conversations) < 2:
        raise DatasetError("measuring restraint: needs at least two conversations, to ask one what the other knows")
    rows: list[QuestionOutcome] = []
    async with vectors.opened() as embedder:
        with progress() as bar:
            task = bar.add_task("asking", total=sum(len(c.questions) for c in conversations) * len(conversations))
            for conversation in conversations:
                async with palimpsest.opened(embedder) as store:
                    await store.write([conversation])
                    for asker in conversations:
                        rows += await ask(store, conversation, asker)
                        bar.advance(task, len(asker.questions))
    return report([str(path) for path in given.data], rows, DEMAND.least_help)


async def ask(store: Store, conversation: Conversation, asker: Conversation) -> list[QuestionOutcome]:
    """The questions of `asker`, to a conversation that may be the same."""
    reader = store.reader(conversation)
    budget = replace(RECALL_BUDGET, least_worth=DEMAND.least_worth)
    is_own = asker is conversation
    rows = []
    for question in asker.questions:
        recalled = await reader.recall(question.text)
        gold = [conversation.messages[at].content for at in conversation.gold(question)] if is_own else []
        whole = reader.block(recalled, question.text, BUDGET_CHARS)
        evidence = BlockText(whole.text if whole else "").evidence(gold) if gold else None
        said = pack(recalled.candidates, budget, BlockKind.RECALL, question.text)[0]
        chars = len(said.text) if said and recalled.helps >= DEMAND.least_help else 0
        rows.append(QuestionOutcome(is_own, recalled.helps, chars, evidence))
    return rows


def report(data: Sequence[str], rows: Sequence[QuestionOutcome], policy: float) -> Report:
    """
    Make the report: tables, JSON and notes of what was found.

    Args:
        policy: the threshold in use.
    """
    curve = [_point(rows, threshold) for threshold in _thresholds(policy)]
    usual = next(point for point in curve if point["least_help"] == policy)
    foreign = [row for row in rows if not row.is_own]
    chars = {
        "chars_on_others": round(sum(row.chars for row in foreign) / max(len(foreign), 1), 1),
        "chars_on_own": round(sum(row.chars for row in rows if row.is_own) / max(len(rows) - len(foreign), 1), 1),
    }
    columns = ("least_help", "silent on others'", "speaks on own", "any", "all")
    return Report(
        title="restraint: questions that a conversation cannot answer, and those that it can",
        data={
            "data": list(data),
            "n": len(foreign),
            "n_own": len(rows) - len(foreign),
            **usual,
            **chars,
            "curve": curve,
        },
        tables=[Table("by the probability that is asked for", columns, [tuple(point.values()) for point in curve])],
        notes=[
            f"{len(foreign)} questions of other conversations, {len(rows) - len(foreign)} own ones; the default policy "
            f"asks for {policy} and adds {chars['chars_on_others']:.0f} characters to others' questions, "
            f"{chars['chars_on_own']:.0f} to own ones; any and all are of a block of {BUDGET_CHARS} characters, over "
            "own questions whose evidence is known."
        ],
        draw=lambda figure: _draw(figure, curve, usual),
    )


def _thresholds(policy: float) -> list[float]:
    return sorted({*THRESHOLDS, policy})


def _point(rows: Sequence[QuestionOutcome], threshold: float) -> dict[str, float]:
    """Shares at one threshold: strangers who get nothing, own questions with an answer, and evidence in it."""
    own = [row for row in rows if row.is_own]
    foreign = [row for row in rows if not row.is_own]
    held = [row.evidence if row.helps >= threshold else NOTHING for row in own if row.evidence is not None]
    return {
        "least_help": threshold,
        "silent": _share([row.helps < threshold for row in foreign]),
        "admitted": _share([row.helps >= threshold for row in own]),
        "any": _share([evidence.any for evidence in held]),
        "all": _share([evidence.all for evidence in held]),
    }


def _share(held: Sequence[bool]) -> float:
    return round(sum(held) / max(len(held), 1), 4)


def _draw(figure: Figure, curve: Sequence[dict[str, Any]], usual: dict[str, Any]) -> None:
    """Draw the picture of the report."""
    axes = figure.subplots()
    silent, found = [point["silent"] for point in curve], [point["all"] for point in curve]
    axes.plot(silent, found, marker="o")
    for point in curve:
        axes.annotate(f"{point['least_help']:.2f}", (point["silent"], point["all"]), (0, 6), textcoords="offset points")
    axes.plot([usual["silent"]], [usual["all"]], marker="o", markersize=12, fillstyle="none", label="policy")
    axes.set_xlabel("questions of other conversations that get no block")
    axes.set_ylabel("own questions with all evidence in the block")
    axes.set_title("What restraint costs, by the probability asked for")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
