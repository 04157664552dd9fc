"""Section 4.3 of the wavelet paper, and what its stated ε imply."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

from publications.claims import Outcome, judge
from publications.haar_section import (
    EXAMPLE,
    SECTION_CLAIMS,
    TABLE_2,
    clipping_rows,
    element,
    sensitivities,
)
from publications.tables import Tables
from publications.wavelet import WAVELET
from publications.wavelet_numbers import (
    EPSILONS,
    STEP_COUNTS,
    all_fits,
    fitted_epsilons,
    limit_epsilons,
    stated_epsilon_rows,
)
from wirelessfl.privacy import SampledGaussian, composed_epsilon, haar, haar_weights, inverse_haar

NO_RUNS = Tables({"size": "small"}, {})


def test_the_third_element_by_hand() -> None:
    """H_0 = 5.25, H_7 = 0.25 on its left, H_5 = 0.5 on its right, H_2 = −4 on its left."""
    assert element(2, np.array(TABLE_2)) == 5.25 + 0.25 - 0.5 - 4.0 == 1


@pytest.mark.parametrize("length", [2, 4, 16])
def test_eq_6_undoes_the_transform(length: int) -> None:
    vector = np.random.default_rng(length).standard_normal(length)
    coefficients = np.asarray(haar(vector))
    np.testing.assert_allclose([element(place, coefficients) for place in range(length)], vector)
    np.testing.assert_allclose(inverse_haar(coefficients), vector)


@pytest.mark.parametrize("length", [2, 8])
def test_no_gradient_moves_the_release_further(length: int) -> None:
    """Gradients drawn at random and the sensitivity's own worst, clipped by each rule, in units of their noise."""
    weights = haar_weights(length)
    random = np.random.default_rng(9)
    extremes = [np.array(signs, dtype=float) for signs in product((-1, 0, 1), repeat=length) if any(signs)]
    coefficients = np.asarray(haar(np.concatenate([random.standard_normal((3000, length)), extremes])))
    levels = [np.array([0]), *(np.arange(length >> one, 2 * length >> one) for one in range(1, length.bit_length()))]

    def by_level(bound: str) -> np.ndarray:
        clipped = coefficients.copy()
        for places in levels:
            limit = 1.0 if bound == "C" else 1 / weights[places[0]]
            norm = np.linalg.norm(coefficients[:, places], axis=1, keepdims=True)
            clipped[:, places] = coefficients[:, places] * limit / np.maximum(norm, 1e-300)
        return clipped

    flat = coefficients / np.linalg.norm(coefficients, axis=1, keepdims=True)
    weighted = coefficients / np.linalg.norm(coefficients * weights, axis=1, keepdims=True)
    for found, moved in zip(
        (flat, by_level("C"), by_level("C/W"), weighted), sensitivities(length).values(), strict=True
    ):
        reached = np.linalg.norm(found * weights, axis=1).max()
        assert reached <= moved * (1 + 1e-12)
        assert reached == pytest.approx(moved)


def test_table_of_clipping_rules() -> None:
    rows = clipping_rows()
    assert [row["true multiplier"] for row in rows[:4]] == ["σ/2", "σ/2.828", "σ/1.414", "σ"]
    assert {row["true multiplier"] for row in rows if row["clipped"] == "‖W∘H‖ ≤ C"} == {"σ"}
    assert next(row for row in rows if row["m"] == 8192)["ε of one release, σ = 1"] == "∞"


@pytest.mark.slow
def test_verdicts() -> None:
    found = [judge(claim, NO_RUNS) for claim in SECTION_CLAIMS]
    assert [one.outcome is Outcome.CONFIRMED for one in found] == [True, False, False, True]
    assert len(EXAMPLE) == 8
    assert "multiplier 0.5 σ" in found[3].numbers
    fits = [judge(claim, NO_RUNS) for claim in WAVELET.claims if "one training" in claim.text]
    assert len(fits) == 2
    assert not {one.outcome for one in fits} & {Outcome.CONFIRMED, Outcome.NOT_TESTED}


def test_the_limit_in_closed_form() -> None:
    """ρ = (√(ln 10⁵ + 6.38) − √ln 10⁵)² at σ = 1, and (e^(1/σ²) − 1)/(e − 1) of it elsewhere."""
    log = math.log(1e5)
    rho = (math.sqrt(log + 6.38) - math.sqrt(log)) ** 2
    assert rho == pytest.approx(0.700, abs=5e-4)
    found = limit_epsilons(6.38)
    for sigma, expected in (("1.5", 0.228), ("3", 0.0479)):
        smaller = rho * math.expm1(1 / float(sigma) ** 2) / (math.e - 1)
        assert smaller == pytest.approx(expected, rel=2e-3)
        assert found[sigma] == pytest.approx(smaller + 2 * math.sqrt(smaller * log))
    assert found["1"] == pytest.approx(6.38)
    assert (found["1.5"], found["3"]) == pytest.approx((3.469, 1.533), abs=1e-3)


def test_no_training_from_300_steps_up_has_the_stated_epsilons() -> None:
    for data, ranges in (("mnist", ((3.1, 3.47), (1.25, 1.54))), ("cifar10", ((11.9, 12.6), (4.7, 5.1)))):
        for words, found in all_fits(data):
            assert found["1"] == pytest.approx(EPSILONS[data]["1"], rel=2e-3), words
            for sigma, (low, high) in zip(("1.5", "3"), ranges, strict=True):
                assert low <= found[sigma] <= high, (words, sigma)
    assert len(stated_epsilon_rows()) == 2 * (2 + len(STEP_COUNTS))


def classical_epsilon(sigma: float, rate: float, steps: int) -> float:
    """Abadi et al. and Mironov et al. 2019 at integer orders, min T·RDP + ln(1/δ)/(α − 1): another implementation."""
    best = math.inf
    for order in range(2, 65):
        k = np.arange(order + 1)
        terms = gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1) + (order - k) * math.log1p(-rate)
        moment = logsumexp(terms + k * math.log(rate) + (k * k - k) / (2 * sigma**2))
        best = min(best, (steps * max(float(moment), 0.0) + math.log(1e5)) / (order - 1))
    return best


@pytest.mark.parametrize("steps", [10, 300, 15_000, 9_000_000])
def test_the_classical_conversion_stays_below_its_limit(steps: int) -> None:
    low, high = 1e-6, 0.9
    for _ in range(60):
        rate = math.sqrt(low * high)
        low, high = (rate, high) if classical_epsilon(1.0, rate, steps) < 6.38 else (low, rate)
    limit = limit_epsilons(6.38)
    assert classical_epsilon(1.5, low, steps) < limit["1.5"] < 3.61
    assert classical_epsilon(3.0, low, steps) < limit["3"] + 2e-3 < 1.64


def test_only_a_handful_of_steps_costs_more() -> None:
    """Two steps at q = 0.756 cost 6.38 at σ = 1 and more than 3.61 at σ = 1.5: said on the page."""

    def cost(sigma: float) -> float:
        return composed_epsilon(0.0, ((SampledGaussian(sigma, 0.756), 2),), 1e-5, "rdp")

    assert cost(1.0) == pytest.approx(6.38, abs=0.01)
    assert cost(1.5) > 3.61


def test_a_fit_has_the_rate_that_it_says() -> None:
    rate, found = fitted_epsilons(6.38, 15_000)
    again = composed_epsilon(0.0, ((SampledGaussian(1.5, rate), 15_000),), 1e-5, "rdp")
    assert found["1.5"] == pytest.approx(again)
