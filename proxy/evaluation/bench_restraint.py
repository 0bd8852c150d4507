"""
How often is nothing said where nothing is known, and what does that cost?

Each conversation is asked the questions of all others: a block is noise then. Its own questions say what is lost when
the gate is shut more firmly. One curve over the gate's threshold shows both.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from proxy.evaluation import palimpsest, vectors
from proxy.evaluation.datasets import Conversation, DatasetError, read
from proxy.evaluation.palimpsest import Store, StoreReader, with_gate
from proxy.evaluation.report import Report, Table, progress
from proxy.evaluation.score import Evidence, Given

if TYPE_CHECKING:
    from matplotlib.figure import Figure

THRESHOLDS = (0.30, 0.35, 0.40, 0.45, 0.50, 0.55, 0.60)  # best cosines that admit; LoCoMo turns over in between
BUDGET_CHARS = 6000  # policy: restore.chars
NOTHING = Evidence(False, False, 0.0)
_NUMBER_OR_NAME = re.compile(r"(?<=names ).+|[\d.]+%?")


@dataclass(frozen=True, slots=True)
class Asked:
    """One question: at how many thresholds it gets a block, counted from the lowest, and what the block holds."""

    is_own: bool
    admitting: int
    reason: str  # at the policy's threshold, without numbers and names
    evidence: Evidence | None = None  # of own questions, behind an open gate; None: it is not known


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Nothing beyond what all share."""


async def run(given: argparse.Namespace) -> Report:
    conversations = [conversation for path in given.data for conversation in read(path, given.limit)]
    if len(conversations) < 2:
        raise DatasetError("measuring restraint: needs at least two conversations, to ask one what the other knows")
    rows: list[Asked] = []
    async with vectors.opened() as embedder:
        with progress() as bar:
            task = bar.add_task("asking", total=sum(len(c.questions) for c in conversations) * len(conversations))
            for conversation in conversations:
                async with palimpsest.opened(embedder) as store:
                    await store.write([conversation])
                    for asker in conversations:
                        rows += await ask(store, conversation, asker)
                        bar.advance(task, len(asker.questions))
            policy = store.policy.recall.gate_cosine
    return report([str(path) for path in given.data], rows, policy)


async def ask(store: Store, conversation: Conversation, asker: Conversation) -> list[Asked]:
    """The questions of `asker`, to a conversation that may be the same."""
    policy = store.policy
    thresholds = _thresholds(policy.recall.gate_cosine)
    readers = [store.reader(conversation, with_gate(policy, threshold)) for threshold in thresholds]
    usual = thresholds.index(policy.recall.gate_cosine)
    is_own = asker is conversation
    rows = []
    for question in asker.questions:
        gold = [conversation.messages[at].content for at in conversation.gold(question)] if is_own else []
        evidence = Given((await readers[0].pack(question.text, BUDGET_CHARS)).text).evidence(gold) if gold else None
        recalled = await readers[usual].recall(question.text)
        bounds = (usual + 1, len(readers)) if recalled.admitted else (0, usual)
        reason = _NUMBER_OR_NAME.sub("..", recalled.reason)
        rows.append(Asked(is_own, await _admitting(readers, question.text, *bounds), reason, evidence))
    return rows


async def _admitting(readers: Sequence[StoreReader], question: str, low: int, high: int) -> int:
    """How many readers answer, by bisection: a firmer gate admits nothing that a looser one does not."""
    while low < high:
        middle = (low + high) // 2
        if (await readers[middle].recall(question)).admitted:
            low = middle + 1
        else:
            high = middle
    return low


def report(data: Sequence[str], rows: Sequence[Asked], policy: float) -> Report:
    """
    Args:
        policy: the threshold in use.
    """
    curve = [_point(rows, at, threshold) for at, threshold in enumerate(_thresholds(policy))]
    usual = next(point for point in curve if point["gate_cosine"] == policy)
    foreign = [row for row in rows if not row.is_own]
    at_policy = _thresholds(policy).index(policy)
    reasons = Counter(row.reason for row in foreign if row.admitting > at_policy)
    columns = ("gate_cosine", "silent on others'", "speaks on own", "any", "all")
    return Report(
        title="restraint: questions that a conversation cannot answer, and those that it can",
        data={
            "data": list(data),
            "n": len(foreign),
            "n_own": len(rows) - len(foreign),
            **usual,
            "curve": curve,
            "let_through": {reason: round(count / len(foreign), 4) for reason, count in reasons.most_common()},
        },
        tables=[
            Table("by the gate's threshold", columns, [tuple(point.values()) for point in curve]),
            Table(
                f"why others' questions get a block at {policy}",
                ("reason", "share"),
                [(reason, count / len(foreign)) for reason, count in reasons.most_common()],
            ),
        ],
        notes=[
            f"{len(foreign)} questions of other conversations, {len(rows) - len(foreign)} own ones; the policy is "
            f"gate_cosine {policy}; any and all are over own questions whose evidence is known."
        ],
        draw=lambda figure: _draw(figure, curve, usual),
    )


def _thresholds(policy: float) -> list[float]:
    return sorted({*THRESHOLDS, policy})


def _point(rows: Sequence[Asked], at: int, threshold: float) -> dict[str, float]:
    own = [row for row in rows if row.is_own]
    foreign = [row for row in rows if not row.is_own]
    held = [row.evidence if row.admitting > at else NOTHING for row in own if row.evidence is not None]
    return {
        "gate_cosine": threshold,
        "silent": _share([row.admitting <= at for row in foreign]),
        "admitted": _share([row.admitting > at for row in own]),
        "any": _share([evidence.any for evidence in held]),
        "all": _share([evidence.all for evidence in held]),
    }


def _share(held: Sequence[bool]) -> float:
    return round(sum(held) / max(len(held), 1), 4)


def _draw(figure: Figure, curve: Sequence[dict[str, Any]], usual: dict[str, Any]) -> None:
    axes = figure.subplots()
    silent, found = [point["silent"] for point in curve], [point["all"] for point in curve]
    axes.plot(silent, found, marker="o")
    for point in curve:
        axes.annotate(
            f"{point['gate_cosine']:.2f}", (point["silent"], point["all"]), (0, 6), textcoords="offset points"
        )
    axes.plot([usual["silent"]], [usual["all"]], marker="o", markersize=12, fillstyle="none", label="policy")
    axes.set_xlabel("questions of other conversations that get no block")
    axes.set_ylabel("own questions with all evidence in the block")
    axes.set_title("What restraint costs, by the gate's threshold")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
