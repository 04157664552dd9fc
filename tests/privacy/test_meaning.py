"""What an ε means for an attacker, against closed forms, a simulated likelihood-ratio test and the accountant."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest
from scipy.stats import norm

from tests.statistics import shifted
from wirelessfl.privacy import detection_bound, gaussian_delta, gaussian_detection, gaussian_mu, meaning_of
from wirelessfl.privacy.meaning import verdict

DELTA = 1e-5
EPSILONS = [0.0, 0.5, 2.0, 8.0, 50.0, 367.0]
RATES = np.array([0.0, 1e-6, 1e-3, 0.01, 0.1, 0.5, 0.9, 1.0])


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_best_test_against_gaussian_noise_keeps_to_the_bound(epsilon: float) -> None:
    allowed, reached = detection_bound(epsilon, DELTA, RATES), gaussian_detection(epsilon, DELTA, RATES)
    assert np.all(reached <= allowed + 1e-9) and np.all(allowed <= 1) and np.all(reached >= RATES - 1e-12)
    assert np.all(np.diff(allowed) >= 0) and np.all(np.diff(reached) >= 0)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_the_bound_touches_the_gaussian_curve_where_its_slope_is_e_to_the_epsilon(epsilon: float) -> None:
    # (ε, δ) is a tangent of the trade-off curve: TPR − e^ε FPR is at most δ, and reaches it.
    rates = norm.sf(np.linspace(0, 12, 20001))
    assert np.max(gaussian_detection(epsilon, DELTA, rates) - np.exp(epsilon) * rates) == pytest.approx(DELTA, rel=1e-3)
    assert float(gaussian_delta(epsilon, float(gaussian_mu(epsilon, DELTA)))) == pytest.approx(DELTA, rel=1e-6)


def test_a_simulated_attack_finds_as_many_as_the_curve_says() -> None:
    trials, false_positives = 40_000, 0.1
    generator = np.random.default_rng(shifted(11))
    mu = float(gaussian_mu(8.0, DELTA))
    threshold = norm.isf(false_positives)
    found = np.mean(generator.normal(mu, 1.0, trials) > threshold)
    expected = float(gaussian_detection(8.0, DELTA, false_positives))
    # Six standard deviations: a false alarm in 5e8 runs.
    assert abs(found - expected) < 6 * math.sqrt(expected * (1 - expected) / trials)
    guessed = (
        np.mean(generator.normal(mu, 1.0, trials) > mu / 2) + np.mean(generator.normal(0, 1.0, trials) < mu / 2)
    ) / 2
    assert abs(guessed - meaning_of(8.0, DELTA).guess_gaussian) < 6 * math.sqrt(0.25 / (2 * trials))


def test_closed_forms() -> None:
    two = meaning_of(2.0, DELTA)
    assert two.odds == pytest.approx(math.e**2)
    assert two.guess_bound == pytest.approx((math.e**2 + DELTA) / (1 + math.e**2))
    assert two.advantage_bound == pytest.approx(2 * two.guess_bound - 1)
    assert two.found_bound == pytest.approx(math.e**2 * 1e-3 + DELTA)
    assert two.belief(0.01) == pytest.approx(math.e**2 * 0.01 / (0.99 + math.e**2 * 0.01))
    none, all_told = meaning_of(0.0, DELTA), meaning_of(math.inf, DELTA)
    assert none.guess_bound == pytest.approx(0.5 + DELTA / 2) and none.belief(0.3) == pytest.approx(0.3)
    assert all_told.guess_bound == all_told.guess_gaussian == all_told.found_bound == all_told.belief(1e-9) == 1.0


def test_the_four_of_the_page_in_order() -> None:
    meanings = [meaning_of(epsilon, DELTA) for epsilon in (2.0, 8.0, 50.0, 367.0, 1e5)]
    assert all(a.found_gaussian <= b.found_gaussian for a, b in itertools.pairwise(meanings))
    assert meanings[0].found_gaussian < 0.01 < meanings[1].found_gaussian < 0.5 < 0.99 < meanings[2].found_gaussian
    assert [verdict(epsilon) for epsilon in (1.0, 2.0, 10.0, 10.1, math.inf)] == [
        "strong", "reasonable", "reasonable", "weak to none", "weak to none",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("epsilon", "delta", "rate"), [(-1, 0.1, 0), (math.nan, 0.1, 0), (1, 0, 0), (1, 1, 0), (1, 0.1, 2)]
)
def test_numbers_out_of_range_are_refused(epsilon: float, delta: float, rate: float) -> None:
    for function in (detection_bound, gaussian_detection):
        with pytest.raises(ValueError, match=r"."):
            function(epsilon, delta, rate)


@pytest.mark.parametrize("epsilon", [1e11, 1e13, 1e308])
def test_an_epsilon_beyond_use_is_certainty_without_warnings(epsilon: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        beyond = meaning_of(epsilon, DELTA)
    assert beyond.guess_gaussian == beyond.found_gaussian == beyond.found_bound == beyond.belief(0.01) == 1.0
    assert gaussian_detection(epsilon, DELTA, [1e-300, 1.0]).tolist() == [1.0, 1.0]
