"""What server and jammer settle on: the target is met with power, kept by a lower gain, or missed on record."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.radio.strategies import CLIP, rounds
from wirelessfl.radio import (
    AirInterface,
    Calibration,
    CrossLayer,
    ExactCalibration,
    Jamming,
    Links,
    TheoremCalibration,
    effective_noise_std,
    received_bound,
)

AIR = AirInterface(clip=CLIP, channel_noise_std=1.0, dimension=100)
JAMMER = 0.3 - 0.4j
gains = st.floats(1.0, 1e4)
calibrations = st.one_of(
    st.builds(TheoremCalibration, st.floats(1e-3, 1.0)),
    st.builds(ExactCalibration, st.integers(1, 100), st.floats(0.1, 5.0), st.sampled_from([1.0, 2.0])),
)


def is_met(calibration: Calibration, policy: CrossLayer, links: Links, server_gain: float, noise_std: float) -> bool:
    """The definition itself, at the gain that was settled on."""
    if isinstance(calibration, TheoremCalibration):
        return noise_std >= calibration.noise_std * (1 - 1e-9)
    assert isinstance(calibration, ExactCalibration)
    bound = received_bound(policy, policy.plan(links, 0, AIR).with_server_gain(server_gain), links)
    composed = calibration.rounds * (calibration.reach * bound / noise_std) ** 2
    return bool(np.all(composed <= calibration.gdp_mu**2 * (1 + 1e-9)))


@given(links=rounds(), calibration=calibrations, server_gain=gains)
def test_an_unlimited_jammer_meets_the_target_at_the_same_gain(
    links: Links, calibration: Calibration, server_gain: float
) -> None:
    policy = CrossLayer(server_gain)
    jamming = Jamming(calibration, 1.0, np.inf, "complex", "record")
    plan, gain = jamming.agree(policy, policy.plan(links, 0, AIR), links, AIR, JAMMER)
    assert plan.server_gain == server_gain
    assert is_met(calibration, policy, links, server_gain, effective_noise_std(gain, JAMMER, server_gain, 1.0))


@given(links=rounds(), calibration=calibrations, server_gain=gains, limit=st.floats(0.0, 50.0))
def test_a_lower_gain_keeps_the_target_with_whatever_power_there_is(
    links: Links, calibration: Calibration, server_gain: float, limit: float
) -> None:
    policy = CrossLayer(server_gain)
    jamming = Jamming(calibration, 1.0, limit, "complex", "lower_gain")
    plan, gain = jamming.agree(policy, policy.plan(links, 0, AIR), links, AIR, JAMMER)
    assert gain <= limit
    assert plan.server_gain <= server_gain
    noise_std = effective_noise_std(gain, JAMMER, plan.server_gain, 1.0)
    assert is_met(calibration, policy, links, plan.server_gain, noise_std)


def test_a_recorded_shortfall_sends_all_it_can_and_misses() -> None:
    calibration = TheoremCalibration(0.1)
    links = rounds_example()
    policy = CrossLayer(100.0)
    plan, gain = Jamming(calibration, 1.0, 2.0, "complex", "record").agree(
        policy, policy.plan(links, 0, AIR), links, AIR, JAMMER
    )
    assert (plan.server_gain, gain) == (100.0, 2.0)
    assert not is_met(calibration, policy, links, 100.0, effective_noise_std(gain, JAMMER, 100.0, 1.0))


def test_the_margin_multiplies_the_gain_but_a_short_margin_is_no_shortfall() -> None:
    links, policy = rounds_example(), CrossLayer(100.0)
    plan = policy.plan(links, 0, AIR)
    needed = Jamming(TheoremCalibration(0.1), 1.0, np.inf, "complex", "record").agree(policy, plan, links, AIR, JAMMER)[
        1
    ]
    jamming = Jamming(TheoremCalibration(0.1), 7.0, 3 * needed, "complex", "lower_gain")
    settled, gain = jamming.agree(policy, plan, links, AIR, JAMMER)
    assert gain == pytest.approx(3 * needed)
    assert settled.server_gain == 100.0


def rounds_example() -> Links:
    ones = np.ones(2)
    channel = np.array([1.0 + 0j, 0.5j])
    return Links(channel, channel, ones / 2, ones, ones, ones)
