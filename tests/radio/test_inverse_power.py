"""The mean cost of inverting a channel above a threshold, against closed forms, other quadratures and draws."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, special, stats

from tests.radio.strategies import CLIP, example_links
from tests.statistics import assert_mean, shifted
from wirelessfl.radio import (
    AirInterface,
    FadingModel,
    Links,
    Nakagami,
    Rayleigh,
    Recorded,
    Rician,
    Static,
    TruncatedInversion,
    estimate_channel,
    mean_estimate_power,
    mean_inverse_power,
    received_bound,
)
from wirelessfl.radio.conformance import check_power_control
from wirelessfl.streams import Streams

AIR = AirInterface(clip=CLIP, channel_noise_std=0.8, dimension=30)


def test_rayleigh_is_the_exponential_integral() -> None:
    assert mean_inverse_power(Rayleigh(), 0.1) == pytest.approx(1.8229, abs=5e-5)
    by_parts = integrate.quad(lambda x: math.exp(-x) / x, 0.1, np.inf)[0]
    assert mean_inverse_power(Rayleigh(), 0.1, 0.7, "mmse") == pytest.approx(by_parts, rel=1e-9)


@pytest.mark.parametrize("threshold", [1e-6, 0.01, 0.1, 0.9, 3.0])
def test_laws_that_are_rayleigh_agree_with_it(threshold: float) -> None:
    expected = float(special.exp1(threshold))
    assert mean_inverse_power(Rician(0.0), threshold) == pytest.approx(expected, rel=1e-9)
    assert mean_inverse_power(Nakagami(1.0), threshold) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("shape", [1.5, 2.0, 7.0, 300.0])
@pytest.mark.parametrize("threshold", [0.01, 0.5, 1.2])
def test_nakagami_is_an_incomplete_gamma_function(shape: float, threshold: float) -> None:
    """∫_g^∞ x^{−1} m^m x^{m−1} e^{−mx}/Γ(m) dx = m/(m − 1) Q(m − 1, mg)."""
    expected = shape / (shape - 1) * special.gammaincc(shape - 1, shape * threshold)
    assert mean_inverse_power(Nakagami(shape), threshold) == pytest.approx(expected, rel=1e-8)


def test_nakagami_below_one_follows_the_recurrence_of_the_gamma_function() -> None:
    """Γ(m − 1, x) = (Γ(m, x) − x^{m−1} e^{−x})/(m − 1)."""
    shape, threshold = 0.5, 0.2
    x = shape * threshold
    upper = special.gammaincc(shape, x) * special.gamma(shape)
    expected = shape * (upper - x ** (shape - 1) * math.exp(-x)) / (shape - 1) / special.gamma(shape)
    assert mean_inverse_power(Nakagami(shape), threshold) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("factor", [0.5, 4.0, 40.0])
@pytest.mark.parametrize("threshold", [0.02, 0.6, 1.1])
def test_rician_against_the_noncentral_chi_squared_law(factor: float, threshold: float) -> None:
    """2 (K + 1) X is noncentral χ² with 2 degrees of freedom and noncentrality 2K."""
    law = stats.ncx2(2, 2 * factor, scale=1 / (2 * (factor + 1)))
    expected = integrate.quad(lambda x: law.pdf(x) / x, threshold, law.isf(1e-14), limit=500, epsabs=1e-12)[0]
    assert mean_inverse_power(Rician(factor), threshold) == pytest.approx(expected, rel=1e-7)


def test_without_fading_nothing_is_averaged() -> None:
    assert mean_inverse_power(Static(), 0.3) == 1.0
    assert mean_inverse_power(Static(), 1.0) == 1.0
    assert mean_inverse_power(Static(), 1.0001) == 0.0
    assert mean_inverse_power(Rician(1e12), 0.3) == pytest.approx(1.0, rel=1e-6)


def test_recorded_gains_give_the_mean_of_the_node_that_costs_most() -> None:
    gains = np.array([[np.nan, np.nan, np.nan], [1.0, 2.0, np.nan], [0.1j, 1.0, np.nan], [0.5, np.nan, np.nan]])
    expected = (1.0 + 0.0 + 4.0) / 3
    assert mean_inverse_power(Recorded(gains.astype(np.complex128)), 0.2) == pytest.approx(expected)


LAWS: list[tuple[FadingModel, float, str]] = [
    (Rayleigh(), 0.0, "ls"),
    (Rayleigh(), 0.4, "mmse"),
    (Rician(4.0), 0.0, "ls"),
    (Rician(4.0), 0.5, "ls"),
    (Rician(4.0), 0.5, "mmse"),
    (Static(), 0.3, "ls"),
    (Nakagami(2.0), 0.0, "ls"),
]


@pytest.mark.parametrize(("law", "error_std", "estimator"), LAWS)
def test_average_power_is_the_budget_over_the_fading(law: FadingModel, error_std: float, estimator: str) -> None:
    """E‖x‖² = P at ‖Δ‖ = τ, by drawing channels and estimates as the simulator does."""
    count, threshold, budget = 200_000, 0.1, 3.0
    streams, nodes = Streams(shifted(5)), np.arange(count)
    beta = np.geomspace(1e-3, 1e3, count)
    drawn = streams.nodes("fading", 1, nodes)
    specular = law.specular(drawn) if hasattr(law, "specular") else np.zeros(count)
    channel = np.sqrt(beta) * law.draw(streams.nodes("fading", 1, nodes))
    error = streams.nodes("error", 1, nodes)
    estimate = estimate_channel(channel, beta, error_std, estimator, error, specular)  # type: ignore[arg-type]
    known = np.abs(specular) ** 2
    power = mean_estimate_power(beta, error_std, estimator, known)  # type: ignore[arg-type]
    policy = TruncatedInversion(threshold, mean_inverse_power(law, threshold, error_std, estimator))  # type: ignore[arg-type]
    # With p_i in proportion to sqrt(E|ĥ_i|²) all clients can afford the same α_u.
    weight = np.sqrt(power) / np.sqrt(power).sum()
    links = Links(channel, estimate, weight, np.full(count, budget), beta, power)
    plan = policy.plan(links, 1, AIR)
    energy = np.zeros(count)
    heard = links.take(~plan.silent)
    energy[~plan.silent] = (np.abs(policy.transmit(plan, heard).tx_gain) * CLIP) ** 2
    assert_mean(energy, budget, float(energy.std()))
    assert energy.max() > 1.5 * budget


def test_average_power_is_worth_seven_decibels_at_a_tenth() -> None:
    """10 log10(1/(g E₁(g))) = 7.39 dB at g = 0.1."""
    links = example_links(9)
    peak = TruncatedInversion(0.1).plan(links, 1, AIR).server_gain
    average = TruncatedInversion(0.1, mean_inverse_power(Rayleigh(), 0.1)).plan(links, 1, AIR).server_gain
    assert 20 * math.log10(average / peak) == pytest.approx(7.39, abs=0.005)
    formula = np.min(links.power_budget * links.mean_estimate_power / (links.weight**2 * special.exp1(0.1)))
    assert average**2 == pytest.approx(formula)


def test_nothing_is_clamped_under_an_average_limit() -> None:
    links = replace(example_links(9), estimate=example_links(9).channel)
    policy = TruncatedInversion(0.1, mean_inverse_power(Rayleigh(), 0.1))
    plan = policy.plan(links, 1, AIR)
    heard = links.take(~plan.silent)
    np.testing.assert_allclose(received_bound(policy, plan, heard), heard.weight)
    np.testing.assert_array_equal(policy.transmit(plan, heard).backoff, 1.0)
    check_power_control(policy)


@pytest.mark.parametrize("threshold", [0.0, -1.0, np.nan, np.inf])
def test_a_threshold_of_zero_has_no_finite_mean(threshold: float) -> None:
    with pytest.raises(ValueError, match="threshold must be positive"):
        mean_inverse_power(Rayleigh(), threshold)


@pytest.mark.parametrize("law", [Nakagami(2.0), Recorded(np.ones((2, 1), dtype=np.complex128))])
def test_estimates_of_unknown_law_are_refused(law: FadingModel) -> None:
    with pytest.raises(ValueError, match="no known law"):
        mean_inverse_power(law, 0.1, 0.2)
    with pytest.raises(ValueError, match="mean_inverse_power"):
        TruncatedInversion(0.1, 0.0)
