"""What has a memory been worth so far?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.recall.reinforcement import Rounds, Standing, rewarded, scope_name, standings, worth
from proxy.domain import Reach
from proxy.settings.policy import ReinforcementPolicy

POLICY = ReinforcementPolicy(enabled=True)


def after(rounds: int, recalled: dict[int, Standing] | None = None) -> Rounds:
    """So many rounds in a scope whose newest message was the hundredth."""
    return Rounds((100,) * rounds, recalled or {})


def confidence(occurrence: int, rounds: Rounds) -> float:
    return float(standings(np.array([occurrence]), rounds, POLICY)[0][0])


def test_a_memory_begins_in_the_middle() -> None:
    confidence, success, accesses = standings(np.array([1]), Rounds(), POLICY)
    assert (confidence[0], success[0], accesses[0]) == (0.5, 0.5, 0)


def test_a_block_raises_what_it_quotes_and_lowers_the_rest() -> None:
    one = after(1, {7: rewarded(7, Rounds(), POLICY)})
    assert confidence(7, one) == pytest.approx(0.65)
    assert confidence(8, one) == pytest.approx(0.48)
    _, success, accesses = standings(np.array([7, 8]), one, POLICY)
    assert success == pytest.approx([0.55, 0.45])
    assert accesses.tolist() == [1, 0]


def test_what_is_said_after_a_round_took_no_part_in_it() -> None:
    assert confidence(101, after(5)) == 0.5


def test_confidence_ends_at_one_and_at_the_floor() -> None:
    rounds = Rounds()
    for number in range(1, 9):
        rounds = after(number, {7: rewarded(7, rounds, POLICY)})
    assert confidence(7, rounds) == 1.0
    assert confidence(8, after(500)) == pytest.approx(0.1)


def test_who_misses_eighteen_rounds_is_recalled_no_more() -> None:
    assert worth(np.array([7]), after(17), POLICY)[1].all()
    assert not worth(np.array([7]), after(18), POLICY)[1].any()


def test_what_sank_to_the_floor_has_a_low_success_rate_too() -> None:
    rounds = after(1, {7: Standing(1, 1.0, 1.0, 9)})
    while worth(np.array([7]), rounds, POLICY)[1].all():
        rounds = after(len(rounds.newest) + 1, dict(rounds.recalled or {}))
    assert standings(np.array([7]), rounds, POLICY)[1][0] < POLICY.threshold


def test_worth_grows_with_the_logarithm_of_how_often_it_came() -> None:
    rounds = after(1, {7: Standing(1, 0.5, 0.5, 3)})
    assert worth(np.array([7, 101]), rounds, POLICY)[0] == pytest.approx([3 * 0.25, 0.25])


@given(st.lists(st.booleans(), max_size=60))
def test_fading_when_asked_equals_fading_at_every_round(recalls: list[bool]) -> None:
    expected, rounds = 0.5, Rounds()
    for is_recalled in recalls:
        expected = min(1.0, expected + 0.15) if is_recalled else max(0.1, expected - 0.02)
        recalled = dict(rounds.recalled or {}) | ({7: rewarded(7, rounds, POLICY)} if is_recalled else {})
        rounds = after(len(rounds.newest) + 1, recalled)
    assert confidence(7, rounds) == pytest.approx(expected)


def test_scopes_are_told_apart_by_what_they_may_look_at() -> None:
    names = [
        scope_name(Reach.CONVERSATION, "c-1", "ann", "p"),
        scope_name(Reach.CONVERSATION, "c-2", "ann", "p"),
        scope_name(Reach.USER, "c-1", "ann", "p"),
        scope_name(Reach.USER, "c-1", "bob", "p"),
        scope_name(Reach.USER, "c-1", "ann", ""),
        scope_name(Reach.TENANT, "c-1", "ann", ""),
    ]
    assert len(set(names)) == len(names)
    assert scope_name(Reach.USER, "c-1", "ann", "p") == scope_name(Reach.USER, "c-2", "ann", "p")
