"""COTAF and GBMA against the equations of their papers, with P, weights and norms that differ."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.radio.strategies import CLIP, example_links, rounds
from wirelessfl.radio import (
    AirInterface,
    Cotaf,
    ExactStepCalibration,
    ExpectedNorms,
    FullPower,
    Gbma,
    Links,
    MeasuredNorms,
    PowerControl,
    is_peak_limited,
    received_bound,
)
from wirelessfl.radio.conformance import check_power_control

AIR = AirInterface(clip=CLIP, channel_noise_std=0.8, dimension=30)
NORMS = ExpectedNorms((0.3, 0.2, 0.1))
POLICIES: list[PowerControl] = [
    Cotaf(ExpectedNorms((0.3,) * 20), h_min=0.2),
    Cotaf(ExpectedNorms(), fade_threshold=0.1),
    Gbma(ExpectedNorms()),
    Gbma(ExpectedNorms((0.3,) * 20)),
    MeasuredNorms(Cotaf(ExpectedNorms(), h_min=0.2)),
]


@pytest.mark.parametrize("policy", POLICIES)
def test_they_conform(policy: PowerControl) -> None:
    check_power_control(policy)


@given(links=rounds(), h_min=st.floats(1e-3, 5.0), round_index=st.integers(1, 3))
def test_cotaf_sends_what_its_equation_says(links: Links, h_min: float, round_index: int) -> None:
    """What is sent is √p_t (p_i/max p)(h_min/ĥ) Δ above h_min, and the server reads Σ p_i Δ_i from y/√p_t."""
    policy = Cotaf(NORMS, h_min=h_min)
    plan = policy.plan(links, round_index, AIR)
    np.testing.assert_array_equal(plan.silent, np.abs(links.estimate) < h_min)
    heard = links.take(~plan.silent)
    power = links.power_budget.min() / (0.3, 0.2, 0.1)[round_index - 1] ** 2
    relative = heard.weight / links.weight.max()
    gain = policy.transmit(plan, heard).tx_gain
    np.testing.assert_allclose(gain, math.sqrt(power) * relative * h_min / heard.estimate, rtol=1e-12)
    read = heard.estimate * gain / plan.receive_scale
    np.testing.assert_allclose(read, heard.weight + 0j, rtol=1e-12)
    # E‖x‖² <= P for updates of the expected norm, whoever sends.
    energy = (np.abs(gain) * (0.3, 0.2, 0.1)[round_index - 1]) ** 2
    assert np.all(energy <= heard.power_budget * (1 + 1e-9))
    np.testing.assert_allclose(
        received_bound(policy, plan, heard), heard.weight * np.abs(heard.channel / heard.estimate), rtol=1e-12
    )


def test_the_threshold_of_cotaf_comes_from_the_weakest_mean_channel() -> None:
    links = replace(example_links(6), mean_estimate_power=np.array([4.0, 1.0, 0.25, 9.0, 1.0, 1.0]))
    by_share = Cotaf(NORMS, fade_threshold=0.16).plan(links, 1, AIR)
    by_h_min = Cotaf(NORMS, h_min=0.2).plan(links, 1, AIR)
    assert by_share.server_gain == pytest.approx(by_h_min.server_gain)
    np.testing.assert_array_equal(by_share.silent, by_h_min.silent)


@given(links=rounds(), round_index=st.integers(1, 3))
def test_gbma_corrects_the_phase_alone(links: Links, round_index: int) -> None:
    links = replace(links, estimate=links.channel)
    policy = Gbma(NORMS)
    plan = policy.plan(links, round_index, AIR)
    sent = policy.transmit(plan, links)
    power = links.power_budget.min() / (0.3, 0.2, 0.1)[round_index - 1] ** 2
    amplitude = math.sqrt(power) * links.weight / links.weight.max()
    np.testing.assert_allclose(sent.tx_gain, amplitude * np.exp(-1j * np.angle(links.channel)), rtol=1e-9)
    reference = math.sqrt(np.sum(links.weight * links.mean_estimate_power) / np.sum(links.weight))
    read = links.channel * sent.tx_gain / plan.receive_scale
    np.testing.assert_allclose(read, links.weight * np.abs(links.channel) / reference + 0j, rtol=1e-9)
    np.testing.assert_allclose(links.weight / sent.backoff, read.real, rtol=1e-9)


def test_gbma_by_the_clip_keeps_a_peak_and_by_smaller_norms_an_average() -> None:
    links = example_links(7)
    by_clip, by_norm = Gbma(ExpectedNorms()), Gbma(NORMS)
    assert is_peak_limited(by_clip) and not is_peak_limited(by_norm)
    gains = [np.abs(policy.transmit(policy.plan(links, 1, AIR), links).tx_gain) * CLIP for policy in (by_clip, by_norm)]
    assert np.max(gains[0] ** 2) == pytest.approx(links.power_budget.min())
    np.testing.assert_allclose(gains[1], gains[0] * CLIP / 0.3)


def test_gbma_follows_a_lower_gain() -> None:
    links, policy = example_links(7), Gbma(NORMS)
    plan = policy.plan(links, 1, AIR)
    quiet = plan.with_server_gain(plan.server_gain / 3)
    np.testing.assert_allclose(policy.transmit(quiet, links).tx_gain * 3, policy.transmit(plan, links).tx_gain)
    np.testing.assert_allclose(received_bound(policy, quiet, links), received_bound(policy, plan, links))


def test_measured_norms_put_the_largest_update_at_the_budget() -> None:
    links = example_links(5)
    policy = MeasuredNorms(Cotaf(ExpectedNorms(), h_min=1e-9))
    norms = np.array([0.01, 0.05, 0.02, 0.03, 0.04])
    plan = policy.settled(policy.plan(links, 7, AIR), norms)
    given = Cotaf(ExpectedNorms((0.05,)), h_min=1e-9)
    expected = given.transmit(given.plan(links, 1, AIR), links).tx_gain
    np.testing.assert_allclose(policy.transmit(plan, links, norms).tx_gain, expected, rtol=1e-12)


@pytest.mark.parametrize("norms", [[], [0.0, 0.0], [np.nan, 1.0], [np.inf]])
def test_without_a_norm_to_scale_by_the_plan_stays(norms: list[float]) -> None:
    policy = MeasuredNorms(Gbma(ExpectedNorms()))
    plan = policy.plan(example_links(2), 1, AIR)
    assert policy.settled(plan, np.array(norms)) is plan


@pytest.mark.parametrize("policy", [FullPower(), Gbma(ExpectedNorms())])
def test_who_is_heard_louder_than_its_weight_costs_noise(policy: PowerControl) -> None:
    """One sample moves y/α_u by |h α| τ/(α_u n_i), whatever the policy calls its back-off."""
    channel = 2 * example_links(6).channel
    links = replace(example_links(6), channel=channel, estimate=channel)
    plan = policy.plan(links, 1, AIR)
    calibration = ExactStepCalibration(rounds=4, gdp_mu=0.5, reach=1.0, total_samples=600, batch_size=1000)
    shares = received_bound(policy, plan, links) / (links.weight * 600)
    assert np.any(received_bound(policy, plan, links) > links.weight)
    found = calibration.required_noise_std(policy, plan, links)
    assert found == pytest.approx(max(shares.max(), 1 / 600) * 2 / 0.5)


@pytest.mark.parametrize("norms", [(0.0,), (1.0, -1.0), (np.nan,), (np.inf,)])
def test_bad_norms_are_refused(norms: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="expected norms must be positive"):
        ExpectedNorms(norms)


@pytest.mark.parametrize("round_index", [0, 4])
def test_a_round_without_a_norm_is_refused(round_index: int) -> None:
    with pytest.raises(ValueError, match="expected norms for 3 rounds"):
        Cotaf(NORMS, h_min=0.1).plan(example_links(2), round_index, AIR)


@pytest.mark.parametrize("options", [{}, {"h_min": 0.0}, {"h_min": np.nan}, {"fade_threshold": np.inf}])
def test_cotaf_needs_a_threshold(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be positive and finite"):
        Cotaf(NORMS, **options)


@pytest.mark.parametrize("policy", POLICIES)
def test_unlimited_power_is_refused(policy: PowerControl) -> None:
    with pytest.raises(ValueError, match="finite power budget"):
        policy.plan(replace(example_links(2), power_budget=np.full(2, np.inf)), 1, AIR)


@pytest.mark.parametrize("policy", POLICIES)
def test_nobody_to_plan_for_is_no_error(policy: PowerControl) -> None:
    assert 0 < policy.plan(example_links(3).take(np.array([], dtype=np.int64)), 1, AIR).server_gain < np.inf
