"""
Benchmark: lost facts that come back after a compaction, before anyone has asked. LANTERN's experiment 7, without a
model.

LANTERN (arXiv 2606.05182, sections 4 and 5.7). A client compacts; memory sees what it sends then and nothing else, and
restores a block. Facts are found by rule (`facts.py`). Those count that the client no longer shows and that are
specific: said in at most 5 % of the conversations of the data set (its own included). A fact that is said again later
in the conversation was needed: the share of those stands in a column of its own. Systems are compared by conversation,
each the mean over its compactions, as facts of one conversation stand or fall together.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from palimpsest.evaluation import model as models
from palimpsest.evaluation import vectors
from palimpsest.evaluation.command import budgets_flag, systems, systems_flag
from palimpsest.evaluation.compaction import MIN_MESSAGES
from palimpsest.evaluation.datasets import read
from palimpsest.evaluation.facts import Rarity, facts_of, said_in
from palimpsest.evaluation.palimpsest import Palimpsest
from palimpsest.evaluation.report import Report, Table, bars, progress
from palimpsest.evaluation.restoring import REASONS, Outcome, Outcomes, measure
from palimpsest.evaluation.statistics import Comparison, compare

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RARE_SHARE = 0.05  # of a data set's conversations: what more of them say is common knowledge there
SPLITS = ("kind", "data", "strategy", "fraction")

Cell = str | float | int | None


def add_arguments(parser: ArgumentParser) -> None:
    """Add the flags of this benchmark."""
    budgets_flag(parser)
    systems_flag(parser)
    models.add_arguments(parser)


async def run(given: Namespace) -> Report:
    """Run the benchmark on the data that the arguments name, and report it."""
    outcomes: list[Outcome] = []
    notes = []
    async with vectors.opened() as embedder, models.opened(given) as model:
        measured = [Palimpsest(embedder, asked=False), *systems(given, embedder, model=model)[1:]]
        for path in given.data:
            every = read(path)
            long = [conversation for conversation in every if len(conversation.messages) >= MIN_MESSAGES]
            chosen = long[: given.limit or None]
            notes.append(
                f"{path}: {len(chosen)} of {len(every)} conversations; "
                f"{len(every) - len(long)} have fewer than {MIN_MESSAGES} messages"
            )
            rarity = Rarity([said_in(conversation.messages) for conversation in every])
            most = max(1, int(RARE_SHARE * len(every)))
            with progress() as bar:
                for conversation in bar.track(chosen, description=f"restoring {path.name}"):
                    every_fact = facts_of(said_in(conversation.messages))
                    facts = [fact for fact in every_fact if rarity.is_rare(fact, most)]
                    found = measure(str(path), conversation, facts, measured, given.budget_chars, model)
                    outcomes += [outcome async for outcome in found]
    if model is None:
        notes.append("no --model: without abstractive compaction, and without the baselines that need a model")
    return report(outcomes, [system.name for system in measured], given, notes)


def report(outcomes: Sequence[Outcome], names: Sequence[str], given: Namespace, notes: Sequence[str]) -> Report:
    """Tables for the first budget, by everything that may matter; one table for all budgets."""
    found = Outcomes(outcomes)
    budget = given.budget_chars[0]
    first = found.where(budget=budget)
    ours = names[0]
    against = {name: _comparison(first, ours, name, given.seed) for name in names[1:]}
    tables = [
        Table(
            f"facts that came back, of {len(first.where(system=ours).all):,} lost, in {budget:,} characters",
            ("system", "of a conversation", "of all facts", "needed later", *REASONS),
            [_row(name, first.where(system=name)) for name in names],
        ),
        *(_by(field, first, names) for field in SPLITS),
        Table(
            f"{ours} minus each, paired by conversation",
            ("against", "n", "difference", "95 %", "p (Wilcoxon)", "Cohen's d"),
            [
                [name, c.n, f"{c.difference:+.3f}", f"{c.low:+.3f} .. {c.high:+.3f}", f"{c.p:.2g}", c.d]
                for name, c in against.items()
            ],
        ),
    ]
    if len(given.budget_chars) > 1:
        rows: list[list[Cell]] = [
            [name, *(found.where(budget=chars, system=name).by_conversation() for chars in given.budget_chars)]
            for name in names
        ]
        tables.append(Table("of a conversation, by budget", ("system", *map(str, given.budget_chars)), rows))
    data = {
        "data": [str(path) for path in given.data],
        "n": len(first.where(system=ours).all),
        "budgets": {
            str(chars): {name: _told(found.where(budget=chars, system=name)) for name in names}
            for chars in given.budget_chars
        },
        "against": {name: comparison.to_json() for name, comparison in against.items()},
    }

    def draw(figure: Figure) -> None:
        kinds = first.values("kind")
        shown = {name: [first.where(system=name, kind=kind).by_conversation() for kind in kinds] for name in names}
        bars(figure, f"lost facts of a conversation that came back in {budget:,} characters", kinds, shown)

    return Report("restore: facts that a compaction lost", data, tables, notes, draw)


def _row(name: str, found: Outcomes) -> list[Cell]:
    reasons = [found.share(why) for why in REASONS]
    return [name, found.by_conversation(), found.share(), found.where(needed=True).share(), *reasons]


def _by(field: str, found: Outcomes, names: Sequence[str]) -> Table:
    """A table of outcomes by the values of a field."""
    rows: list[list[Cell]] = []
    for value in found.values(field):
        part = found.where(**{field: value})
        shares = [part.where(system=name).by_conversation() for name in names]
        rows.append([str(value), len(part.where(system=names[0]).all), *shares])
    return Table(f"of a conversation, by {field}", (field, "facts", *names), rows)


def _told(found: Outcomes) -> dict[str, Any]:
    """The figures of these results as JSON."""

    def numbers(part: Outcomes) -> dict[str, float]:
        return {"n": len(part.all), "recovered": part.share(), "by_conversation": part.by_conversation()}

    return {
        **numbers(found),
        "conversations": len(found.of_conversations()),
        "needed": found.where(needed=True).share(),
        "missed": {why: found.share(why) for why in REASONS},
        **{
            f"by_{field}": {str(value): numbers(found.where(**{field: value})) for value in found.values(field)}
            for field in SPLITS
        },
    }


def _comparison(found: Outcomes, ours: str, other: str, seed: int) -> Comparison:
    a, b = found.where(system=ours).of_conversations(), found.where(system=other).of_conversations()
    return compare([a[key] for key in a], [b[key] for key in a], seed)
