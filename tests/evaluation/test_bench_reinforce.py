"""Is it worth while that what is recalled gains and what is not fades?"""

from __future__ import annotations

import numpy as np
import pytest

from proxy.evaluation.bench_reinforce import FRACTIONS, Simulated, report, simulate
from proxy.evaluation.facts import facts_of, said_in
from proxy.settings.policy import Policy, ReinforcementPolicy
from tests.evaluation.told import told
from tests.remembered import WordEmbedder

TALK = told(
    *(
        line
        for at in range(150)
        for line in (
            f"user: Which port does the billing worker number {at} listen on?",
            f"assistant: Worker {at} listens on port 7{at:03}, see config/worker_{at}.toml.",
        )
    )
)
ON = Policy(reinforcement=ReinforcementPolicy(enabled=True))
FACTS = facts_of(said_in(TALK.messages))


async def test_each_compaction_that_loses_facts_is_a_round() -> None:
    simulated = await simulate(WordEmbedder(), ON, TALK, FACTS)
    rounds = len(simulated.recovered)
    assert len(FRACTIONS) // 2 < rounds <= len(FRACTIONS)
    assert max(simulated.confidences) > 0.5 > min(simulated.confidences)
    assert min(simulated.confidences) >= 0.5 - rounds * 0.02, "nothing fades by more than a round takes"


async def test_without_reinforcement_everything_stays_as_it_began() -> None:
    simulated = await simulate(WordEmbedder(), Policy(), TALK, FACTS)
    assert set(simulated.confidences.tolist()) == {0.5}
    assert 0 < np.mean([*simulated.recovered.values()]) <= 1


def test_compactions_are_paired() -> None:
    without = [Simulated({0.15: 0.5, 0.25: 0.5}, np.array([0.5])), Simulated({0.15: 0.0}, np.array([0.5]))]
    reinforced = [Simulated({0.15: 0.7, 0.25: 0.5}, np.array([0.1])), Simulated({0.15: 0.1}, np.array([0.8]))]
    data = report(["own"], without, reinforced, 42).data
    assert [(held["fraction"], held["n"]) for held in data["events"]] == [(0.15, 2), (0.25, 1)]
    assert data["difference"]["difference"] == pytest.approx(0.1)
    assert (data["confidence"]["lowest"], data["confidence"]["under_threshold"]) == (0.1, 0.5)
