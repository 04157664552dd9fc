"""Median ratio of two programs measured in pairs, with a confidence interval that assumes no distribution."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from scipy import stats

CONFIDENCE = 0.95
LEAST_PAIRS = 6
"""With fewer, not even the smallest and the largest ratio enclose the median with 95 %."""


@dataclass(frozen=True)
class Ratio:
    """Median ratio of pairs and its confidence interval.

    Attributes:
        median: of the ratios of all pairs.
        low: lower end of the interval.
        high: upper end of the interval.
        pairs: number of pairs.
    """

    median: float
    low: float
    high: float
    pairs: int

    def is_below(self, bound: float) -> bool:
        """Whether the whole interval lies below a bound."""
        return self.high < bound


def paired_ratio(ratios: Sequence[float]) -> Ratio:
    """Median with the narrowest interval of order statistics that holds it with at least 95 %.

    The median lies between the k-th smallest and the k-th largest of n independent ratios unless fewer than k of them
    lie on one of its sides, which a binomial of n and 1/2 counts (Conover, Practical Nonparametric Statistics, 3.2).

    Args:
        ratios: one of each pair, at least ``LEAST_PAIRS``.

    Raises:
        ValueError: where there are too few pairs.
    """
    if len(ratios) < LEAST_PAIRS:
        raise ValueError(f"{len(ratios)} pairs: at least {LEAST_PAIRS} are needed for an interval of {CONFIDENCE:.0%}")
    ordered, count = sorted(ratios), len(ratios)
    depth = int(stats.binom.ppf((1 - CONFIDENCE) / 2, count, 0.5))
    return Ratio(statistics.median(ordered), ordered[depth - 1], ordered[count - depth], count)
