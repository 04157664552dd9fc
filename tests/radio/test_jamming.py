"""Jamming: the goldens, the theorems written out a second time, and what two quadratures give away."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from tests.statistics import assert_mean, assert_probability, assert_variance_gaussian, shifted
from wirelessfl.privacy import noise_std_theorem
from wirelessfl.radio import (
    Rayleigh,
    accounted_noise_std,
    effective_noise_std,
    jammer_energy,
    jammer_gain_for_noise,
    jammer_gain_limit,
    received_jamming_std,
    required_noise_std_exact,
    server_gain_for_noise,
    shortfall_probability,
)
from wirelessfl.streams import Streams

targets = st.floats(0.05, 10.0)
gains = st.floats(0.1, 1e4)
channels = st.builds(lambda r, t: r * np.exp(1j * t), st.floats(1e-2, 10), st.floats(-np.pi, np.pi))


def jammer_gain_theorem(
    epsilon: float,
    delta: float,
    rounds: int,
    samples: int,
    server_gain: float,
    channel_noise_std: float,
    jammer_channel: complex = 1.0,
    margin: float = 1.0,
) -> float:
    """α_CJ of Theorems 2 and 4, from the noise that ``wirelessfl.privacy`` says is needed."""
    needed = noise_std_theorem(epsilon, delta, rounds, samples)
    return jammer_gain_for_noise(needed, server_gain, channel_noise_std, jammer_channel, margin)


def test_the_golden_jammer() -> None:
    """PRIVACY.md: ε = 1, δ = 1e-5, M = 80, |D| = 5000, α_u = 676, σ_c = 1, |h| = 1."""
    assert jammer_gain_theorem(1.0, 1e-5, 80, 5000, 676.0, 1.0) == pytest.approx(5.8411, abs=5e-5)
    assert jammer_gain_theorem(1.0, 1e-5, 80, 5000, 676.0, 1.0, margin=7.0) == pytest.approx(40.888, abs=5e-4)


@given(epsilon=targets, server_gain=gains, channel=channels)
def test_the_theorem_as_the_paper_writes_it(epsilon: float, server_gain: float, channel: complex) -> None:
    delta, rounds, samples, noise = 1e-5, 40, 3000, 1.2
    log_term = np.log(1 / delta)
    a = -log_term + np.sqrt(log_term**2 + epsilon * log_term)
    argument = rounds * log_term / (2 * samples**2 * a**2) - noise**2 / server_gain**2
    expected = server_gain / abs(channel) * np.sqrt(max(argument, 0.0))
    found = jammer_gain_theorem(epsilon, delta, rounds, samples, server_gain, noise, channel)
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-6)


@given(epsilon=targets, server_gain=gains, channel=channels)
def test_the_theorems_noise_meets_its_epsilon(epsilon: float, server_gain: float, channel: complex) -> None:
    """Theorem 3 evaluated on the noise that Theorem 4 made: ε exactly where jamming was needed, less where not."""
    delta, rounds, samples = 1e-5, 40, 3000
    gain = jammer_gain_theorem(epsilon, delta, rounds, samples, server_gain, 1.0, channel)
    noise = effective_noise_std(gain, channel, server_gain, 1.0)
    rho = rounds / (2 * samples**2 * noise**2)
    published = rho + 2 * np.sqrt(rho * np.log(1 / delta))
    assert published <= epsilon * (1 + 1e-9)
    if gain > 0:
        assert published == pytest.approx(epsilon)


def test_no_jamming_where_the_channel_noise_is_enough() -> None:
    server_gain = server_gain_for_noise(noise_std_theorem(1.0, 1e-5, 80, 5000), 1.0)
    assert jammer_gain_theorem(1.0, 1e-5, 80, 5000, server_gain * 0.999, 1.0, margin=7.0) == 0.0
    assert jammer_gain_theorem(1.0, 1e-5, 80, 5000, server_gain * 1.001, 1.0, margin=7.0) > 0.0


@given(sensitivity=st.floats(1e-3, 10), rounds=st.integers(1, 200), mu=st.floats(0.05, 10), server_gain=gains)
def test_exact_calibration_composes_to_the_budget(
    sensitivity: float, rounds: int, mu: float, server_gain: float
) -> None:
    """μ² = Σ (X/σ_m)² over the rounds is μ*² where the jammer is needed, and below it elsewhere."""
    required = required_noise_std_exact(sensitivity, rounds, mu)
    gain = jammer_gain_for_noise(required, server_gain, 1.0, 0.5j)
    composed = np.sqrt(
        sum((sensitivity / effective_noise_std(gain, 0.5j, server_gain, 1.0)) ** 2 for _ in range(rounds))
    )
    assert composed <= mu * (1 + 1e-9)
    if gain > 0:
        assert composed == pytest.approx(mu)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The μ whose Gaussian trade-off curve passes through (ε, δ) (Balle and Wang 2018), by bisection."""

    def excess(mu: float) -> float:
        tail = np.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu)
        return float(stats.norm.cdf(mu / 2 - epsilon / mu) - tail - delta)

    return float(optimize.brentq(excess, 1e-2, 10.0))


def test_exact_at_the_papers_sensitivity_needs_less_than_the_theorem() -> None:
    """The conversion of the theorem is loose: the exact curve allows a larger μ than √(2ρ)."""
    required = required_noise_std_exact(1 / 5000, 80, gaussian_mu(1.0, 1e-5))
    gain = jammer_gain_for_noise(required, 676.0, 1.0)
    assert 0 < gain < jammer_gain_theorem(1.0, 1e-5, 80, 5000, 676.0, 1.0)


def test_the_baseline_without_jammer_has_the_same_noise() -> None:
    """α_u = σ_c/σ_target; for the theorem's target this is the automatic server gain."""
    target = noise_std_theorem(1.0, 1e-5, 80, 5000)
    lowered = server_gain_for_noise(target, 1.0)
    assert effective_noise_std(0.0, 1.0, lowered, 1.0) == pytest.approx(target)
    log_term = np.log(1e5)  # α_u = |D| σ_c √(2ρ/M), Theorem 1 with s = 1
    rho = (-log_term + np.sqrt(log_term**2 + log_term)) ** 2 / log_term
    assert lowered == pytest.approx(5000 * np.sqrt(2 * rho / 80), rel=1e-9)


@given(gain=st.floats(0, 100), channel=channels, target=st.floats(1e-3, 10))
def test_lowering_the_gain_keeps_the_noise_that_was_asked_for(gain: float, channel: complex, target: float) -> None:
    server_gain = server_gain_for_noise(target, 1.0, gain, channel)
    assert effective_noise_std(gain, channel, server_gain, 1.0) == pytest.approx(target)


def test_energy_of_circular_and_real_noise() -> None:
    """Averaged over drawn waveforms: 2dα² and dα²."""
    dimension, gain, trials = 50, 1.7, 4000
    drawn = Streams(shifted(4)).nodes("jammer", 0, np.arange(trials)).normal(2 * dimension)
    circular = ((gain * drawn) ** 2).sum(axis=1)
    real = ((gain * drawn[:, :dimension]) ** 2).sum(axis=1)
    assert_mean(circular, jammer_energy(gain, dimension, "complex"), std=gain**2 * np.sqrt(4 * dimension))
    assert_mean(real, jammer_energy(gain, dimension, "real"), std=gain**2 * np.sqrt(2 * dimension))
    assert jammer_energy(gain, dimension, "complex") == pytest.approx(2 * dimension * gain**2)


@given(budget=st.floats(1e-3, 1e6), symbols=st.integers(1, 10**6), noise=st.sampled_from(["complex", "real"]))
def test_the_gain_limit_spends_the_whole_budget(budget: float, symbols: int, noise: str) -> None:
    limit = jammer_gain_limit(budget, symbols, noise)  # type: ignore[arg-type]
    assert jammer_energy(limit, symbols, noise) == pytest.approx(budget)  # type: ignore[arg-type]


def test_an_unlimited_jammer_has_no_limit() -> None:
    assert jammer_gain_limit(np.inf, 10, "complex") == np.inf
    assert shortfall_probability(5.0, np.inf) == 0.0


def test_shortfall_over_rayleigh_channels() -> None:
    """How often the energy needed at the drawn channel exceeds the budget, against the closed form."""
    trials, path_gain, budget, symbols = 100_000, 0.5, 300.0, 20
    channel = np.sqrt(path_gain) * Rayleigh().draw(Streams(shifted(8)).nodes("jammer", 0, np.arange(trials)))
    needed = [jammer_energy(jammer_gain_for_noise(0.05, 30.0, 1.0, h), symbols, "complex") for h in channel]
    at_unit_channel = jammer_energy(jammer_gain_for_noise(0.05, 30.0, 1.0), symbols, "complex")
    probability = shortfall_probability(at_unit_channel, budget, path_gain)
    assert 0.1 < probability < 0.9
    assert_probability(int(np.sum(np.array(needed) > budget)), trials, probability)


def best_estimate_noise(gain: float, channel: complex, noise_std: float, theta: float) -> float:
    """1/sqrt(v' Σ^-1 v) for the covariance of both quadratures, v the signal's direction (the real axis)."""
    line = np.array([np.cos(theta), np.sin(theta)])
    covariance = noise_std**2 * np.eye(2) + (gain * abs(channel)) ** 2 * np.outer(line, line)
    return float(1 / np.sqrt(np.linalg.inv(covariance)[0, 0]))


@given(gain=st.floats(0, 20), channel=channels, theta=st.floats(-np.pi, np.pi), noise_std=st.floats(0.1, 5))
def test_real_jamming_counts_as_much_as_the_best_linear_estimator_leaves(
    gain: float, channel: complex, theta: float, noise_std: float
) -> None:
    found = accounted_noise_std(gain, channel, 2.0, noise_std, "real", theta)
    assert found == pytest.approx(best_estimate_noise(gain, channel, noise_std, theta) / 2.0, rel=1e-6)


@given(gain=st.floats(0, 20), channel=channels, theta=st.floats(-np.pi, np.pi))
def test_circular_jamming_counts_in_full(gain: float, channel: complex, theta: float) -> None:
    found = accounted_noise_std(gain, channel, 3.0, 1.0, "complex", theta)
    assert found == pytest.approx(effective_noise_std(gain, channel, 3.0, 1.0))


def test_the_formula_of_the_radio_page() -> None:
    amplitude, sine = 4.0 * 0.5, np.sin(0.3)
    expected = np.sqrt((1 + amplitude**2) / (1 + amplitude**2 * sine**2)) / 676
    assert accounted_noise_std(4.0, 0.5j, 676.0, 1.0, "real", 0.3) == pytest.approx(expected)


def test_each_client_has_its_own_angle() -> None:
    theta = np.array([0.0, 0.5, np.pi / 2])
    found = accounted_noise_std(4.0, 0.5j, 1.0, 1.0, "real", theta)
    assert found.shape == (3,)
    assert found[0] == pytest.approx(np.sqrt(5.0))
    assert found[2] == pytest.approx(1.0)


def test_a_turned_client_is_worse_off_than_the_jammers_phase_error_alone_says() -> None:
    """A client whose own residual phase is a right angle to the jamming gets no protection at all from real noise."""
    covariance = np.eye(2) + 9.0 * np.outer([1, 0], [1, 0])
    client = np.array([0.0, 1.0])
    left = 1 / np.sqrt(client @ np.linalg.inv(covariance) @ client)
    assert left == pytest.approx(float(accounted_noise_std(3.0, 1.0, 1.0, 1.0, "real", np.pi / 2)))
    assert left < float(accounted_noise_std(3.0, 1.0, 1.0, 1.0, "real", 0.0))


def test_without_channel_noise_real_jamming_is_cancelled_by_any_phase_error() -> None:
    assert accounted_noise_std(2.0, 1.0, 1.0, 0.0, "real", 0.1) == 0.0
    assert accounted_noise_std(2.0, 1.0, 1.0, 0.0, "real", 0.0) == pytest.approx(2.0)
    assert accounted_noise_std(2.0, 1.0, 1.0, 0.0, "complex", 0.1) == pytest.approx(2.0)


@pytest.mark.parametrize(("noise", "expected"), [("complex", 1.5), ("real", 1.5 * np.cos(0.4))])
def test_what_arrives_in_phase(noise: str, expected: float) -> None:
    """The waveform itself, turned by the phase error, and its real part."""
    drawn = Streams(shifted(6)).nodes("jammer", 0, np.arange(50_000)).normal(2)
    symbols = 3.0 * (drawn[:, 0] + (1j * drawn[:, 1] if noise == "complex" else 0))
    received = (0.5 * np.exp(0.4j) * symbols).real
    std = received_jamming_std(3.0, 0.5j, noise, 0.4)  # type: ignore[arg-type]
    assert std == pytest.approx(expected)
    assert_variance_gaussian(received, float(std) ** 2)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="jammer_channel"):
        jammer_gain_for_noise(1.0, 1.0, 1.0, 0.0)
    with pytest.raises(ValueError, match="required_noise_std"):
        jammer_gain_for_noise(np.nan, 1.0, 1.0)
    with pytest.raises(ValueError, match="no noise"):
        required_noise_std_exact(1.0, 10, 0.0)
    with pytest.raises(ValueError, match="no noise"):
        required_noise_std_exact(np.nan, 10, 1.0)
    with pytest.raises(ValueError, match="rounds"):
        noise_std_theorem(1.0, 1e-5, 0, 10)
    with pytest.raises(ValueError, match="noise must be"):
        jammer_energy(1.0, 10, "pink")  # type: ignore[arg-type]
