"""
Benchmark: the evidence of a question in what comes back after everything was lost.

The setting is the restore after a compaction: all of a conversation was archived, the model sees none of it any more,
and the block may be as long as a restore. Every system answers the same questions within the same budget.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from palimpsest.domain.errors import PolicyError
from palimpsest.evaluation import model as models
from palimpsest.evaluation import vectors
from palimpsest.evaluation.command import budgets_flag, systems, systems_flag
from palimpsest.evaluation.datasets import Conversation, Question, read
from palimpsest.evaluation.report import Report, Table, bars, progress
from palimpsest.evaluation.score import BlockText, Evidence, literal
from palimpsest.evaluation.statistics import compare
from palimpsest.evaluation.systems import Pack, System
from palimpsest.settings.policy import Policy, UpstreamPolicy
from palimpsest.store.operation.assist_usage import AssistUsage

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCORES = ("any", "all", "fraction", "contains")
HELPERS = {"controller": ("off", "rules", "model"), "selector": ("score", "cross-encoder", "model")}
PATIENCE_SECONDS = 600.0  # a small model on a busy machine reads a long prompt in minutes


@dataclass(frozen=True, slots=True)
class Row:
    """One question to one system within one budget. None: it says nothing of this question."""

    category: str
    evidence: Evidence | None
    contains: bool | None
    admitted: bool
    chars: int
    elapsed_ms: float


Rows = Mapping[int, Sequence[Row]]
"""By budget; the questions in the same order everywhere."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this benchmark."""
    budgets_flag(parser)
    systems_flag(parser)
    models.add_arguments(parser)
    for role, kinds in HELPERS.items():
        help = f"who helps recall as {role} ({kinds[0]}); model: the one that --model names, as long as it takes"
        parser.add_argument(f"--{role}", choices=kinds, default=kinds[0], help=help)


async def run(given: argparse.Namespace) -> Report:
    """Run the benchmark on the data that the arguments name, and report it."""
    conversations = [conversation for path in given.data for conversation in read(path, given.limit)]
    policy = helped(given)
    async with vectors.opened() as embedder, models.opened(given) as model:
        ours, *others = systems(given, embedder, policy, model)
        rows = {system.name: await ask(system, conversations, given.budget_chars) for system in (ours, *others)}
    made = report([str(path) for path in given.data], conversations, rows, given.seed)
    return _with_use(made, ours.used, len(rows[ours.name][given.budget_chars[0]]) * len(given.budget_chars))


def helped(given: argparse.Namespace) -> Policy | None:
    """
    The policy in which recall is helped as the flags say; None: the default.

    Raises:
        PolicyError: a model helps, and none is named.
    """
    recall = {role: getattr(given, role) for role in HELPERS}
    roles = [role for role, kind in recall.items() if kind == "model"]
    if recall == {role: kinds[0] for role, kinds in HELPERS.items()}:
        return None
    if roles and not given.model:
        raise PolicyError(f"--{roles[0]} model: name the model with --model, and say where it is with --upstream")
    url = given.upstream or UpstreamPolicy().url
    key = {"key_env": models.KEY_ENV} if os.environ.get(models.KEY_ENV) else {}
    asked = {"model": given.model, "upstream": "helper", "tokens_a_day": None, "timeout_seconds": PATIENCE_SECONDS}
    return Policy.model_validate(
        {
            "upstreams": [{"name": "helper", "url": url, "auth": "held"} | key],
            "models": {role: asked for role in roles},
            "recall": recall,
            "memory": {"deadline_ms": PATIENCE_SECONDS * 1000},
        }
    )


async def ask(system: System, conversations: Sequence[Conversation], budgets: Sequence[int]) -> Rows:
    """Every question of every conversation to one system."""
    rows: dict[int, list[Row]] = {budget: [] for budget in budgets}
    with progress() as bar:
        task = bar.add_task(system.name, total=sum(len(conversation.questions) for conversation in conversations))
        for conversation in conversations:
            if not conversation.questions:
                continue
            said = BlockText("\n".join(message.content for message in conversation.messages))
            async with system.opened(conversation) as reader:
                for question in conversation.questions:
                    for budget in budgets:
                        pack = await reader.pack(question.text, budget)
                        rows[budget].append(score(pack, conversation, question, said))
                    bar.advance(task)
    return rows


def score(pack: Pack, conversation: Conversation, question: Question, said: BlockText) -> Row:
    """
    Score what a system returned for one question.

    Args:
        said: all of the conversation.
    """
    given = BlockText(pack.text)
    gold = [conversation.messages[at].content for at in conversation.gold(question)]
    answer = literal(question.answer, question.category, question.text, said)
    return Row(
        category=question.category,
        evidence=given.evidence(gold) if gold else None,
        contains=given.says(answer) if answer else None,
        admitted=pack.admitted,
        chars=len(pack.text),
        elapsed_ms=pack.elapsed_ms,
    )


def report(data: Sequence[str], conversations: Sequence[Conversation], rows: Mapping[str, Rows], seed: int) -> Report:
    """
    Make the report: tables, JSON and notes of what was found.

    Args:
        rows: of each system, ours first.
    """
    ours, *others = rows
    told = {name: _told(by_budget) for name, by_budget in rows.items()}
    first = next(iter(rows[ours].values()))
    without = sum(row.evidence is None for row in first)
    milliseconds = told[ours]["latency_ms"]
    comparisons = {
        name: {str(budget): _compared(rows[ours][budget], rows[name][budget], seed) for budget in rows[name]}
        for name in others
    }
    return Report(
        title="recall: evidence in the block after everything was lost",
        data={
            "data": list(data),
            "n": len(first) - without,
            "questions": len(first),
            "without_evidence": without,
            "conversations": len(conversations),
            "messages": sum(len(conversation.messages) for conversation in conversations),
            **told[ours],
            "systems": {name: told[name] for name in others},
            "comparisons": comparisons,
        },
        tables=[*_system_tables(told), *_category_tables(told[ours]), *_comparison_tables(comparisons)],
        notes=[
            f"{len(first)} questions; any, all and fraction are over the {len(first) - without} whose evidence is "
            "known, contains over those whose answer was said in these words.",
            f"From a question to its block: {milliseconds['p50']:.1f} ms (p50), {milliseconds['p95']:.1f} ms (p95), "
            "its embedding included. Baselines take theirs from the cache, and are not to be compared in this.",
        ],
        draw=lambda figure: _draw(figure, told),
    )


def _with_use(made: Report, used: AssistUsage, looked_up: int) -> Report:
    """The report with what language models used for a thousand look-ups, each of which is a turn's."""
    each = {name: round(1000 * value / looked_up) for name, value in asdict(used).items() if name != "dollars"}
    note = (
        f"Language models, for 1,000 turns that are looked up: {each['calls']:,} calls ({each['failures']:,} failed), "
        f"{each['prompt_tokens']:,} tokens of prompts, {each['completion_tokens']:,} of answers."
    )
    return replace(made, data={**made.data, "model_use_per_1000": each}, notes=[*made.notes, note])


def summary(rows: Iterable[Row]) -> dict[str, Any]:
    """Means over the questions that each score says something of; None where it says nothing of any."""
    rows = list(rows)
    found = [row.evidence for row in rows if row.evidence is not None]
    contains = [row.contains for row in rows if row.contains is not None]
    return {
        "n": len(found),
        "any": _mean(evidence.any for evidence in found),
        "all": _mean(evidence.all for evidence in found),
        "fraction": _mean(evidence.fraction for evidence in found),
        "contains": _mean(contains),
        "n_contains": len(contains),
        "admitted": _mean(row.admitted for row in rows),
        "chars": _mean(row.chars for row in rows),
    }


def latency(rows: Sequence[Row]) -> dict[str, float]:
    """Milliseconds from the question to the text."""
    p50, p95 = np.percentile([row.elapsed_ms for row in rows], [50, 95])
    return {"p50": round(float(p50), 2), "p95": round(float(p95), 2)}


def _told(rows: Rows) -> dict[str, Any]:
    """The figures of these results as JSON."""
    categories = sorted({row.category for some in rows.values() for row in some})
    return {
        "budgets": {
            str(budget): {
                **summary(some),
                "by_category": {name: summary(row for row in some if row.category == name) for name in categories},
            }
            for budget, some in rows.items()
        },
        # of the first budget: afterwards the embedding of the question is remembered
        "latency_ms": latency(next(iter(rows.values()))),
    }


def _compared(ours: Sequence[Row], theirs: Sequence[Row], seed: int) -> dict[str, Any]:
    """Compare two systems on questions that both were scored on."""
    pairs = [(a.evidence, b.evidence) for a, b in zip(ours, theirs, strict=True) if a.evidence and b.evidence]
    scores: Mapping[str, Callable[[Evidence], float]] = {"all": lambda e: e.all, "fraction": lambda e: e.fraction}
    return {
        name: compare([of(a) for a, _ in pairs], [of(b) for _, b in pairs], seed).to_json()
        for name, of in scores.items()
    }


def _system_tables(told: Mapping[str, Any]) -> Iterable[Table]:
    for budget in next(iter(told.values()))["budgets"]:
        columns = ("system", *SCORES, "admitted", "characters")
        rows = []
        for name, results in told.items():
            result = results["budgets"][budget]
            rows.append((name, *(result[score] for score in (*SCORES, "admitted")), round(result["chars"])))
        yield Table(f"{int(budget):,} characters", columns, rows)


def _category_tables(ours: Mapping[str, Any]) -> Iterable[Table]:
    for budget, result in ours["budgets"].items():
        rows = [(name, held["n"], *(held[score] for score in SCORES)) for name, held in result["by_category"].items()]
        yield Table(f"palimpsest by category, {int(budget):,} characters", ("category", "n", *SCORES), rows)


def _comparison_tables(comparisons: Mapping[str, Any]) -> Iterable[Table]:
    rows = [
        (name, int(budget), score, held["difference"], f"{held['low']:+.3f} .. {held['high']:+.3f}",
         f"{held['p']:.2g}", held["d"])
        for name, by_budget in comparisons.items()
        for budget, by_score in by_budget.items()
        for score, held in by_score.items()
    ]  # fmt: skip
    if rows:
        columns = ("against", "characters", "score", "difference", "95 %", "p (Wilcoxon)", "Cohen's d")
        yield Table("palimpsest minus each baseline, paired by question", columns, rows)


def _draw(figure: Figure, told: Mapping[str, Any]) -> None:
    """Draw the picture of the report."""
    budget = next(iter(next(iter(told.values()))["budgets"]))
    shown = ("any", "all", "fraction")
    heights = {name: [of["budgets"][budget][score] or 0.0 for score in shown] for name, of in told.items()}
    bars(figure, f"Evidence in a block of {int(budget):,} characters", shown, heights)


def _mean(values: Iterable[float]) -> float | None:
    held = [float(value) for value in values]
    return round(sum(held) / len(held), 4) if held else None
