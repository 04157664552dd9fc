"""Full power, truncated and weakest inversion, and minimum MSE against their definitions and brute force."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from tests.radio.strategies import CLIP, example_links, rounds
from tests.statistics import assert_probability, shifted
from wirelessfl.radio import (
    AirInterface,
    FullPower,
    Links,
    MinimumMse,
    PowerControl,
    Rayleigh,
    TruncatedInversion,
    WeakestInversion,
    received_bound,
)
from wirelessfl.radio.inversion import optimal_server_gain
from wirelessfl.streams import Streams

AIR = AirInterface(clip=CLIP, channel_noise_std=0.8, dimension=30)
POLICIES: list[PowerControl] = [FullPower(), TruncatedInversion(0.2), WeakestInversion(), MinimumMse()]


def received_weights(policy: PowerControl, links: Links) -> np.ndarray:
    """What the server reads as weight of each Δ_i/τ, under perfect CSI, zero for the silent."""
    plan = policy.plan(links, 0, AIR)
    weights = np.zeros(len(links))
    heard = links.take(~plan.silent)
    arrived = heard.channel * policy.transmit(plan, heard, None).tx_gain * CLIP / plan.server_gain
    np.testing.assert_allclose(arrived.imag, 0.0, atol=1e-12)
    weights[~plan.silent] = arrived.real
    return weights


@pytest.mark.parametrize("policy", POLICIES)
def test_the_clip_is_undone(policy: PowerControl) -> None:
    plan = policy.plan(example_links(5), 0, AIR)
    assert plan.receive_scale == pytest.approx(plan.server_gain / CLIP)


@given(links=rounds())
def test_full_power_sends_every_joule_and_keeps_the_sum_of_weights(links: Links) -> None:
    links = replace(links, estimate=links.channel)
    policy = FullPower()
    sent = policy.transmit(policy.plan(links, 0, AIR), links)
    np.testing.assert_allclose((np.abs(sent.tx_gain) * CLIP) ** 2, links.power_budget)
    weights = received_weights(policy, links)
    assert weights.sum() == pytest.approx(links.weight.sum())
    np.testing.assert_allclose(
        weights / np.abs(links.channel) / np.sqrt(links.power_budget),
        weights.sum() / np.sum(np.abs(links.channel) * np.sqrt(links.power_budget)),
    )
    np.testing.assert_allclose(sent.backoff, links.weight / weights)


@given(links=rounds(), threshold=st.floats(0.01, 2.0))
def test_truncated_inversion_is_exact_for_all_who_send(links: Links, threshold: float) -> None:
    links = replace(links, estimate=links.channel)
    policy = TruncatedInversion(threshold)
    weights = received_weights(policy, links)
    silent = np.abs(links.estimate) ** 2 < threshold * links.mean_estimate_power
    np.testing.assert_array_equal(weights == 0, silent)
    np.testing.assert_allclose(weights[~silent], links.weight[~silent])
    at_threshold = np.sqrt(threshold * links.mean_estimate_power * links.power_budget) / links.weight
    assert policy.plan(links, 0, AIR).server_gain == pytest.approx(at_threshold.min())


def test_truncated_inversion_is_silent_as_often_as_a_rayleigh_channel_fades() -> None:
    count, threshold = 100_000, 0.15
    beta = np.linspace(0.1, 10, count)
    channel = np.sqrt(beta) * Rayleigh().draw(Streams(shifted(41)).nodes("fading", 0, np.arange(count)))
    ones = np.ones(count)
    plan = TruncatedInversion(threshold).plan(Links(channel, channel, ones / count, ones, beta, beta), 0, AIR)
    assert_probability(int(plan.silent.sum()), count, -np.expm1(-threshold))


def test_the_scale_of_truncated_inversion_does_not_follow_the_fading() -> None:
    links = example_links(9)
    faded = replace(links, estimate=links.estimate * 0.3)
    policy = TruncatedInversion(0.1)
    assert policy.plan(links, 0, AIR).server_gain == policy.plan(faded, 0, AIR).server_gain


@given(links=rounds())
def test_weakest_inversion_is_exact_and_its_weakest_client_at_full_power(links: Links) -> None:
    links = replace(links, estimate=links.channel)
    policy = WeakestInversion()
    plan = policy.plan(links, 0, AIR)
    np.testing.assert_allclose(received_weights(policy, links), links.weight)
    energy = (np.abs(policy.transmit(plan, links).tx_gain) * CLIP) ** 2
    assert np.max(energy / links.power_budget) == pytest.approx(1.0)
    precoder = np.min(links.power_budget * np.abs(links.channel) ** 2 / (links.weight**2 * CLIP**2))
    assert (plan.server_gain / CLIP) ** 2 == pytest.approx(precoder)


def test_weakest_inversion_ignores_who_is_below_the_threshold() -> None:
    links = replace(example_links(4), estimate=np.array([1.0, 1e-6, 0.5j, -2.0]))
    plan = WeakestInversion(0.01).plan(links, 0, AIR)
    assert plan.silent.tolist() == [False, True, False, False]
    assert plan.server_gain == WeakestInversion().plan(links.take(~plan.silent), 0, AIR).server_gain


def mean_squared_error(scale: float, amplitude: np.ndarray, weight: np.ndarray, noise_energy: float) -> float:
    """Σ (b_i u − p_i)² + d σ² u² at the best amplitudes b_i <= g_i for the receiver's 1/α_u = u."""
    sent = np.minimum(amplitude, weight / scale)
    return float(np.sum((sent * scale - weight) ** 2) + noise_energy * scale**2)


@given(links=rounds(), noise_energy=st.floats(1e-3, 1e3))
def test_minimum_mse_beats_every_other_gain(links: Links, noise_energy: float) -> None:
    """The error is convex in 1/α_u: a bounded scalar search is an independent optimum."""
    amplitude = np.abs(links.estimate) * np.sqrt(links.power_budget)
    gain = optimal_server_gain(amplitude, links.weight, noise_energy)
    found = mean_squared_error(1 / gain, amplitude, links.weight, noise_energy)
    upper = float(np.max(links.weight / amplitude))
    search = optimize.minimize_scalar(
        mean_squared_error, bounds=(0, upper), args=(amplitude, links.weight, noise_energy), options={"xatol": 1e-12}
    )
    assert found <= search.fun * (1 + 1e-9)


def test_minimum_mse_plans_with_the_noise_of_all_coordinates() -> None:
    links = example_links(6)
    amplitude = np.abs(links.estimate) * np.sqrt(links.power_budget)
    expected = optimal_server_gain(amplitude, links.weight, 30 * 0.8**2)
    assert MinimumMse().plan(links, 0, AIR).server_gain == expected


def test_minimum_mse_without_noise_is_weakest_inversion() -> None:
    links = example_links(7)
    quiet = AirInterface(CLIP, 0.0, 30)
    noiseless = MinimumMse().plan(links, 0, quiet).server_gain
    assert noiseless == pytest.approx(WeakestInversion().plan(links, 0, quiet).server_gain)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_received_bound_is_that_of_the_gains(policy: PowerControl) -> None:
    links = example_links(8)
    plan = policy.plan(links, 0, AIR)
    heard = links.take(~plan.silent)
    sent = policy.transmit(plan, heard, None)
    expected = [abs(heard.channel[i] * sent.tx_gain[i]) * CLIP / plan.server_gain for i in range(len(heard))]
    np.testing.assert_allclose(received_bound(policy, plan, heard), expected)


@pytest.mark.parametrize("policy", POLICIES)
def test_nobody_to_plan_for_is_no_error(policy: PowerControl) -> None:
    plan = policy.plan(example_links(3).take(np.array([], dtype=np.int64)), 0, AIR)
    assert 0 < plan.server_gain < np.inf


@pytest.mark.parametrize("policy", POLICIES)
def test_unlimited_power_is_refused(policy: PowerControl) -> None:
    with pytest.raises(ValueError, match="finite power budget"):
        policy.plan(replace(example_links(2), power_budget=np.full(2, np.inf)), 0, AIR)


@pytest.mark.parametrize("threshold", [0.0, -1.0, np.nan, np.inf])
def test_bad_thresholds_are_refused(threshold: float) -> None:
    with pytest.raises(ValueError, match="fade_threshold"):
        TruncatedInversion(threshold)
    if threshold != 0:
        with pytest.raises(ValueError, match="fade_threshold"):
            WeakestInversion(threshold)
