"""The audit's statistics: bounds are wrong no more often than they say, and equal independent computations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from tests.statistics import FALSE_ALARM, shifted
from wirelessfl.analysis.audit.statistics import (
    clopper_pearson_upper,
    epsilon_of_errors,
    epsilon_shown_without_error,
    sampled_epsilon,
    shift_bound,
    threshold_bound,
)
from wirelessfl.privacy import SampledGaussian, composed_epsilon, gaussian_epsilon
from wirelessfl.privacy.gaussian import EPSILON_CAP

DELTA = 1e-5
REPEATS = 4_000
ALPHA = 0.05
TOO_OFTEN = int(stats.binom.isf(FALSE_ALARM, REPEATS, ALPHA))
"""Wrong bounds among the repeats that are too many for an error probability of 5 %."""


@pytest.mark.parametrize("same_noise", [True, False])
@pytest.mark.parametrize("mu", [0.5, 5.0])
def test_shift_bound_is_wrong_as_rarely_as_it_says(same_noise: bool, mu: float) -> None:
    generator = np.random.default_rng(shifted(1))
    noise = generator.standard_normal((REPEATS, 2, 12))
    if same_noise:
        noise[:, 1] = noise[:, 0]
    ones, everywhere = np.ones(12), np.ones(12, dtype=np.bool_)
    wrong = sum(shift_bound(plus + mu, minus, ones, everywhere, ALPHA).lower > mu for plus, minus in noise)
    assert wrong <= TOO_OFTEN


def test_shift_bound_with_amplitudes_and_idle_events() -> None:
    generator = np.random.default_rng(shifted(2))
    amplitude = np.tile([0.5, 1.0, 2.0], 8)
    wrong = 0
    for _ in range(REPEATS):
        included = generator.random(24) < 0.5
        if included.sum() < 2:
            continue
        noise = generator.standard_normal(24)
        plus = noise + 0.7 * amplitude * included
        wrong += shift_bound(plus, noise, amplitude, included, ALPHA).lower > 0.7
    assert wrong <= TOO_OFTEN


def test_shift_bound_of_independent_worlds_is_that_of_the_matched_filter() -> None:
    # PRIVACY.md: μ̂ − z √(2/n); here with n so large that the measured variance is as good as known.
    generator, n, alpha = np.random.default_rng(shifted(3)), 1_000_000, 2e-3
    plus, minus = generator.standard_normal((2, n))
    bound = shift_bound(plus + 3.0, minus, np.ones(n), np.ones(n, dtype=np.bool_), alpha)
    # The larger deviation and its own bound cost up to z/√(2n) of μ̂ each.
    deviation = 3.0 * stats.norm.isf(alpha / 2) / math.sqrt(2 * n)
    expected = bound.estimate - stats.norm.isf(alpha / 2) * math.sqrt(2 / n)
    assert bound.lower == pytest.approx(expected, abs=2 * deviation)
    assert bound.lower < expected


def test_under_the_same_noise_only_the_deviation_is_uncertain() -> None:
    noise = np.random.default_rng(shifted(4)).standard_normal(50)
    bound = shift_bound(noise + 2.0, noise, np.ones(50), np.ones(50, dtype=np.bool_), 1e-3)
    largest = math.sqrt(49 * np.var(noise, ddof=1) / stats.chi2.ppf(5e-4, 49))
    assert bound.estimate == pytest.approx(2.0 / np.std(noise, ddof=1), rel=1e-12)
    assert bound.lower == pytest.approx(2.0 / largest, rel=1e-9)


def test_without_noise_the_worlds_are_infinitely_far_apart() -> None:
    ones, everywhere = np.ones(5), np.ones(5, dtype=np.bool_)
    assert shift_bound(ones, 0 * ones, ones, everywhere, 1e-3).lower == math.inf
    assert shift_bound(ones, ones, ones, everywhere, 1e-3).lower == 0.0
    assert shift_bound(0 * ones, ones, ones, everywhere, 1e-3).lower == 0.0
    assert shift_bound(ones, 0 * ones, 0 * ones, everywhere, 1e-3).lower == 0.0


def test_shift_bound_needs_two_events() -> None:
    with pytest.raises(ValueError, match="in 1 events"):
        shift_bound(np.ones(3), np.zeros(3), np.ones(3), np.array([True, False, False]), 1e-3)


@pytest.mark.parametrize("trials", [1, 20, 500])
def test_clopper_pearson(trials: int) -> None:
    hits = np.unique([0, 1, trials // 2, trials - 1, trials])
    found = clopper_pearson_upper(hits, trials, 1e-3)
    # SciPy's two-sided interval at 1 − 2α has the same upper end.
    expected = [stats.binomtest(int(k), trials).proportion_ci(1 - 2e-3, method="exact").high for k in hits]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("mu", [0.5, 2.0, 6.0])
def test_the_best_threshold_of_a_gaussian_refutes_exactly_its_epsilon(mu: float) -> None:
    # Neyman and Pearson: no event tells more than a threshold, so the supremum is the exact curve.
    thresholds = np.linspace(-10, mu + 10, 200_001)
    found = epsilon_of_errors(stats.norm.sf(thresholds), stats.norm.cdf(thresholds - mu), DELTA).max()
    assert found == pytest.approx(gaussian_epsilon(mu, DELTA), rel=1e-6)
    assert found == pytest.approx(gaussian_epsilon(mu, DELTA), rel=1e-6)


def test_threshold_bound_is_wrong_as_rarely_as_it_says() -> None:
    # At δ = 0 and few trials the bound comes close to the truth: ε of randomised response, ln(0.9/0.1).
    generator, wrong = np.random.default_rng(shifted(5)), 0
    draws = generator.random((REPEATS, 2, 200)) < 0.1
    for flipped_with, flipped_without in draws:
        statistic = np.where(flipped_with, 0.0, 1.0), np.where(flipped_without, 1.0, 0.0)
        wrong += threshold_bound(*statistic, 0.0, ALPHA).epsilon > math.log(9)
    assert 0 < wrong <= TOO_OFTEN


def test_threshold_is_judged_on_other_trials_than_it_is_chosen_on() -> None:
    # The first half is told apart perfectly, the second not at all.
    with_canary = np.concatenate([np.full(50, 1.0), np.zeros(50)])
    bound = threshold_bound(with_canary, np.zeros(100), DELTA, 1e-3)
    assert 0 < bound.threshold < 1
    assert bound.epsilon == 0.0 and bound.false_negatives == 1.0


def test_no_more_can_be_shown_than_without_an_error() -> None:
    apart = threshold_bound(np.ones(101), np.zeros(101), 0.0, 1e-3)
    assert apart.epsilon == pytest.approx(epsilon_shown_without_error(101, 1e-3), rel=1e-12)
    # No error among 51 judged trials: rates up to 1 − α^(1/51), α a quarter of a thousandth.
    rate = 1 - (5e-4) ** (1 / 51)
    assert apart.epsilon == pytest.approx(math.log((1 - rate) / rate), rel=1e-9)


def test_threshold_bound_needs_two_trials() -> None:
    with pytest.raises(ValueError, match="found 1 trials"):
        threshold_bound(np.ones(1), np.zeros(1), DELTA, 1e-3)


@pytest.mark.parametrize("exchange", [False, True])
@pytest.mark.parametrize(("multiplier", "rate", "uses"), [(1.5, 1 / 6, 180), (0.6, 0.05, 40), (4.0, 0.3, 10)])
def test_sampled_epsilon_is_just_below_the_upper_bound(
    multiplier: float, rate: float, uses: int, exchange: bool
) -> None:
    event = SampledGaussian(multiplier, rate, exchange)
    upper = composed_epsilon(0.0, ((event, uses),), DELTA, "pld")
    shifts = np.full(uses, (2.0 if exchange else 1.0) / multiplier)
    found = sampled_epsilon(shifts, rate, DELTA, exchange)
    # Every use is rounded down by at most one interval: 3e-4, or what 50,000 points make of its range of losses.
    interval = max(3e-4, (shifts[0] ** 2 / 2 + 12 * shifts[0]) / 50_000)
    assert upper - interval * uses <= found <= upper * (1 + 1e-4)


def test_sampled_epsilon_of_unequal_uses() -> None:
    events = tuple((SampledGaussian(multiplier, 0.2), 10) for multiplier in (1.0, 2.0, 3.0))
    found = sampled_epsilon(np.repeat([1.0, 1 / 2, 1 / 3, 0.0], 10), 0.2, DELTA, exchange=False)
    assert found == pytest.approx(composed_epsilon(0.0, events, DELTA, "pld"), abs=3e-4 * 30)


def test_without_sampling_it_is_the_plain_curve() -> None:
    assert sampled_epsilon(np.array([2.0]), 1.0, DELTA, exchange=False) == pytest.approx(
        gaussian_epsilon(2.0, DELTA), abs=3e-4
    )


def test_one_clear_use_is_enough() -> None:
    # ln(1 + q (e^ε0 − 1)) at δ/q (Balle, Barthe and Gaboardi 2018, Theorem 9), ε0 that of the unsampled mechanism.
    epsilon = gaussian_epsilon(40.0, DELTA / 0.01)
    expected = epsilon + math.log(0.01)
    assert sampled_epsilon(np.full(7, 40.0), 0.01, DELTA, exchange=False) == pytest.approx(expected, rel=1e-4)
    assert sampled_epsilon(np.array([math.inf]), 0.01, DELTA, exchange=True) == math.inf
    assert sampled_epsilon(np.array([math.inf]), 1e-6, DELTA, exchange=True) == 0.0
    assert sampled_epsilon(np.array([4 * math.sqrt(EPSILON_CAP)]), 0.5, DELTA, exchange=False) == math.inf
    assert sampled_epsilon(np.zeros(3), 0.5, DELTA, exchange=False) == 0.0
