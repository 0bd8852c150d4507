"""
Is it worth while that what is recalled gains and what is not fades? LANTERN's simulation of eight compactions.

LANTERN (arXiv 2606.05182, appendix D). A conversation is compacted at 15, 25 ... 85 % of its length; each time memory
restores what it thinks is wanted, and that is a round of reinforcement. The same is done without. Facts are found by
rule (`facts.py`), the compaction is extractive; the paper has a model for both.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from proxy.core.recall.ranking import Floats
from proxy.core.recall.reinforcement import scope_name, standings
from proxy.domain import Reach
from proxy.evaluation import palimpsest, vectors
from proxy.evaluation.bench_restore import RARE_SHARE
from proxy.evaluation.compaction import MIN_MESSAGES, Strategy, compacted, query_after, until
from proxy.evaluation.datasets import Conversation, read
from proxy.evaluation.facts import Fact, Rarity, facts_of, holds, normalised, said_in
from proxy.evaluation.palimpsest import TENANT, Store
from proxy.evaluation.report import Report, Table, lines, progress
from proxy.evaluation.statistics import compare
from proxy.ports import Embedder
from proxy.settings.policy import Policy, ReinforcementPolicy
from proxy.store.reinforcement import read_rounds

FRACTIONS = tuple(percent / 100 for percent in range(15, 90, 10))  # LANTERN appendix D
BUDGET_CHARS = 6000  # LANTERN
QUANTILES = {"lowest": 0.0, "quarter": 0.25, "median": 0.5, "three quarters": 0.75, "highest": 1.0}


@dataclass(frozen=True, slots=True)
class Simulated:
    """Of one conversation: the share of its lost facts that came back, by fraction; confidences in the end, (n,)."""

    recovered: Mapping[float, float]
    confidences: Floats


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Nothing beyond what all share."""


async def run(given: argparse.Namespace) -> Report:
    usual = Policy()
    policies = [usual.model_copy(update={"reinforcement": ReinforcementPolicy(enabled=on)}) for on in (False, True)]
    without: list[Simulated] = []
    reinforced: list[Simulated] = []
    async with vectors.opened() as embedder:
        for path in given.data:
            every = read(path)
            rarity = Rarity([said_in(conversation.messages) for conversation in every])
            most = max(1, int(RARE_SHARE * len(every)))
            long = [conversation for conversation in every if len(conversation.messages) >= MIN_MESSAGES]
            with progress() as bar:
                for conversation in bar.track(long[: given.limit or None], description=f"compacting {path.name}"):
                    facts = [fact for fact in facts_of(said_in(conversation.messages)) if rarity.is_rare(fact, most)]
                    for policy, simulated in zip(policies, (without, reinforced), strict=True):
                        simulated.append(await simulate(embedder, policy, conversation, facts))
    return report([str(path) for path in given.data], without, reinforced, given.seed)


async def simulate(embedder: Embedder, policy: Policy, conversation: Conversation, facts: Sequence[Fact]) -> Simulated:
    """Let one conversation grow, be compacted and restored again and again."""
    recovered: dict[float, float] = {}
    written = 0
    async with palimpsest.opened(embedder, policy) as store:
        for fraction in FRACTIONS:
            so_far = until(conversation, fraction)
            if fresh := so_far.messages[written:]:
                await store.write([replace(conversation, messages=fresh)])
                written = len(so_far.messages)
            after = await compacted(so_far, Strategy.EXTRACTIVE)
            visible = normalised(after.visible)
            lost = [fact for fact in facts if fact.messages[0] < after.dropped and not holds(visible, fact.key)]
            query = query_after(so_far, after, policy)
            if not lost or query is None:
                continue
            pack = await store.reader(so_far).pack(query.text, BUDGET_CHARS, after.dropped)
            told = normalised(pack.text)
            recovered[fraction] = sum(holds(told, fact.key) for fact in lost) / len(lost)
            await store.quote(so_far, pack.messages)
        return Simulated(recovered, await confidences(store, conversation))


async def confidences(store: Store, conversation: Conversation) -> Floats:
    """Of each message as it stands in the end, (n,)."""
    scope = scope_name(Reach.CONVERSATION, conversation.id, TENANT, "")
    rounds = await store.database.ask(lambda ask: read_rounds(ask, TENANT, scope))
    return standings(np.array(store.occurrences(conversation)), rounds, store.policy.reinforcement)[0]


def report(data: Sequence[str], without: Sequence[Simulated], reinforced: Sequence[Simulated], seed: int) -> Report:
    """
    Args:
        without, reinforced: of the same conversations in the same order.
    """
    events: list[dict[str, Any]] = []
    for fraction in FRACTIONS:
        pairs = [
            (a.recovered[fraction], b.recovered[fraction])
            for a, b in zip(without, reinforced, strict=True)
            if fraction in a.recovered and fraction in b.recovered
        ]
        if pairs:
            before, after = np.mean(pairs, axis=0).tolist()
            events.append({"fraction": fraction, "n": len(pairs), "without": before, "reinforced": after})
    both = [
        (b.recovered[fraction], a.recovered[fraction])
        for a, b in zip(without, reinforced, strict=True)
        for fraction in a.recovered
    ]
    overall = compare([b for b, _ in both], [a for _, a in both], seed)
    confidences = np.concatenate([one.confidences for one in reinforced])
    spread = {name: float(np.quantile(confidences, share)) for name, share in QUANTILES.items()}
    threshold = ReinforcementPolicy().threshold
    faded = float((confidences < threshold).mean())
    return Report(
        title="reinforce: facts that come back over eight compactions, with reinforcement and without",
        data={
            "data": list(data),
            "n": len(both),
            "conversations": len(without),
            "events": events,
            "difference": overall.to_json(),
            "confidence": {**spread, "under_threshold": faded},
        },
        tables=[
            Table(
                f"share of the lost facts that came back, {BUDGET_CHARS:,} characters, mean of conversations",
                ("compacted at", "n", "without", "reinforced", "points"),
                [
                    (
                        *(f"{held['fraction']:.0%}", held["n"], held["without"], held["reinforced"]),
                        f"{100 * (held['reinforced'] - held['without']):+.1f}",
                    )
                    for held in events
                ],
            ),
            Table(
                "reinforced minus without, paired by conversation and compaction",
                ("n", "points", "95 %", "p (Wilcoxon)", "Cohen's d"),
                [
                    (
                        *(overall.n, f"{100 * overall.difference:+.2f}"),
                        f"{100 * overall.low:+.2f} .. {100 * overall.high:+.2f}",
                        *(f"{overall.p:.2g}", overall.d),
                    )
                ],
            ),
            Table(
                "confidence of all messages in the end",
                (*QUANTILES, f"under {threshold}"),
                [(*spread.values(), faded)],
            ),
        ],
        notes=[
            "The gate is open. Eight rounds take 0.16 from the 0.50 that a memory begins with: nothing can fall under"
            f" {threshold}, so what is measured is the order alone, not the pruning.",
        ],
        draw=lambda figure: lines(
            figure,
            ("fraction", "compacted at this part of the conversation"),
            "lost facts that came back",
            events,
            "without",
            "reinforced",
        ),
    )
