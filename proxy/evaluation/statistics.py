"""Is one system better than another, or was it luck? Both answered the same questions, so their scores are paired."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from proxy.errors import PolicyError

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
        """Four digits that count: p may be tiny."""
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
        raise PolicyError("comparing systems: scipy is missing; pip install 'palimpsest-proxy[bench]'") from cause

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
