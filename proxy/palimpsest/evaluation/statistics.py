"""Paired statistics: whether one system is better than another on the same questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from palimpsest.domain.errors import PolicyError

RESAMPLES = 10_000  # LANTERN
CONFIDENCE = 0.95
SEED = 42  # LANTERN
RESAMPLES_AT_ONCE = 500  # some megabytes


@dataclass(frozen=True, slots=True)
class Comparison:
    """`difference` is the mean of a - b; `low` and `high` bound it; `d` is Cohen's, of the paired differences."""

    n: int
    difference: float
    low: float
    high: float
    p: float
    d: float

    def to_json(self) -> dict[str, float]:
        """The comparison as JSON, four digits that count."""
        return {name: float(f"{value:.4g}") for name, value in asdict(self).items()}


def compare(a: Sequence[float], b: Sequence[float], seed: int = SEED) -> Comparison:
    """
    Paired comparison of two systems, as LANTERN does (section 4): Wilcoxon's signed-rank test (two-sided, pairs without
    a difference left out), a percentile bootstrap of the mean difference, Cohen's d.

    Args:
        a, b: scores of the same questions, in the same order, shape (n,).
    """
    try:
        from scipy import stats  # type: ignore[import-untyped]
    except ImportError as cause:
        raise PolicyError("comparing systems: scipy is missing; in a checkout: pip install -e '.[bench]'") from cause

    difference = np.asarray(a, np.float64) - np.asarray(b, np.float64)
    mean = float(difference.mean()) if len(difference) else 0.0
    if not difference.any():
        return Comparison(len(difference), mean, mean, mean, 1.0, 0.0)
    spread = float(difference.std(ddof=1)) if len(difference) > 1 else 0.0
    if not spread:  # alike everywhere: nothing to resample
        low = high = mean
    else:
        interval = stats.bootstrap(
            (difference,),
            np.mean,
            n_resamples=RESAMPLES,
            batch=RESAMPLES_AT_ONCE,
            confidence_level=CONFIDENCE,
            method="percentile",
            rng=np.random.default_rng(seed),
        ).confidence_interval
        low, high = float(interval.low), float(interval.high)
    p = float(stats.wilcoxon(difference).pvalue)
    return Comparison(len(difference), mean, low, high, p, mean / spread if spread else 0.0)


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure with the bounds of a percentile bootstrap over questions. None where it cannot be said."""

    value: float | None
    low: float | None = None
    high: float | None = None

    def to_json(self) -> dict[str, float | None]:
        return {name: None if value is None else round(value, 4) for name, value in asdict(self).items()}


def mean(scores: Sequence[float], seed: int = SEED) -> Interval:
    """
    The mean of scores, with its interval.

    Args:
        scores: of at least one question.
    """
    return _interval(float(np.mean(scores)), _resampled([scores], seed)[0])


def gap_closed(low: Sequence[float], middle: Sequence[float], high: Sequence[float], seed: int = SEED) -> Interval:
    """
    The share of the way from `low` to `high` that `middle` covers, of their means: (middle - low) / (high - low).

    Args:
        low, middle, high: scores of the same questions, in the same order, shape (n,), n >= 1.

    Returns:
        None where `high` is no better than `low`; without bounds where that is so in some of the resamples.
    """
    gap = float(np.mean(high) - np.mean(low))
    if gap <= 0:
        return Interval(None)
    value = float(np.mean(middle) - np.mean(low)) / gap
    lows, middles, highs = _resampled([low, middle, high], seed)
    gaps = highs - lows
    return _interval(value, (middles - lows) / gaps) if (gaps > 0).all() else Interval(value)


def _resampled(columns: Sequence[Sequence[float]], seed: int) -> NDArray[np.float64]:
    """Means of each column over the same resamples of its rows, shape (columns, RESAMPLES)."""
    scores = np.asarray(columns, np.float64)
    random, count = np.random.default_rng(seed), scores.shape[1]
    parts = [
        scores[:, random.integers(0, count, (RESAMPLES_AT_ONCE, count))].mean(axis=2)
        for _ in range(RESAMPLES // RESAMPLES_AT_ONCE)
    ]
    return np.concatenate(parts, axis=1)


def _interval(value: float, resampled: NDArray[np.float64]) -> Interval:
    """The 95 % interval of resampled values around a value."""
    beside = (1 - CONFIDENCE) / 2 * 100
    low, high = np.percentile(resampled, (beside, 100 - beside))
    return Interval(value, float(low), float(high))
