"""Statistical acceptance: every tolerance follows from the sample size and a stated false-alarm rate.

A check with fixed seed either always passes or always fails; the false-alarm rate says how many of all seeds would fail
correct code. At the default of 1e-6 a failure is a defect, not bad luck. Set the environment variable ``SEED_SHIFT``
to an integer to run every test that takes its seed from `shifted` with other numbers.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

FALSE_ALARM = 1e-6

Samples = NDArray[Any]


def shifted(seed: int) -> int:
    """``seed``, moved by the environment variable ``SEED_SHIFT`` (0 where it is not set)."""
    return seed + int(os.environ.get("SEED_SHIFT", "0"))


def standard_errors(false_alarm: float = FALSE_ALARM) -> float:
    """How many standard errors a normal estimate may be off: 4.89 at 1e-6, two-sided."""
    return float(stats.norm.isf(false_alarm / 2))


def ks_tolerance(count: int, false_alarm: float = FALSE_ALARM) -> float:
    """The Kolmogorov-Smirnov distance that ``count`` samples of the true law exceed with at most ``false_alarm``.

    Dvoretzky-Kiefer-Wolfowitz with Massart's constant, valid at every sample size: sqrt(ln(2/alpha)/(2n)).
    """
    return float(np.sqrt(np.log(2 / false_alarm) / (2 * count)))


def ks_distance(samples: Samples, cdf: Callable[[Samples], Samples]) -> float:
    """The largest distance between the empirical distribution of ``samples`` and the continuous law ``cdf``."""
    ordered = np.sort(np.ravel(samples))
    law = cdf(ordered)
    steps = np.arange(len(ordered) + 1) / len(ordered)
    return float(max(np.max(steps[1:] - law), np.max(law - steps[:-1])))


def assert_follows(samples: Samples, cdf: Callable[[Samples], Samples], false_alarm: float = FALSE_ALARM) -> None:
    """Independent ``samples`` follow the continuous law ``cdf`` (Kolmogorov-Smirnov)."""
    distance, tolerance = ks_distance(samples, cdf), ks_tolerance(np.size(samples), false_alarm)
    assert distance <= tolerance, f"KS distance {distance:.5f} exceeds {tolerance:.5f} for {np.size(samples)} samples"


def assert_mean(samples: Samples, mean: float, std: float, false_alarm: float = FALSE_ALARM) -> None:
    """Independent ``samples`` of the known standard deviation ``std`` have this mean (central limit theorem)."""
    tolerance = standard_errors(false_alarm) * std / np.sqrt(np.size(samples))
    found = float(np.mean(samples))
    assert abs(found - mean) <= tolerance, f"mean {found:.6g} differs from {mean:.6g} by more than {tolerance:.3g}"


def assert_variance_gaussian(
    samples: Samples, variance: float, mean: float = 0.0, false_alarm: float = FALSE_ALARM
) -> None:
    """Independent Gaussian ``samples`` of the known ``mean`` have this variance (exact chi-square interval)."""
    count = np.size(samples)
    found = float(np.mean((samples - mean) ** 2))
    low = variance * stats.chi2.ppf(false_alarm / 2, count) / count
    high = variance * stats.chi2.isf(false_alarm / 2, count) / count
    assert low <= found <= high, f"variance {found:.6g} lies outside [{low:.6g}, {high:.6g}] around {variance:.6g}"


def assert_probability(hits: int, trials: int, probability: float, false_alarm: float = FALSE_ALARM) -> None:
    """``hits`` of ``trials`` independent events of this probability (exact binomial interval)."""
    law = stats.binom(trials, probability)
    low, high = law.ppf(false_alarm / 2), law.isf(false_alarm / 2)
    assert low <= hits <= high, f"{hits} hits in {trials} lie outside [{low:.0f}, {high:.0f}] around {probability:.6g}"


def assert_counts(counts: Samples, probabilities: Samples, false_alarm: float = FALSE_ALARM) -> None:
    """``counts`` of independent categories follow these ``probabilities`` (chi-square; expect 5 or more in each)."""
    expected = np.sum(counts) * np.asarray(probabilities)
    assert np.min(expected) >= 5, "too few samples for a chi-square test"
    statistic = float(np.sum((counts - expected) ** 2 / expected))
    limit = float(stats.chi2.isf(false_alarm, np.size(counts) - 1))
    assert statistic <= limit, f"chi-square {statistic:.1f} exceeds {limit:.1f}"


def assert_uncorrelated(first: Samples, second: Samples, false_alarm: float = FALSE_ALARM) -> None:
    """Independent pairs of two real variables show no linear correlation (large samples: sqrt(n) r is normal)."""
    found = float(np.corrcoef(first, second)[0, 1])
    tolerance = standard_errors(false_alarm) / np.sqrt(np.size(first))
    assert abs(found) <= tolerance, f"correlation {found:.5f} exceeds {tolerance:.5f}"
