import numpy as np
import pytest
from palimpsest.evaluation.statistics import compare, gap_closed, mean

pytestmark = pytest.mark.slow


def test_a_difference_comes_with_its_interval_its_p_and_its_size() -> None:
    from scipy import stats  # a second that each worker would spend

    random = np.random.default_rng(1)
    b = random.random(200)
    a = b + random.normal(0.1, 0.2, 200)
    found = compare(a.tolist(), b.tolist())
    assert found.n == 200 and found.difference == pytest.approx(float(np.mean(a - b)))
    assert 0 < found.low < found.difference < found.high
    assert found.p == stats.wilcoxon(a, b).pvalue < 0.01
    assert found.d == pytest.approx(found.difference / np.std(a - b, ddof=1))


def test_the_same_seed_gives_the_same_interval() -> None:
    a, b = [1.0, 0.0, 1.0, 1.0, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0, 0.0, 1.0]
    assert compare(a, b, seed=7) == compare(a, b, seed=7)
    assert compare(a, b).difference == -compare(b, a).difference


def test_what_is_equal_does_not_differ() -> None:
    for scores in ([], [1.0], [0.0, 1.0, 1.0]):
        found = compare(scores, scores)
        assert (found.difference, found.low, found.high, found.p, found.d) == (0.0, 0.0, 0.0, 1.0, 0.0)


def test_a_difference_that_is_everywhere_the_same_has_no_interval_to_speak_of() -> None:
    found = compare([1.0, 1.0, 1.0], [0.0, 0.0, 0.0])
    assert (found.difference, found.low, found.high) == (1.0, 1.0, 1.0)


def test_a_mean_comes_with_bounds() -> None:
    found = mean([0.0, 1.0] * 50)
    assert found.value == 0.5 and found.low is not None and found.high is not None
    assert found.low == pytest.approx(0.4, abs=0.02) and found.high == pytest.approx(0.6, abs=0.02)
    assert found.to_json() == {"value": 0.5, "low": round(found.low, 4), "high": round(found.high, 4)}


def test_the_gap_that_is_closed_is_measured_from_the_lower_end() -> None:
    found = gap_closed([0.0] * 8 + [1.0] * 2, [0.0] * 4 + [1.0] * 6, [1.0] * 10)
    assert found.value == pytest.approx(0.5) and found.low is not None and found.high is not None
    assert found.low < 0.5 < found.high


def test_without_a_gap_nothing_can_be_closed() -> None:
    assert gap_closed([1.0, 0.0], [1.0, 1.0], [0.0, 1.0]).value is None
    one = gap_closed([0.0, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0])
    assert one.value == 1.0 and one.low is None
