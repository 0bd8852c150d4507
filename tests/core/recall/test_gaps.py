"""The write gap and the retrieval gap, from the stages at which answers got lost."""

from __future__ import annotations

import pytest
from palimpsest.core.recall.gaps import LOSSES, MARGIN, ProbeStage, as_json, estimate, verdict


def test_gaps_are_shares_of_all_probes() -> None:
    found = estimate(["found"] * 6 + ["indexed", "likely", "packed", "packed"], 10.0, 20.0)
    assert (found.probes, found.write, found.retrieval, found.verdict) == (10, 0.1, 0.3, "retrieval")
    assert (found.since, found.until) == (10.0, 20.0)


@pytest.mark.parametrize(
    ("write", "retrieval", "expected"),
    [(0.3, 0.1, "write"), (0.1, 0.3, "retrieval"), (0.1, 0.1 + MARGIN / 2, "mixed"), (0.0, 0.0, "mixed")],
)
def test_the_larger_gap_is_the_verdict_beyond_a_margin(write: float, retrieval: float, expected: str) -> None:
    assert verdict(write, retrieval) == expected


def test_every_stage_at_which_an_answer_gets_lost_says_why_and_what_to_change() -> None:
    assert set(LOSSES) == set(ProbeStage) - {ProbeStage.FOUND}
    assert all(loss.meaning and loss.advice for loss in LOSSES.values())


def test_more_probes_make_an_estimate_surer() -> None:
    few, many = estimate(["found"] * 9 + ["packed"]), estimate(["found"] * 180 + ["packed"] * 20)
    assert few.retrieval == many.retrieval == 0.1
    assert 0.02 < many.error(0.1) < 0.06 < few.error(0.1)


def test_stages_of_another_version_are_left_out_and_nothing_is_none() -> None:
    assert estimate(["found", "gone"]).probes == 1
    assert as_json(estimate([])) is None
    told = as_json(estimate(["found", "packed"]))
    assert told is not None and told["retrieval_gap"] == 0.5 and told["stages"]["packed"] == 1
