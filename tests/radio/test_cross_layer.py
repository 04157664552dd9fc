"""Cross-layer power control against its formulas, and the power constraint as a property."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.radio.strategies import CLIP, example_links, rounds
from wirelessfl.privacy import noise_std_theorem
from wirelessfl.radio import (
    AirInterface,
    CrossLayer,
    Links,
    PowerControl,
    clamped_inversion,
    received_bound,
    server_gain_for_noise,
    server_gain_for_received_limit,
)

AIR = AirInterface(clip=CLIP, channel_noise_std=1.0, dimension=100)
gains = st.floats(1e-3, 1e4)
ROUNDING = 1 + 1e-12


def test_the_gain_is_the_formula_one_client_at_a_time() -> None:
    links = example_links(20)
    policy = CrossLayer(server_gain=10.0)
    sent = policy.transmit(policy.plan(links, 0, AIR), links)
    assert 0 < np.sum(sent.backoff > 1) < 20
    for i in range(20):
        magnitude, weight, budget = abs(links.estimate[i]), links.weight[i], links.power_budget[i]
        backoff = max(1.0, 10.0 * weight / (magnitude * np.sqrt(budget)))
        assert sent.backoff[i] == pytest.approx(backoff)
        assert sent.tx_gain[i] == pytest.approx(10.0 * weight / (links.estimate[i] * CLIP * backoff))


def test_actual_backoff_puts_the_realised_norm_inside() -> None:
    links = example_links(20)
    norms = np.linspace(0, CLIP, 20)
    policy = CrossLayer(server_gain=50.0, backoff="actual")
    sent = policy.transmit(policy.plan(links, 0, AIR), links, norms)
    for i in range(20):
        fill = norms[i] / CLIP
        backoff = max(1.0, 50.0 * links.weight[i] * fill / (abs(links.estimate[i]) * np.sqrt(links.power_budget[i])))
        assert sent.backoff[i] == pytest.approx(backoff)
        assert sent.tx_gain[i] == pytest.approx(50.0 * links.weight[i] / (links.estimate[i] * CLIP * backoff))


@given(links=rounds(), server_gain=gains, backoff=st.sampled_from(["bound", "actual"]), fill=st.floats(0, 1))
def test_the_power_budget_is_kept(links: Links, server_gain: float, backoff: str, fill: float) -> None:
    policy = CrossLayer(server_gain, backoff)  # type: ignore[arg-type]
    norms = np.full(len(links), fill * CLIP)
    sent = policy.transmit(policy.plan(links, 0, AIR), links, norms)
    assert np.all((np.abs(sent.tx_gain) * norms) ** 2 <= links.power_budget * ROUNDING)
    assert np.all(sent.backoff >= 1)


@given(links=rounds(), server_gain=gains)
def test_a_client_backs_off_only_at_full_power(links: Links, server_gain: float) -> None:
    sent = clamped_inversion(CrossLayer(server_gain).plan(links, 0, AIR), links)
    energy = (np.abs(sent.tx_gain) * CLIP) ** 2
    np.testing.assert_allclose(energy[sent.backoff > 1], links.power_budget[sent.backoff > 1])


@given(links=rounds(), server_gain=gains, backoff=st.sampled_from(["bound", "actual"]))
def test_the_received_bound_is_the_papers(links: Links, server_gain: float, backoff: str) -> None:
    """R_i = min(p_i, |ĥ_i| sqrt(P_i)/α_u) |h_i/ĥ_i| under either back-off."""
    policy = CrossLayer(server_gain, backoff)  # type: ignore[arg-type]
    magnitude = np.abs(links.estimate)
    expected = np.minimum(links.weight, magnitude * np.sqrt(links.power_budget) / server_gain)
    expected = expected * np.abs(links.channel / links.estimate)
    np.testing.assert_allclose(received_bound(policy, policy.plan(links, 0, AIR), links), expected)


@given(links=rounds(), server_gain=gains, fill=st.floats(0, 1), backoff=st.sampled_from(["bound", "actual"]))
def test_no_update_arrives_above_the_received_bound(
    links: Links, server_gain: float, fill: float, backoff: str
) -> None:
    policy = CrossLayer(server_gain, backoff)  # type: ignore[arg-type]
    plan = policy.plan(links, 0, AIR)
    norms = np.full(len(links), fill * CLIP)
    arrived = np.abs(links.channel * policy.transmit(plan, links, norms).tx_gain) * norms / plan.server_gain
    assert np.all(arrived <= received_bound(policy, plan, links) * ROUNDING)


def test_without_a_power_limit_nobody_backs_off() -> None:
    links = replace(example_links(4), power_budget=np.full(4, np.inf))
    sent = clamped_inversion(CrossLayer(1e9).plan(links, 0, AIR), links)
    np.testing.assert_array_equal(sent.backoff, np.ones(4))
    np.testing.assert_allclose(links.estimate * sent.tx_gain, 1e9 * links.weight / CLIP)


def test_the_server_undoes_the_clip_or_not() -> None:
    links = example_links(2)
    assert CrossLayer(3.0).plan(links, 0, AIR).receive_scale == pytest.approx(3.0 / CLIP)
    assert CrossLayer(3.0, rescale="none").plan(links, 0, AIR).receive_scale == 3.0


def test_another_server_gain_keeps_the_rescaling() -> None:
    lowered = CrossLayer(3.0).plan(example_links(2), 0, AIR).with_server_gain(1.5)
    assert lowered.server_gain == 1.5
    assert lowered.receive_scale == pytest.approx(1.5 / CLIP)


def test_a_dead_channel_is_silent_and_cannot_be_inverted() -> None:
    links = replace(example_links(3), estimate=np.array([1.0, 0.0, 1.0j]))
    policy = CrossLayer(1.0)
    plan = policy.plan(links, 0, AIR)
    assert plan.silent.tolist() == [False, True, False]
    with pytest.raises(ValueError, match="silent"):
        policy.transmit(plan, links)
    assert len(policy.transmit(plan, links.take(~plan.silent)).backoff) == 2


def test_only_actual_backoff_needs_norms() -> None:
    links = example_links(2)
    actual = CrossLayer(1.0, backoff="actual")
    assert actual.needs_norms and not CrossLayer(1.0).needs_norms
    assert isinstance(actual, PowerControl)
    with pytest.raises(ValueError, match="norms"):
        actual.transmit(actual.plan(links, 0, AIR), links)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"server_gain": 0.0}, "server_gain"),
        ({"server_gain": np.nan}, "server_gain"),
        ({"server_gain": np.inf}, "server_gain"),
        ({"server_gain": 1.0, "backoff": "none"}, "backoff"),
        ({"server_gain": 1.0, "rescale": True}, "rescale"),
    ],
)
def test_bad_settings_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CrossLayer(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((0.0, 1.0, 1), "clip"), ((np.nan, 1.0, 1), "clip"), ((1.0, -1.0, 1), "noise"), ((1.0, 1.0, 0), "dimension")],
)
def test_a_bad_air_interface_is_refused(arguments: tuple[float, float, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AirInterface(*arguments)


@given(epsilon=st.floats(0.1, 10), delta=st.floats(1e-9, 0.5), rounds_=st.integers(1, 500))
def test_the_automatic_server_gain_spends_the_budget_in_all_rounds(epsilon: float, delta: float, rounds_: int) -> None:
    """Theorem 1 with s = 1 evaluated at σ_m = σ_c/α_u gives ε back."""
    samples, noise = 5000, 1.3
    server_gain = server_gain_for_noise(noise_std_theorem(epsilon, delta, rounds_, samples), noise)
    rho = sum(1 / (2 * samples**2 * (noise / server_gain) ** 2) for _ in range(rounds_))
    assert rho + 2 * np.sqrt(rho * np.log(1 / delta)) == pytest.approx(epsilon)


@given(links=rounds(), limit=st.floats(1e-3, 100))
def test_the_gain_for_a_received_limit_is_the_largest_that_keeps_it(links: Links, limit: float) -> None:
    server_gain = server_gain_for_received_limit(links, limit)

    def loudest(gain: float) -> float:
        policy = CrossLayer(gain)
        return float(np.max(received_bound(policy, policy.plan(links, 0, AIR), links)) * gain)

    if np.isinf(server_gain):
        assert loudest(1e12) <= limit * ROUNDING
    else:
        assert loudest(server_gain) <= limit * ROUNDING
        assert loudest(server_gain * 1.001) > limit
